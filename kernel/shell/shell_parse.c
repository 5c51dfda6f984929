/* SPDX-License-Identifier: MIT */
/* The shell's parser: a line into stages, words unquoted. Runs nothing. */
#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>

enum token {
	T_WORD,
	T_SEMI,
	T_AND,
	T_OR,
	T_PIPE,
	T_TO,
	T_APPEND,
	T_END,
	T_BAD
};

struct parser {
	struct shell_script *p;
	const char *at;		   /* in the line */
	char *fill;		   /* in p->text */
	char *word;		   /* the last T_WORD */
	unsigned int slot;	   /* in p->words */
	struct shell_stage *stage; /* being filled, NULL between two */
	enum shell_when when;	   /* of the next one */
};

REGISTRY(struct shell_cmd, shell_cmds);

const struct shell_cmd *shell_find(const char *name)
{
	const struct shell_cmd *c;

	for_each_registered (c, shell_cmds)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static enum token bad_token(struct parser *s, const char *text)
{
	string_copy(s->p->error, text, sizeof(s->p->error));
	return T_BAD;
}

/* $?: room for its digits, which are known when the command runs. */
static enum token reserve_status(struct parser *s)
{
	if (s->p->nr_status == SHELL_STATUS_MAX)
		return bad_token(s, "more than 8 $? in one line");
	s->p->status[s->p->nr_status++] = s->fill;
	memset(s->fill, '0', SHELL_STATUS_DIGITS);
	s->fill += SHELL_STATUS_DIGITS;
	s->at += 2;
	return T_WORD;
}

static bool is_status(const char *at)
{
	return at[0] == '$' && at[1] == '?';
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? at - digits : -1;
}

/* The byte that stands behind a \ in $'...', at the letter. -1: none does. */
static int escaped_byte(struct parser *s)
{
	static const char letters[] = "n\nt\tr\re\033\\\\''\"\"";
	int high, low;

	if (*s->at == 'x') {
		high = hex_digit(s->at[1]);
		low = high < 0 ? -1 : hex_digit(s->at[2]);
		if (low < 0 || !(high | low))
			return -1;
		s->at += 2;
		return high << 4 | low;
	}
	for (const char *l = letters; *l; l += 2)
		if (*l == *s->at)
			return l[1];
	return -1;
}

/* $'...', at the $. */
static enum token quoted_bytes(struct parser *s)
{
	int byte;

	for (s->at += 2; *s->at != '\''; s->at++) {
		byte = (u8)*s->at;
		if (byte == '\\') {
			s->at++;
			byte = escaped_byte(s);
		}
		if (byte < 0)
			return bad_token(
				s, "in $'' these stand behind a \\: n t r e "
				   "\\ ' \" and xHH, but not x00");
		if (!byte)
			return bad_token(
				s, "a $' is not closed; \\' stands for '");
		*s->fill++ = byte;
	}
	s->at++;
	return T_WORD;
}

/* A quoted part, at its opening quote. */
static enum token parse_quoted(struct parser *s)
{
	char quote = *s->at++;

	for (; *s->at != quote; s->at++) {
		if (quote == '"' && is_status(s->at)) {
			if (reserve_status(s) == T_BAD)
				return T_BAD;
			s->at--;
			continue;
		}
		if (quote == '"' && *s->at == '\\' &&
		    (s->at[1] == '"' || s->at[1] == '\\'))
			s->at++;
		if (!*s->at)
			return bad_token(s, quote == '"' ?
						    "a \" is not closed; \\\" "
						    "stands for one" :
						    "a ' is not closed; \"'\" "
						    "stands for one");
		*s->fill++ = *s->at;
	}
	s->at++;
	return T_WORD;
}

static enum token parse_one_word(struct parser *s)
{
	s->word = s->fill;
	while (*s->at && !strchr(" \t\n;|><&", *s->at)) {
		if (*s->at == '\'' || *s->at == '"') {
			if (parse_quoted(s) == T_BAD)
				return T_BAD;
			continue;
		}
		if (s->at[0] == '$' && s->at[1] == '\'') {
			if (quoted_bytes(s) == T_BAD)
				return T_BAD;
			continue;
		}
		if (is_status(s->at)) {
			if (reserve_status(s) == T_BAD)
				return T_BAD;
			continue;
		}
		if (*s->at == '\\' && !*++s->at)
			return bad_token(s, "a \\ at the end of the line; "
					    "\\\\ stands for one");
		*s->fill++ = *s->at++;
	}
	*s->fill++ = '\0';
	return T_WORD;
}

static enum token next_token(struct parser *s)
{
	while (*s->at && strchr(" \t\n", *s->at))
		s->at++;
	switch (*s->at) {
	case '\0':
	case '#':
		return T_END;
	case ';':
		s->at++;
		return T_SEMI;
	case '|':
		s->at++;
		if (*s->at != '|')
			return T_PIPE;
		s->at++;
		return T_OR;
	case '>':
		s->at++;
		if (*s->at != '>')
			return T_TO;
		s->at++;
		return T_APPEND;
	case '&':
		if (s->at[1] == '&') {
			s->at += 2;
			return T_AND;
		}
		/* fall through */
	case '<':
		return bad_token(s,
				 "no < or & here; accepted are ; && || | > >> "
				 "and quotes");
	default:
		return parse_one_word(s);
	}
}

static enum token begin_stage(struct parser *s)
{
	struct shell_script *p = s->p;

	if (s->stage)
		return T_WORD;
	if (p->nr_stages == SHELL_STAGES)
		return bad_token(s, "more than 32 commands in one line");
	s->stage = &p->stages[p->nr_stages++];
	memset(s->stage, 0, sizeof(*s->stage));
	s->stage->argv = &p->words[s->slot];
	s->stage->when = s->when;
	return T_WORD;
}

static enum token add_parsed_word(struct parser *s)
{
	if (begin_stage(s) == T_BAD)
		return T_BAD;
	if (s->p->nr_words == SHELL_WORDS)
		return bad_token(s, "more than 128 words in one line");
	s->p->nr_words++;
	s->p->words[s->slot++] = s->word;
	s->stage->argc++;
	return T_WORD;
}

static enum token add_target(struct parser *s, bool append)
{
	enum token t;

	if (begin_stage(s) == T_BAD)
		return T_BAD;
	if (s->stage->target)
		return bad_token(s, "more than one > in one command");
	t = next_token(s);
	if (t == T_BAD)
		return t;
	if (t != T_WORD || !*s->word)
		return bad_token(s,
				 "no file after >; a control file is accepted");
	s->stage->target = s->word;
	s->stage->append = append;
	return T_WORD;
}

/* Does the stage come after a pipe? */
static bool reads_pipe(struct parser *s)
{
	return s->stage > s->p->stages && s->stage[-1].piped;
}

static enum token check_command(struct parser *s)
{
	struct shell_stage *g = s->stage;

	if (!g->argc && reads_pipe(s))
		return bad_token(s, "no command after |");
	if (!g->argc)
		return T_WORD;
	g->cmd = shell_find(g->argv[0]);
	if (!g->cmd) {
		snprintf(s->p->error, sizeof(s->p->error),
			 "%.64s: unknown command; help lists them", g->argv[0]);
		return T_BAD;
	}
	if (reads_pipe(s) && !g->cmd->filter) {
		snprintf(s->p->error, sizeof(s->p->error),
			 "%s: reads no input; after | stand cat, grep, head, "
			 "tail, wc",
			 g->argv[0]);
		return T_BAD;
	}
	return T_WORD;
}

static enum token end_stage(struct parser *s, enum token by)
{
	struct shell_stage *g = s->stage;
	struct shell_script *p = s->p;

	if (!g) {
		/* `;;` is harmless, but the others need both their ends. */
		if (by == T_PIPE)
			return bad_token(s, "no command before |");
		if (p->nr_stages && p->stages[p->nr_stages - 1].piped)
			return bad_token(s, "no command after |");
		if (s->when != SHELL_ALWAYS)
			return bad_token(s, s->when == SHELL_IF_OK ?
						    "no command after &&" :
						    "no command after ||");
		if (by == T_AND || by == T_OR)
			return bad_token(s, by == T_AND ?
						    "no command before &&" :
						    "no command before ||");
		return by;
	}
	p->words[s->slot++] = NULL;
	if (by == T_PIPE && g->target)
		return bad_token(s,
				 "> stands before |; it is accepted after the "
				 "last command of a pipe");
	if (by == T_PIPE && !g->argc)
		return bad_token(s, "no command before |");
	if (check_command(s) == T_BAD)
		return T_BAD;
	g->piped = by == T_PIPE;
	s->when = by == T_AND ? SHELL_IF_OK :
		  by == T_OR  ? SHELL_IF_FAILED :
				SHELL_ALWAYS;
	s->stage = NULL;
	return by;
}

static enum token parse_step(struct parser *s)
{
	enum token t = next_token(s);

	switch (t) {
	case T_WORD:
		return add_parsed_word(s);
	case T_TO:
	case T_APPEND:
		return add_target(s, t == T_APPEND);
	case T_BAD:
		return t;
	default:
		return end_stage(s, t);
	}
}

int shell_parse(struct shell_script *p, const char *line)
{
	struct parser s = { .p = p, .at = line, .fill = p->text };
	enum token t;

	p->nr_stages = p->nr_words = p->nr_status = 0;
	p->error[0] = '\0';
	if (strlen(line) > SHELL_LINE_MAX) {
		bad_token(&s, "the line is longer than 1024 bytes");
		return -EINVAL;
	}
	do
		t = parse_step(&s);
	while (t != T_END && t != T_BAD);
	return t == T_BAD ? -EINVAL : 0;
}
