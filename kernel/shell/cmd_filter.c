/* SPDX-License-Identifier: MIT */
/* Filters: grep head tail wc xxd. */
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/bits.h>
#include <kernel/lib/list.h>
#include <kernel/shell/shell_internal.h>
#include <kernel/lib/string.h>
#include <kernel/mm/kmalloc.h>

#define FILTER_LINE                                                            \
	1280 /* has room for a marker, longer lines are taken in pieces */
#define TAIL_MAX 100000

static void *filter_new(const char *name, size_t size, struct sink *out,
			int (*write)(struct sink *s, const char *t, size_t n))
{
	struct filter *f = kmalloc_zeroed(size);

	if (!f) {
		shell_error(-ENOMEM, name, "out of memory");
		return NULL;
	}
	f->sink.write = write;
	f->out = out;
	f->max_files = 1;
	return f;
}

/* ---- lines out of bytes ---- */

struct line_filter {
	struct filter f;
	int (*line)(struct line_filter *l, const char *text, size_t len);
	size_t len;
	char buf[FILTER_LINE];
};

static int line_flush(struct line_filter *l)
{
	size_t len = l->len;

	l->len = 0;
	return l->line(l, l->buf, len);
}

static int line_write(struct sink *s, const char *text, size_t len)
{
	struct line_filter *l = container_of(s, struct line_filter, f.sink);
	int err = 0;

	for (size_t i = 0; i < len && !err; i++) {
		if (text[i] != '\n')
			l->buf[l->len++] = text[i];
		if (text[i] == '\n' || l->len == FILTER_LINE - 1)
			err = line_flush(l);
	}
	return err;
}

/* ---- grep ---- */

#define GREP_FLAGS "vcin"
enum { GREP_INVERT = 1, GREP_COUNT = 2, GREP_NOCASE = 4, GREP_NUMBER = 8 };

#define GREP_WORDS                                                             \
	((SHELL_LINE_MAX + SHELL_STATUS_MAX * SHELL_STATUS_DIGITS) / 32 + 1)

struct grep {
	struct line_filter l;
	const char *pattern;
	unsigned int flags;
	unsigned long lines, matches;
	/* While a line is matched: a bit for each place in the pattern that the text so far
	 * leads to. */
	unsigned int words; /* that the pattern needs */
	u32 places[GREP_WORDS], next[GREP_WORDS];
};

static char fold_case(const struct grep *g, char c)
{
	return g->flags & GREP_NOCASE && c >= 'A' && c <= 'Z' ? c + 'a' - 'A' :
								c;
}

/* One pattern character: how long it is, and whether it matches c. */
static size_t atom_len(const char *re)
{
	return re[0] == '\\' && re[1] ? 2 : 1;
}

static bool atom_match(const struct grep *g, const char *re, char c)
{
	if (!c)
		return false;
	if (atom_len(re) == 2)
		return fold_case(g, re[1]) == fold_case(g, c);
	return re[0] == '.' || fold_case(g, re[0]) == fold_case(g, c);
}

static bool is_starred(const char *re)
{
	return *re && re[atom_len(re)] == '*';
}

/* A starred character can be left out, so the text also leads to the place behind it. */
static void lead_to(const struct grep *g, u32 *places, size_t i)
{
	const char *re = g->pattern + i;

	for (;;) {
		i = re - g->pattern;
		places[i / 32] |= 1u << i % 32;
		if (!is_starred(re))
			return;
		re += atom_len(re) + 1;
	}
}

/* Go on from one place by the text's next character, which is 0 at its end. True: the text
 * before that character matches. */
static bool step_from(struct grep *g, size_t i, char c)
{
	const char *re = g->pattern + i;

	if (!*re)
		return true;
	if (re[0] == '$' && !re[1])
		return !c;
	if (atom_match(g, re, c))
		lead_to(g, g->next, is_starred(re) ? i : i + atom_len(re));
	return false;
}

/* All places at once. So a line takes no more steps than its length times the pattern's. */
static bool grep_step(struct grep *g, char c)
{
	memset(g->next, 0, g->words * sizeof(u32));
	for (unsigned int w = 0; w < g->words; w++)
		for (u32 bits = g->places[w]; bits; bits &= bits - 1)
			if (step_from(g, w * 32 + bit_lowest(bits), c))
				return true;
	memcpy(g->places, g->next, g->words * sizeof(u32));
	return false;
}

static bool grep_matches(struct grep *g, const char *text)
{
	bool anchored = g->pattern[0] == '^';

	memset(g->places, 0, g->words * sizeof(u32));
	lead_to(g, g->places, anchored);
	while (!grep_step(g, *text)) {
		if (!*text++)
			return false;
		if (!anchored)
			lead_to(g, g->places, 0);
	}
	return true;
}

static int grep_line(struct line_filter *l, const char *text, size_t len)
{
	struct grep *g = container_of(l, struct grep, l);
	struct sink *out = l->f.out;
	int err = 0;

	l->buf[len] = '\0';
	g->lines++;
	if (grep_matches(g, text) == !!(g->flags & GREP_INVERT))
		return 0;
	g->matches++;
	if (g->flags & GREP_COUNT)
		return 0;
	err = l->f.many ? sink_printf(out, "%s:", l->f.file) : 0;
	if (!err && g->flags & GREP_NUMBER)
		err = sink_printf(out, "%lu:", g->lines);
	l->buf[len] = '\n';
	return err ? err : out->write(out, text, len + 1);
}

static int grep_end(struct filter *f)
{
	struct grep *g = container_of(f, struct grep, l.f);
	int err = g->l.len ? line_flush(&g->l) : 0;

	if (!err && g->flags & GREP_COUNT)
		err = sink_printf(f->out, "%lu\n", g->matches);
	return err;
}

static int grep_options(struct grep *g, const char *text)
{
	const char *flag;

	for (; *text; text++) {
		flag = strchr(GREP_FLAGS, *text);
		if (!flag)
			return shell_error(-EINVAL, "grep",
					   "-%c: unknown; -v -c -i -n are "
					   "accepted",
					   *text);
		g->flags |= 1u << (flag - GREP_FLAGS);
	}
	return 0;
}

static struct filter *cmd_grep(struct sink *out, int argc, char **argv,
			       int *first)
{
	struct grep *g = filter_new("grep", sizeof(*g), out, line_write);
	int i, err = 0;

	if (!g)
		return NULL;
	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1] && !err; i++)
		err = grep_options(g, argv[i] + 1);
	if (!err && i == argc)
		err = shell_error(-EINVAL, "grep",
				  "no PATTERN; accepted are "
				  "text, . and * and \\, ^ and $ at the ends");
	if (err) {
		kfree(g);
		return NULL;
	}
	g->pattern = argv[i];
	g->words = strlen(g->pattern) / 32 + 1;
	*first = i + 1;
	g->l.line = grep_line;
	g->l.f.end = grep_end;
	g->l.f.max_files = argc;
	return &g->l.f;
}
SHELL_FILTER(grep, "grep", "[-vcin] PATTERN [FILE...]",
	     "print lines that match", cmd_grep);

/* ---- head ---- */

/* -n N or -N. *first after it. */
static int line_count(char **argv, unsigned long *n, int *first)
{
	const char *text = argv[1];

	*n = 10;
	*first = 1;
	if (!text || text[0] != '-')
		return 0;
	*first = 2;
	text++;
	if (*text == 'n' && !*++text) {
		text = argv[2];
		*first = 3;
	}
	return shell_number(argv[0], text, TAIL_MAX, n);
}

struct head {
	struct filter f;
	unsigned long left;
};

static int head_write(struct sink *s, const char *text, size_t len)
{
	struct head *h = container_of(s, struct head, f.sink);
	size_t n = 0;
	int err;

	while (n < len && h->left)
		if (text[n++] == '\n')
			h->left--;
	err = n ? h->f.out->write(h->f.out, text, n) : 0;
	/* head ends the pipeline with the last line that it wants, and not after it: a
	 * file that blocks might never have another line. */
	return err || h->left ? err : -EPIPE;
}

static struct filter *cmd_head(struct sink *out, int argc, char **argv,
			       int *first)
{
	unsigned long n;
	struct head *h;

	(void)argc;
	if (line_count(argv, &n, first))
		return NULL;
	h = filter_new("head", sizeof(*h), out, head_write);
	if (!h)
		return NULL;
	h->left = n;
	return &h->f;
}
SHELL_FILTER(head, "head", "[-n N | -N] [FILE]",
	     "print the first 10 or N lines", cmd_head);

/* ---- tail ---- */

struct tail_line {
	struct list link;
	size_t len;
	char text[];
};

struct tail {
	struct line_filter l;
	struct list lines;
	unsigned long nr, max;
};

static void tail_drop(struct tail *t)
{
	struct tail_line *first =
		list_entry(t->lines.next, struct tail_line, link);

	list_del(&first->link);
	kfree(first);
	t->nr--;
}

static int tail_keep(struct line_filter *l, const char *text, size_t len)
{
	struct tail *t = container_of(l, struct tail, l);
	struct tail_line *line;

	if (!t->max)
		return 0;
	if (t->nr == t->max)
		tail_drop(t);
	line = kmalloc(sizeof(*line) + len);
	if (!line)
		return shell_error(-ENOMEM, "tail", "out of memory");
	line->len = len;
	memcpy(line->text, text, len);
	list_add_before(&t->lines, &line->link);
	t->nr++;
	return 0;
}

static int tail_end(struct filter *f)
{
	struct tail *t = container_of(f, struct tail, l.f);
	int err = t->l.len ? line_flush(&t->l) : 0;
	struct tail_line *line;

	list_for_each (line, &t->lines, link) {
		if (!err)
			err = f->out->write(f->out, line->text, line->len);
		if (!err)
			err = f->out->write(f->out, "\n", 1);
	}
	return err;
}

static void tail_release(struct filter *f)
{
	struct tail *t = container_of(f, struct tail, l.f);

	while (t->nr)
		tail_drop(t);
}

static struct filter *cmd_tail(struct sink *out, int argc, char **argv,
			       int *first)
{
	unsigned long n;
	struct tail *t;

	(void)argc;
	if (line_count(argv, &n, first))
		return NULL;
	t = filter_new("tail", sizeof(*t), out, line_write);
	if (!t)
		return NULL;
	list_init(&t->lines);
	t->max = n;
	t->l.line = tail_keep;
	t->l.f.end = tail_end;
	t->l.f.release = tail_release;
	return &t->l.f;
}
SHELL_FILTER(tail, "tail", "[-n N | -N] [FILE]", "print the last 10 or N lines",
	     cmd_tail);

/* ---- wc ---- */

struct wc {
	struct filter f;
	bool lines_only, in_word;
	unsigned long lines, words, bytes;
};

static int wc_write(struct sink *s, const char *text, size_t len)
{
	struct wc *w = container_of(s, struct wc, f.sink);

	for (size_t i = 0; i < len; i++) {
		bool blank = strchr(" \t\n", text[i]);

		w->lines += text[i] == '\n';
		w->words += !blank && !w->in_word;
		w->in_word = !blank;
	}
	w->bytes += len;
	return 0;
}

static int wc_end(struct filter *f)
{
	struct wc *w = container_of(f, struct wc, f);
	const char *gap = f->file ? " " : "";
	const char *name = f->file ? f->file : "";

	if (w->lines_only)
		return sink_printf(f->out, "%lu%s%s\n", w->lines, gap, name);
	return sink_printf(f->out, "%7lu %7lu %7lu%s%s\n", w->lines, w->words,
			   w->bytes, gap, name);
}

static struct filter *cmd_wc(struct sink *out, int argc, char **argv,
			     int *first)
{
	struct wc *w;

	*first = argc > 1 && argv[1][0] == '-' ? 2 : 1;
	if (*first == 2 && strcmp(argv[1], "-l")) {
		shell_error(-EINVAL, "wc", "%s: unknown; -l is accepted",
			    argv[1]);
		return NULL;
	}
	w = filter_new("wc", sizeof(*w), out, wc_write);
	if (!w)
		return NULL;
	w->lines_only = *first == 2;
	w->f.end = wc_end;
	return &w->f;
}
SHELL_FILTER(wc, "wc", "[-l] [FILE]", "count lines, words and bytes", cmd_wc);

/* ---- xxd ---- */

#define XXD_BYTES 30 /* on a line, as xxd -p has them */

struct xxd {
	struct filter f;
	unsigned int on_line;
};

static int xxd_write(struct sink *s, const char *text, size_t len)
{
	struct xxd *x = container_of(s, struct xxd, f.sink);
	int err = 0;

	for (size_t i = 0; i < len && !err; i++) {
		bool full = ++x->on_line == XXD_BYTES;

		err = sink_printf(x->f.out, full ? "%02x\n" : "%02x",
				  (u8)text[i]);
		if (full)
			x->on_line = 0;
	}
	return err;
}

static int xxd_end(struct filter *f)
{
	struct xxd *x = container_of(f, struct xxd, f);

	return x->on_line ? sink_printf(f->out, "\n") : 0;
}

static struct filter *cmd_xxd(struct sink *out, int argc, char **argv,
			      int *first)
{
	struct xxd *x;

	*first = 2;
	if (argc < 2 || strcmp(argv[1], "-p")) {
		shell_error(-EINVAL, "xxd", "-p is needed: plain hexadecimal");
		return NULL;
	}
	x = filter_new("xxd", sizeof(*x), out, xxd_write);
	if (!x)
		return NULL;
	x->f.end = xxd_end;
	return &x->f;
}
SHELL_FILTER(xxd, "xxd", "-p [FILE]", "print bytes in hexadecimal", cmd_xxd);
