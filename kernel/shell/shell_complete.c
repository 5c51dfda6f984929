/* SPDX-License-Identifier: MIT */
/* Tab completion: over commands, control files and function names. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/mm/kmalloc.h>

REGISTRY(struct shell_cmd, shell_cmds);

/* The word that the cursor stands behind, and the word's number in its command. */
struct position {
	size_t start; /* of the word, its opening quote left out */
	char quote;
	bool in_word;
	bool target;	     /* after > */
	unsigned int nr;     /* words before it in its command */
	size_t cmd, cmd_len; /* the command's name */
};

static void end_word(struct position *p, size_t at)
{
	if (!p->in_word)
		return;
	p->in_word = false;
	if (p->target) {
		p->target = false;
		return;
	}
	if (!p->nr++) {
		p->cmd = p->start;
		p->cmd_len = at - p->start;
	}
}

static void begin_word(struct position *p, size_t at)
{
	if (!p->in_word)
		p->start = at;
	p->in_word = true;
}

static void pass_unquoted(struct position *p, char c, size_t at)
{
	if (c == '\'' || c == '"') {
		begin_word(p, at + 1);
		p->quote = c;
		return;
	}
	if (!strchr(" \t;|>", c)) {
		begin_word(p, at);
		return;
	}
	end_word(p, at);
	if (c == ';' || c == '|')
		p->nr = p->target = 0;
	else if (c == '>')
		p->target = true;
}

static void find_position(struct position *p, const char *line, size_t pos)
{
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < pos; i++) {
		if (p->quote && line[i] == p->quote)
			p->quote = 0;
		else if (!p->quote)
			pass_unquoted(p, line[i], i);
	}
	if (!p->in_word)
		p->start = pos;
}

/* Keep the names sorted. The greatest go when there are too many. */
static void keep_name(struct completion *c, const char *name)
{
	unsigned int i = c->nr_names;

	while (i && strcmp(c->names[i - 1], name) > 0)
		i--;
	if (i == COMPLETION_NAMES)
		return;
	if (c->nr_names < COMPLETION_NAMES)
		c->nr_names++;
	memmove(c->names + i + 1, c->names + i,
		(c->nr_names - 1 - i) * sizeof(c->names[0]));
	string_copy(c->names[i], name, COMPLETION_NAME);
}

static bool name_is_kept(const struct completion *c, const char *name)
{
	for (unsigned int i = 0; i < c->nr_names; i++)
		if (!strcmp(c->names[i], name))
			return true;
	return false;
}

/* A name longer than COMPLETION_NAME is completed as far as that goes. */
static void offer_name(struct completion *c, const char *full)
{
	char name[COMPLETION_NAME];
	size_t same = 0;

	if (strncmp(full, c->prefix, c->prefix_len))
		return;
	string_copy(name, full, sizeof(name));
	if (c->dirs_only && name[strlen(name) - 1] != '/')
		return;
	if (name_is_kept(c, name))
		return; /* two static functions of one name */
	if (c->count) {
		while (same < c->common_len && name[same] == c->names[0][same])
			same++;
		c->common_len = same;
	} else {
		c->common_len = strlen(name);
	}
	c->count++;
	keep_name(c, name);
}

static void offer_commands(struct completion *c)
{
	const struct shell_cmd *cmd;

	for_each_registered (cmd, shell_cmds)
		offer_name(c, cmd->name);
}

static void offer_functions(struct completion *c)
{
	struct symbol s;

	if (c->prefix_len && c->prefix[0] == '!') {
		c->prefix++; /* a filter's "not" */
		c->prefix_len--;
	}
	if (!c->prefix_len)
		return;
	for (unsigned int i = 0; symbol_get(i, &s); i++)
		offer_name(c, s.name);
}

static void offer_paths(struct completion *c)
{
	char dir[SHELL_PATH], abs[SHELL_PATH], name[COMPLETION_NAME];
	size_t n = c->prefix_len;

	while (n && c->prefix[n - 1] != '/')
		n--;
	if (n >= sizeof(dir))
		return;
	memcpy(dir, c->prefix, n);
	dir[n] = '\0';
	if (shell_resolve(dir, abs, sizeof(abs)))
		return;
	c->prefix += n;
	c->prefix_len -= n;
	name[0] = '\0';
	while (!ctl_next(abs, name, sizeof(name)))
		offer_name(c, name);
}

static const struct shell_cmd *command_of(const struct position *p,
					  const char *line)
{
	char name[32];

	string_copy(name, line + p->cmd, min(sizeof(name), p->cmd_len + 1));
	return shell_find(name);
}

/* The word before the one at `start`. */
static void word_before(const char *line, size_t start, char *word, size_t size)
{
	size_t end = start, begin;

	while (end && line[end - 1] == ' ')
		end--;
	for (begin = end; begin && line[begin - 1] != ' '; begin--)
		;
	string_copy(word, line + begin, min(size, end - begin + 1));
}

/* Offer the words that the command itself allows here. */
static void offer_following(struct completion *c, const struct shell_cmd *cmd,
			    const char *line, size_t start)
{
	char before[32];
	const char *word;

	word_before(line, start, before, sizeof(before));
	for (unsigned int i = 0; (word = cmd->follow(before, i)); i++)
		offer_name(c, word);
}

static void offer_arguments(struct completion *c, const char *usage)
{
	const char *prefix = c->prefix;
	size_t len = c->prefix_len;

	if (strstr(usage, "COMMAND")) {
		offer_commands(c);
		return;
	}
	c->dirs_only = strstr(usage, "DIR");
	if (c->dirs_only || strstr(usage, "FILE") || strstr(usage, "PATH"))
		offer_paths(c);
	if (c->count || c->dirs_only || c->prefix != prefix)
		return; /* found, or it had a slash: not a function */
	c->prefix = prefix;
	c->prefix_len = len;
	offer_functions(c);
}

void completion_find(struct completion *c, const char *line, size_t pos)
{
	const struct shell_cmd *cmd = NULL;
	struct position p;

	find_position(&p, line, pos);
	memset(c, 0, sizeof(*c));
	c->prefix = line + p.start;
	c->prefix_len = pos - p.start;
	c->quote = p.quote;
	if (p.target)
		offer_paths(c);
	else if (!p.nr)
		offer_commands(c);
	else if ((cmd = command_of(&p, line)) && cmd->follow)
		offer_following(c, cmd, line, p.start);
	if (!c->count && cmd)
		offer_arguments(c, cmd->usage);
}

static void list_names(struct line_edit *e, const struct completion *c)
{
	struct columns col = { .out = e->out };

	for (unsigned int i = 0; i < c->nr_names; i++)
		col.width = max(col.width, (unsigned int)strlen(c->names[i]));
	sink_printf(e->out, "\n");
	for (unsigned int i = 0; i < c->nr_names; i++)
		columns_put(&col, c->names[i]);
	columns_end(&col);
	if (c->count > c->nr_names)
		sink_printf(e->out, "... and %u more\n",
			    c->count - c->nr_names);
	line_redraw(e);
}

static bool extend_line(struct line_edit *e, const struct completion *c)
{
	char text[COMPLETION_NAME + 4];
	size_t n = c->common_len - min(c->prefix_len, c->common_len);

	if (!c->count)
		return false;
	memcpy(text, c->names[0] + c->prefix_len, n);
	if (c->count == 1 && c->names[0][c->common_len - 1] != '/') {
		if (c->quote)
			text[n++] = c->quote;
		text[n++] = ' ';
	}
	if (n)
		line_insert(e, text, n);
	return n;
}

bool shell_complete(struct line_edit *e, bool again)
{
	struct completion *c = kmalloc(sizeof(*c));
	bool done;

	if (!c)
		return false;
	completion_find(c, e->buf, e->pos);
	done = extend_line(e, c);
	if (!done && again && c->count)
		list_names(e, c);
	kfree(c);
	return done;
}
