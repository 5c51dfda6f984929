/* SPDX-License-Identifier: MIT */
/*
 * set_ftrace_filter and the like: bitmaps of sites, changed by words
 * that name functions. A write is checked whole before it changes anything, and
 * touches only the bitmap words that it concerns, so that adding one function
 * costs the same however many there are.
 */
#include <tracer/core/tracer.h>

#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/glob.h>
#include <kernel/lib/format.h>
#include <kernel/mm/kmalloc.h>
#include <tracer/sites/sites.h>
#include <tracer/core/filter.h>

struct site_filter filter_graph = {
	.name = "set_graph_function",
	.empty = "#### all functions enabled ####",
	.bits = &site_bits.graph,
};
struct site_filter filter_graph_hidden = {
	.name = "set_graph_notrace",
	.empty = "#### no functions disabled ####",
	.bits = &site_bits.graph_hidden,
};
struct site_filter filter_stack = {
	.name = "stack_trace_filter",
	.empty = "#### all functions enabled ####",
	.bits = &site_bits.stack,
	.for_stack = true,
};

/* The action on each site that a word matches. */
struct match {
	void (*fn)(struct match *m, unsigned int site);
	struct site_filter *f;
	bool remove;
	unsigned int lo, hi; /* words that are concerned */
	unsigned int matched;
	unsigned int last;  /* of the sites matched */
	unsigned int words; /* words of text that name sites */
	unsigned int module_words;
};

static void match_site(struct match *m, unsigned int site)
{
	if (!site_test(live_calls.patchable, site))
		return;
	m->matched++;
	m->last = site;
	m->fn(m, site);
}

static void widen_match(struct match *m, unsigned int lo, unsigned int hi)
{
	if (lo >= hi)
		return;
	m->lo = m->lo < m->hi ? min(m->lo, lo) : lo;
	m->hi = max(m->hi, hi);
}

static void note_words(struct match *m, unsigned int site)
{
	widen_match(m, site / 32, site / 32 + 1);
}

static void change_bit(struct match *m, unsigned int site)
{
	u32 *word = &(*m->f->bits)[site / 32], bit = 1u << (site % 32);

	if (m->remove) {
		m->f->count -= !!(*word & bit);
		*word &= ~bit;
	} else {
		m->f->count += !(*word & bit);
		*word |= bit;
	}
}

static void match_name(struct match *m, const char *name)
{
	struct symbol f;

	if (!symbol_find(name, &f))
		return;
	for (unsigned int site = site_lower_bound(f.start);
	     site < site_count && site_address(site) < f.start + f.size; site++)
		match_site(m, site);
}

static void match_glob(struct match *m, const char *pattern)
{
	unsigned int site;

	for (site = 0; site < site_count; site++)
		if (glob_match(pattern, site_function(site)))
			match_site(m, site);
}

/* The n-th line of available_filter_functions, from 1. */
static void match_index(struct match *m, u64 n)
{
	unsigned int site;

	for (site = 0; site < site_count; site++)
		if (site_test(live_calls.patchable, site) && !--n) {
			match_site(m, site);
			return;
		}
}

static bool is_glob(const char *word)
{
	for (; *word; word++)
		/* Small letters stand behind all of these. */
		if (*word <= '\\' && (*word == '*' || *word == '?' ||
				      *word == '[' || *word == '\\'))
			return true;
	return false;
}

bool filter_names(const char *word, unsigned int i)
{
	return site_test(live_calls.patchable, i) &&
	       glob_match(word, site_function(i));
}

static void match_word(struct match *m, const char *word)
{
	u64 n;

	m->remove = *word == '!';
	word += m->remove;
	m->matched = 0;
	if (*word >= '0' && *word <= '9' && !parse_u64(word, &n)) {
		if (n)
			match_index(m, n);
	} else if (is_glob(word)) {
		match_glob(m, word);
	} else {
		match_name(m, word);
	}
}

/* Cut text into words, each NUL-terminated. Returns where it ends. */
static char *cut_words(char *text)
{
	for (; *text; text++)
		if (*text <= ' ' &&
		    (*text == ' ' || *text == '\t' || *text == '\n'))
			*text = '\0';
	return text;
}

static char *next_filter_word(char *p, const char *end)
{
	while (p < end && !*p)
		p++;
	return p < end ? p : NULL;
}

/* Functions of modules have their place in the filters of instances, as in Linux. */
static bool of_module(const struct match *m, const char *word)
{
	return m->f->in && filter_word_of_module(word);
}

static int check_words(struct ctl_handle *h, struct match *m, char *text,
		       const char *end)
{
	char *word = text;
	struct symbol f;

	m->fn = note_words;
	for (; (word = next_filter_word(word, end)); word += strlen(word)) {
		if (of_module(m, word)) {
			m->module_words++;
			continue;
		}
		m->words++;
		match_word(m, word);
		if (!m->matched && sites_all_known && symbol_find(word, &f))
			return ctl_error(h, -EINVAL,
					 "'%.64s' cannot be traced; "
					 "unpatchable_functions says why",
					 word);
		if (!m->matched)
			return ctl_error(h, -EINVAL,
					 "'%.64s' matches none of "
					 "available_filter_functions",
					 word);
	}
	return 0;
}

static void carry_out_words(struct match *m, char *text, const char *end,
			    bool append)
{
	struct site_filter *f = m->f;
	char *word = text;
	unsigned int w;

	if (!append) {
		for (w = f->lo; w < f->hi; w++)
			(*f->bits)[w] = 0;
		f->count = f->lo = f->hi = 0;
	}
	/* One function by name is common, and need not be looked up again. */
	if (m->words == 1 && m->matched == 1) {
		change_bit(m, m->last);
		end = text;
	}
	m->fn = change_bit;
	for (; (word = next_filter_word(word, end)); word += strlen(word))
		if (!of_module(m, word))
			match_word(m, word);
	/* m's range is the one that check_words() noted. */
	widen_match(m, f->lo, f->hi);
	f->lo = f->count ? m->lo : 0;
	f->hi = f->count ? m->hi : 0;
}

/* ---- Functions of modules ---- */

bool filter_word_of_module(const char *word)
{
	const char *colon = strchr(word, ':');

	return colon && !strncmp(colon, ":mod:", 5) && colon[5];
}

bool filter_show_module(struct seq *s, const struct site_filter *f,
			unsigned long *i)
{
	const char *line = f->modules, *end;

	for (; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!(*i)--) {
			seq_printf(s, "%.*s\n", (int)(end - line), line);
			return true;
		}
	}
	return false;
}

static unsigned int count_newlines(const char *lines)
{
	unsigned int n = 0;

	for (; lines && (lines = strchr(lines, '\n')); lines++)
		n++;
	return n;
}

/* The line that is this word, or NULL. */
static char *find_line(char *lines, const char *word)
{
	size_t n = strlen(word);

	while (*lines && (strncmp(lines, word, n) || lines[n] != '\n'))
		lines = strchr(lines, '\n') + 1;
	return *lines ? lines : NULL;
}

/* Each word looks for its line among those before it. The limit keeps that from taking the square
 * of a megabyte, under trace_mutex. */
#define MODULES_MAX 4096

/* Add the word to the lines, which have room for it, or take it out. */
static int change_modules(struct ctl_handle *h, const struct match *m,
			  char *lines, const char *word)
{
	bool remove = *word == '!';
	char *line = find_line(lines, word + remove);
	size_t len, n = strlen(word) + 1;

	if (remove && !line)
		return ctl_error(h, -EINVAL, "'%.64s' is not in %s", word + 1,
				 m->f->name);
	if (line)
		memmove(line, strchr(line, '\n') + 1,
			strlen(strchr(line, '\n')));
	len = strlen(lines);
	if (!remove && len + n > MODULES_MAX)
		return ctl_error(h, -E2BIG,
				 "words with :mod: take %d bytes at most",
				 MODULES_MAX);
	if (!remove)
		snprintf(lines + len, n + 1, "%s\n", word);
	return 0;
}

/* The modules that f will have after this write: *lines, a copy, or NULL for none. */
static int copy_modules(struct ctl_handle *h, const struct match *m, char *text,
			const char *end, bool append, char **lines)
{
	const char *old = append && m->f->modules ? m->f->modules : "";
	size_t size = strlen(old) + (end - text) + 2;
	char *word;
	int err = 0;

	*lines = NULL;
	if (!m->module_words && !*old)
		return 0;
	*lines = kmalloc(size);
	if (!*lines)
		return ctl_error(h, -ENOMEM, "out of memory");
	string_copy(*lines, old, size);
	for (word = text; !err && (word = next_filter_word(word, end));
	     word += strlen(word))
		if (of_module(m, word))
			err = change_modules(h, m, *lines, word);
	if (err || !**lines) {
		kfree(*lines);
		*lines = NULL;
	}
	return err;
}

/* ---- Writing ---- */

int filter_check(struct ctl_handle *h, struct site_filter *f, char *text,
		 bool append)
{
	struct match m = { .f = f };
	const char *end = cut_words(text);
	char *modules = NULL;
	int err = check_words(h, &m, text, end);

	if (!err)
		err = copy_modules(h, &m, text, end, append, &modules);
	kfree(modules);
	return err;
}

/* From none to some functions, or back, all sites are concerned. */
static int update_sites(struct ctl_handle *h, const struct match *m,
			const struct site_filter *old)
{
	if (m->f->for_stack)
		return trace_update(h, 0, site_words);
	/* The tracer is not the only client: the profiler goes by the top level's filter, too. */
	if (!m->f->in)
		return 0;
	if (m->f == &m->f->in->filter && !old->count != !m->f->count)
		return trace_update(h, 0, site_words);
	return trace_update(h, m->lo, m->hi);
}

/* A CPU looks at the bits with interrupts off (graph.c), and a refresh interrupts it. */
static void drop_bits(struct site_filter *f)
{
	u32 *bits = *f->bits;

	WRITE_ONCE(*f->bits, NULL);
	trace_refresh();
	kfree(bits);
}

void filter_forget(struct site_filter *f)
{
	kfree(f->modules);
	f->modules = NULL;
	f->count = f->lo = f->hi = 0;
}

int filter_write(struct ctl_handle *h, struct site_filter *f, char *text,
		 bool append)
{
	struct site_filter old = *f;
	struct match words = { .f = f }, all;
	const char *end = cut_words(text);
	u32 few[8], *saved = few, *bits;
	char *modules = NULL;
	int err = check_words(h, &words, text, end);

	if (err)
		return err;
	/* Release: that they are empty is seen first. */
	if (!*f->bits && words.words)
		__atomic_store_n(f->bits, site_bitmap_alloc(),
				 __ATOMIC_RELEASE);
	bits = *f->bits;
	if (!bits)
		return words.words ? ctl_error(h, -ENOMEM, "out of memory") : 0;
	all = words;
	if (!append)
		widen_match(&all, f->lo, f->hi);
	if (all.lo >= all.hi && !f->modules && !words.module_words)
		return 0;
	if (all.hi - all.lo > ARRAY_SIZE(few))
		saved = kmalloc((all.hi - all.lo) * sizeof(u32));
	err = saved ? copy_modules(h, &words, text, end, append, &modules) :
		      ctl_error(h, -ENOMEM, "out of memory");
	if (err)
		goto out;
	memcpy(saved, bits + all.lo, (all.hi - all.lo) * sizeof(u32));
	carry_out_words(&words, text, end, append);
	f->modules = modules;
	f->count += count_newlines(modules) -
		    (append ? count_newlines(old.modules) : 0);
	err = update_sites(h, &all, &old);
	if (err) {
		memcpy(bits + all.lo, saved, (all.hi - all.lo) * sizeof(u32));
		*f = old;
	}
	kfree(err ? modules : old.modules);
out:
	if (saved != few)
		kfree(saved);
	if (!f->in && !f->count)
		drop_bits(f);
	return err;
}
