/* SPDX-License-Identifier: MIT */
/*
 * Proves of the line editor: a terminal that obeys the editor's output shows, after
 * every byte that is typed, exactly the prompt and the line, and its cursor is where the
 * editor believes it to be. Keys, history and Tab act as their names say.
 */
#include <kernel/test/ktest.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>
#include <kernel/test/again.h>

#define PROMPT "> "

/* A terminal of one endless row. A cell has a character's bytes, the first one highest. */
struct terminal {
	struct sink sink;
	u32 row[2 * SHELL_LINE_MAX];
	size_t at, len;
	unsigned int beeps, rows;
	unsigned int escape; /* bytes of a sequence seen so far */
};

static void terminal_plain(struct terminal *m, char c)
{
	if (c == '\a') {
		m->beeps++;
	} else if (c == '\b') {
		m->at -= m->at > 0;
	} else if (c == '\n') {
		m->rows++;
		m->at = m->len = 0;
	} else if (c == '\033') {
		m->escape = 1;
	} else if (((u8)c & 0xc0) == 0x80 && m->at) {
		m->row[m->at - 1] = m->row[m->at - 1] << 8 | (u8)c;
	} else {
		m->row[m->at++] = (u8)c;
		m->len = max(m->len, m->at);
	}
}

/* Only sequences that the editor writes: ESC [ K, ESC [ H, ESC [ 2 J. */
static void terminal_escape(struct terminal *m, char c)
{
	if (c == '[' || c == '2') {
		m->escape++;
		return;
	}
	m->escape = 0;
	if (c == 'K')
		m->len = m->at;
	else if (c == 'H')
		m->at = 0;
	else if (c == 'J')
		m->len = 0;
}

static int terminal_write(struct sink *s, const char *text, size_t len)
{
	struct terminal *m = container_of(s, struct terminal, sink);

	for (size_t i = 0; i < len; i++)
		if (m->escape)
			terminal_escape(m, text[i]);
		else
			terminal_plain(m, text[i]);
	return 0;
}

struct bench {
	struct line_edit edit;
	struct terminal term;
	bool wrong; /* the screen was wrong at least once */
};

static struct bench *bench_new(void)
{
	struct bench *b = kmalloc_zeroed(sizeof(*b));

	if (!b)
		return NULL;
	b->term.sink.write = terminal_write;
	b->edit.out = &b->term.sink;
	b->edit.prompt = PROMPT;
	line_start(&b->edit);
	return b;
}

static void bench_free(struct bench *b)
{
	line_release(&b->edit);
	kfree(b);
}

/* As the terminal would show text on an empty row. */
static void show_expected(struct terminal *m, const char *text, size_t len)
{
	m->at = m->len = m->escape = 0;
	terminal_write(&m->sink, PROMPT, sizeof(PROMPT) - 1);
	terminal_write(&m->sink, text, len);
}

static bool screen_right(const struct bench *b)
{
	static struct terminal want; /* too large for a stack */
	const struct terminal *m = &b->term;
	const struct line_edit *e = &b->edit;
	size_t at;

	show_expected(&want, e->buf, e->pos);
	at = want.at;
	show_expected(&want, e->buf, e->len);
	return m->at == at && m->len == want.len &&
	       !memcmp(m->row, want.row, want.len * sizeof(want.row[0]));
}

/* Types all of text, and returns the event of its last byte. */
static enum line_event type_text(struct bench *b, const char *text)
{
	enum line_event event = LINE_MORE;

	for (; *text; text++) {
		event = line_feed(&b->edit, (u8)*text);
		if (event != LINE_MORE)
			line_start(&b->edit);
		b->wrong |= !screen_right(b);
	}
	return event;
}

/* Compares the line, with a | where the cursor is. */
static void line_is(struct ktest_run *t, struct bench *b, const char *keys,
		    const char *want)
{
	char got[128];
	const struct line_edit *e = &b->edit;

	snprintf(got, sizeof(got), "%.*s|%.*s", (int)e->pos, e->buf,
		 (int)(e->len - e->pos), e->buf + e->pos);
	if (strcmp(got, want)) {
		printk("# keys \"%s\": \"%s\", expected \"%s\"\n", keys, got,
		       want);
		ktest_fail(t, __FILE__, __LINE__, "line");
	}
	KEXPECT(t, !b->wrong);
}

KTEST(line_keys, "shell.line_keys")
{
	static const char *const cases[][2] = {
		{ "abc", "abc|" },
		{ "abc\033[D\033[DX", "aX|bc" },
		/* UTF-8: characters of two, three and four bytes */
		{ "a\u00e4\u20ac\U0001f600", "a\u00e4\u20ac\U0001f600|" },
		{ "a\u00e4\u20ac\033[D\033[DX", "aX|\u00e4\u20ac" },
		{ "\u00e4\u20acz\033[D\033[D\033[CX", "\u00e4\u20acX|z" },
		{ "a\u20ac\177b", "ab|" },
		{ "\u00e4\u20ac\001\004", "|\u20ac" },
		{ "ab\033[D\u20ac", "a\u20ac|b" },
		/* bytes that are no character */
		{ "a\x80\xc3 b\xff\xe2\x82", "a b|" },
		{ "abc\033[D\033[D\033[D\033[D\033[CX", "aX|bc" },
		{ "abc\001X\005Y", "XabcY|" },
		{ "abc\033[HX\033[FY", "XabcY|" },
		{ "abc\033OHX\033OFY", "XabcY|" },
		{ "abc\033[1~X\033[4~Y\033[7~Z\033[8~", "ZXabcY|" },
		{ "abc\177\177d", "ad|" },
		{ "abc\010", "ab|" },
		{ "\177\010x", "x|" },
		{ "abc\033[D\033[D\033[3~", "a|c" },
		{ "abc\001\004", "|bc" },
		{ "abc\033[3~\004", "abc|" },
		{ "abcd\033[D\033[D\013", "ab|" },
		{ "abcd\033[D\033[D\025", "|cd" },
		{ "one two  \027", "one |" },
		{ "one two\033[D\027", "one |o" },
		{ "a\002b\006c", "bac|" },
		{ "ab\033[D\014c", "ac|b" },
		{ "a\001\006\006\005b", "ab|" },
		{ "a\021\022\030\031\032\034\200\377b", "ab|" },
		{ "a\033[1;5Db", "b|a" },
		{ "a\033[99~\033[Z\033b", "ab|" },
	};
	struct bench *b;

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		b = bench_new();
		KASSERT(t, b);
		type_text(b, cases[i][0]);
		line_is(t, b, cases[i][0], cases[i][1]);
		bench_free(b);
	}
}

KTEST(line_enter, "shell.line_enter")
{
	struct bench *b = bench_new();

	KASSERT(t, b);
	KEXPECT_EQ(t, type_text(b, "ls\r"), LINE_DONE);
	KEXPECT(t, !strcmp(b->edit.buf, "ls"));
	KEXPECT_EQ(t, type_text(b, "\n"), LINE_MORE); /* the \n of that \r */
	KEXPECT_EQ(t, type_text(b, "ps\n"), LINE_DONE);
	KEXPECT_EQ(t, type_text(b, "\n"), LINE_DONE);
	KEXPECT_EQ(t, type_text(b, "ab\033[D\n"), LINE_DONE);
	KEXPECT(t, !strcmp(b->edit.buf, "ab"));
	KEXPECT_EQ(t, type_text(b, "half\003"), LINE_CANCELLED);
	KEXPECT_EQ(t, b->edit.len, 0);
	KEXPECT_EQ(t, b->term.rows, 5);
	KEXPECT_EQ(t, b->edit.nr_history, 3);
	bench_free(b);
}

/* NULL: the line was not kept, because there was no memory. */
static bool history_is(const char *kept, const char *line)
{
	return kept && !strcmp(kept, line);
}

KTEST(line_history, "shell.line_history")
{
	struct bench *b = bench_new();
	char line[8];

	KASSERT(t, b);
	type_text(b, "one\ntwo\ntwo\n\nthree\ndraft");
	KEXPECT_EQ(t, b->edit.nr_history, 3);
	type_text(b, "\033[A\033[A");
	line_is(t, b, "up up", "two|");
	type_text(b, "\033[A\033[A\033[A");
	line_is(t, b, "up to the first", "one|");
	type_text(b, "\033[B\020\016\016");
	line_is(t, b, "down, ^P ^N ^N", "three|");
	type_text(b, "\033[B\033[B");
	line_is(t, b, "down to the draft", "draft|");
	type_text(b, "\033[A\033[A+\n");
	KEXPECT(t, history_is(b->edit.history[3], "two+"));
	KEXPECT(t, history_is(b->edit.history[1], "two"));
	for (int i = 0; i < 2 * SHELL_HISTORY; i++) {
		snprintf(line, sizeof(line), "%d\n", i);
		type_text(b, line);
	}
	KEXPECT_EQ(t, b->edit.nr_history, SHELL_HISTORY);
	KEXPECT(t, history_is(b->edit.history[SHELL_HISTORY - 1], "63"));
	KEXPECT(t, history_is(b->edit.history[0], "32"));
	bench_free(b);
}

KTEST(line_too_long, "shell.line_too_long")
{
	struct bench *b = bench_new();

	KASSERT(t, b);
	for (int i = 0; i < SHELL_LINE_MAX; i++)
		type_text(b, "x");
	KEXPECT_EQ(t, b->edit.len, SHELL_LINE_MAX);
	KEXPECT_EQ(t, b->term.beeps, 0);
	type_text(b, "yy");
	KEXPECT_EQ(t, b->edit.len, SHELL_LINE_MAX);
	KEXPECT_EQ(t, b->term.beeps, 1);
	KEXPECT_EQ(t, type_text(b, "\n"), LINE_TOO_LONG);
	KEXPECT_EQ(t, b->edit.nr_history, 0);
	KEXPECT(t, !b->wrong);
	bench_free(b);
}

KTEST(line_tab, "shell.line_tab")
{
	struct bench *b = bench_new();

	KASSERT(t, b);
	b->edit.complete = shell_complete;
	type_text(b, "powe\t");
	line_is(t, b, "powe Tab", "poweroff |");
	type_text(b, "\025cat /sys/kernel/self\tno\t");
	line_is(t, b, "path Tab", "cat /sys/kernel/selftest/note |");
	type_text(b, "\025echo '!shell_run_li\t>");
	line_is(t, b, "quote Tab", "echo '!shell_run_line' >|");
	type_text(b, "\025cat /sys/kernel/selftest/\t");
	KEXPECT_EQ(t, b->term.beeps, 1);
	KEXPECT_EQ(t, b->term.rows, 0);
	type_text(b, "\t"); /* lists, and shows the line again */
	KEXPECT(t, b->term.rows > 1);
	line_is(t, b, "Tab Tab", "cat /sys/kernel/selftest/|");
	type_text(b, "\025nosuch\t\t");
	line_is(t, b, "nothing fits", "nosuch|");
	KEXPECT_EQ(t, b->term.beeps, 2);
	bench_free(b);
}
