/* SPDX-License-Identifier: MIT */
/*
 * The line editor: typed bytes go in, and bytes for the terminal come out. It draws
 * with backspaces and "erase to the end of the line" only.
 */
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>

#define CTRL(c) ((c)&0x1f)

static void line_put_text(struct line_edit *e, const char *text, size_t len)
{
	if (len)
		e->out->write(e->out, text, len);
}

static void line_beep(struct line_edit *e)
{
	line_put_text(e, "\a", 1);
}

/* UTF-8: a character is one byte below 0x80, or a byte from 0xc2 on and its followers. */
static bool is_follower(char byte)
{
	return ((u8)byte & 0xc0) == 0x80;
}

static unsigned int utf8_length(u8 first)
{
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The place one character to the left, or to the right. */
static size_t left_of(const struct line_edit *e, size_t pos)
{
	while (pos && is_follower(e->buf[--pos]))
		;
	return pos;
}

static size_t right_of(const struct line_edit *e, size_t pos)
{
	while (pos < e->len && is_follower(e->buf[++pos]))
		;
	return min(pos, e->len);
}

/* Move the cursor from e->pos to `to`, in the line and on the screen. */
static void move_cursor(struct line_edit *e, size_t to)
{
	while (e->pos > to) {
		e->pos--;
		if (!is_follower(e->buf[e->pos]))
			line_put_text(e, "\b", 1);
	}
	line_put_text(e, e->buf + e->pos, to - e->pos);
	e->pos = to;
}

/* Draw the rest of the line from the cursor on, and put the cursor back. */
static void draw_rest(struct line_edit *e)
{
	size_t pos = e->pos;

	move_cursor(e, e->len);
	line_put_text(e, "\033[K", 3);
	move_cursor(e, pos);
}

void line_insert(struct line_edit *e, const char *text, size_t len)
{
	if (e->len + len > SHELL_LINE_MAX) {
		if (!e->too_long)
			line_beep(e);
		e->too_long = true;
		return;
	}
	memmove(e->buf + e->pos + len, e->buf + e->pos, e->len - e->pos);
	memcpy(e->buf + e->pos, text, len);
	e->len += len;
	move_cursor(e, e->pos + len);
	if (e->pos < e->len)
		draw_rest(e);
}

/* Delete the bytes [from, to). The cursor is at `from` afterwards. */
static void erase_bytes(struct line_edit *e, size_t from, size_t to)
{
	if (from == to)
		return;
	move_cursor(e, from);
	memmove(e->buf + from, e->buf + to, e->len - to);
	e->len -= to - from;
	e->too_long = false; /* the user has seen the shortened line */
	draw_rest(e);
}

static void set_line(struct line_edit *e, const char *text)
{
	move_cursor(e, 0);
	e->len = string_copy(e->buf, text, sizeof(e->buf));
	e->too_long = false;
	move_cursor(e, e->len);
	line_put_text(e, "\033[K", 3);
}

void line_redraw(struct line_edit *e)
{
	size_t pos = e->pos;

	line_put_text(e, e->prompt, strlen(e->prompt));
	e->pos = 0;
	draw_rest(e);
	move_cursor(e, pos);
}

void line_start(struct line_edit *e)
{
	e->len = e->pos = 0;
	e->too_long = e->tabbed = false;
	e->escape = ESC_NONE;
	e->utf8_len = 0;
	e->history_at = e->nr_history;
	e->draft[0] = '\0';
	line_put_text(e, e->prompt, strlen(e->prompt));
}

/* ---- history ---- */

void line_remember(struct line_edit *e, const char *line)
{
	size_t size = strlen(line) + 1;
	char *copy;

	if (size == 1 ||
	    (e->nr_history && !strcmp(e->history[e->nr_history - 1], line)))
		return;
	copy = kmalloc(size);
	if (!copy)
		return; /* a history with a hole is better than no shell */
	memcpy(copy, line, size);
	if (e->nr_history == SHELL_HISTORY) {
		kfree(e->history[0]);
		memmove(e->history, e->history + 1,
			(SHELL_HISTORY - 1) * sizeof(*e->history));
		e->nr_history--;
	}
	e->history[e->nr_history++] = copy;
}

void line_release(struct line_edit *e)
{
	while (e->nr_history)
		kfree(e->history[--e->nr_history]);
}

static void show_history(struct line_edit *e, unsigned int at)
{
	e->buf[e->len] = '\0';
	if (e->history_at == e->nr_history)
		string_copy(e->draft, e->buf, sizeof(e->draft));
	e->history_at = at;
	set_line(e, at == e->nr_history ? e->draft : e->history[at]);
}

/* ---- keys ---- */

static void key_left(struct line_edit *e)
{
	move_cursor(e, left_of(e, e->pos));
}

static void key_right(struct line_edit *e)
{
	move_cursor(e, right_of(e, e->pos));
}

static void key_home(struct line_edit *e)
{
	move_cursor(e, 0);
}

static void key_end(struct line_edit *e)
{
	move_cursor(e, e->len);
}

static void key_up(struct line_edit *e)
{
	if (e->history_at)
		show_history(e, e->history_at - 1);
}

static void key_down(struct line_edit *e)
{
	if (e->history_at < e->nr_history)
		show_history(e, e->history_at + 1);
}

static void key_backspace(struct line_edit *e)
{
	erase_bytes(e, left_of(e, e->pos), e->pos);
}

static void key_delete(struct line_edit *e)
{
	erase_bytes(e, e->pos, right_of(e, e->pos));
}

static void key_kill_right(struct line_edit *e)
{
	erase_bytes(e, e->pos, e->len);
}

static void key_kill_left(struct line_edit *e)
{
	erase_bytes(e, 0, e->pos);
}

static void key_kill_word(struct line_edit *e)
{
	size_t from = e->pos;

	while (from && e->buf[from - 1] == ' ')
		from--;
	while (from && e->buf[from - 1] != ' ')
		from--;
	erase_bytes(e, from, e->pos);
}

static void key_clear_screen(struct line_edit *e)
{
	line_put_text(e, "\033[H\033[2J", 7);
	line_redraw(e);
}

struct key {
	unsigned int code;
	void (*fn)(struct line_edit *e);
};

static const struct key control_keys[] = {
	{ CTRL('A'), key_home },	 { CTRL('B'), key_left },
	{ CTRL('D'), key_delete },	 { CTRL('E'), key_end },
	{ CTRL('F'), key_right },	 { CTRL('H'), key_backspace },
	{ 0x7f, key_backspace },	 { CTRL('K'), key_kill_right },
	{ CTRL('L'), key_clear_screen }, { CTRL('N'), key_down },
	{ CTRL('P'), key_up },		 { CTRL('U'), key_kill_left },
	{ CTRL('W'), key_kill_word },
};

/* ESC [ letter, ESC O letter. ESC [ number ~ stands here as the number. */
static const struct key escape_keys[] = {
	{ 'A', key_up },   { 'B', key_down }, { 'C', key_right },
	{ 'D', key_left }, { 'H', key_home }, { 'F', key_end },
	{ 1, key_home },   { 3, key_delete }, { 4, key_end },
	{ 7, key_home },   { 8, key_end },
};

/* A key that means nothing is ignored. */
static void press_key(struct line_edit *e, const struct key *keys, size_t n,
		      unsigned int code)
{
	for (size_t i = 0; i < n; i++)
		if (keys[i].code == code)
			keys[i].fn(e);
}

static void escape_byte(struct line_edit *e, int byte)
{
	if (byte >= '0' && byte <= '9') {
		e->escape_param = (e->escape_param * 10 + byte - '0') % 1000;
		return;
	}
	if (byte == ';') {
		e->escape_param = 0; /* modifiers follow */
		return;
	}
	e->escape = ESC_NONE;
	press_key(e, escape_keys, ARRAY_SIZE(escape_keys),
		  byte == '~' ? e->escape_param : (unsigned int)byte);
}

static void key_tab(struct line_edit *e)
{
	bool again = e->tabbed;

	if (!e->complete)
		return;
	e->buf[e->len] = '\0';
	e->tabbed = !e->complete(e, again);
	if (e->tabbed && !again)
		line_beep(e);
}

static enum line_event end_line(struct line_edit *e)
{
	key_end(e);
	line_put_text(e, "\n", 1);
	e->buf[e->len] = '\0';
	if (e->too_long)
		return LINE_TOO_LONG;
	line_remember(e, e->buf);
	return LINE_DONE;
}

static enum line_event cancel_line(struct line_edit *e)
{
	key_end(e);
	line_put_text(e, "^C\n", 3);
	return LINE_CANCELLED;
}

/* Inserts a character when its last byte has come. A byte of none is dropped. */
static bool utf8_byte(struct line_edit *e, int byte)
{
	if (byte < 0x80) {
		e->utf8_len = 0;
		return false;
	}
	if (!is_follower(byte))
		e->utf8_len = 0;
	else if (!e->utf8_len)
		return true;
	if (byte < 0xc0 || (byte >= 0xc2 && byte < 0xf5))
		e->utf8[e->utf8_len++] = byte;
	if (e->utf8_len && e->utf8_len == utf8_length(e->utf8[0])) {
		line_insert(e, e->utf8, e->utf8_len);
		e->utf8_len = 0;
	}
	return true;
}

static void plain_byte(struct line_edit *e, int byte)
{
	char c = byte;

	if (byte == '\t') {
		key_tab(e);
		return;
	}
	e->tabbed = false;
	if (utf8_byte(e, byte))
		return;
	if (byte == '\033')
		e->escape = ESC_SEEN;
	else if (byte >= ' ' && byte < 0x7f)
		line_insert(e, &c, 1);
	else
		press_key(e, control_keys, ARRAY_SIZE(control_keys), byte);
}

enum line_event line_feed(struct line_edit *e, int byte)
{
	bool after_cr = e->after_cr;

	e->after_cr = byte == '\r';
	if (byte == '\n' && after_cr)
		return LINE_MORE; /* a terminal's CR LF is one Enter */
	if (byte == '\r' || byte == '\n')
		return end_line(e);
	if (byte == CTRL('C'))
		return cancel_line(e);
	if (e->escape == ESC_PARAM) {
		escape_byte(e, byte);
	} else if (e->escape == ESC_SEEN && (byte == '[' || byte == 'O')) {
		e->escape = ESC_PARAM;
		e->escape_param = 0;
	} else {
		e->escape = ESC_NONE;
		plain_byte(e, byte);
	}
	return LINE_MORE;
}
