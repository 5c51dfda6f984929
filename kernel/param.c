/* SPDX-License-Identifier: MIT */
/* Kernel parameters: the command line taken apart. */
#include <boot/boot_info.h>
#include <kernel/errno.h>
#include <kernel/param.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

REGISTRY(struct kernel_param, kernel_params);

/* Values point into it for ever. */
static char cmdline[BOOT_CMDLINE];

int param_switch(const char *value, bool *on)
{
	bool off = !strcmp(value, "0") || !strcmp(value, "off");

	if (!off && *value && strcmp(value, "1") && strcmp(value, "on"))
		return -EINVAL;
	*on = !off;
	return 0;
}

static void say_unknown(const char *name)
{
	const struct kernel_param *p;

	/* In pieces, for a message has a limit. No other CPU runs yet. */
	printk("param: unknown '%s' (known:", name);
	for_each_registered (p, kernel_params)
		printk(" %s", p->name);
	printk(")\n");
}

static void set_param(const char *name, const char *value)
{
	const struct kernel_param *p;

	for_each_registered (p, kernel_params) {
		if (strcmp(p->name, name))
			continue;
		if (p->set(value))
			printk("param: bad value '%s' for %s; it takes %s\n",
			       value, name, p->accepts);
		return;
	}
	say_unknown(name);
}

/*
 * Cut the word at *at, quotes removed, NUL-terminated in place. *at moves past
 * it. Quotes group blanks and may stand around the value or the whole word.
 */
static char *next_param_word(char **at)
{
	char *from = *at, *to, *word;
	bool quoted = false;

	while (*from == ' ' || *from == '\t' || *from == '\n')
		from++;
	word = to = from;
	for (; *from &&
	       (quoted || (*from != ' ' && *from != '\t' && *from != '\n'));
	     from++) {
		if (*from == '"')
			quoted = !quoted;
		else
			*to++ = *from;
	}
	if (quoted)
		printk("param: a double quote is not closed\n");
	*at = *from ? from + 1 : from;
	/* word == from: nothing but blanks was left. */
	if (word == from)
		return NULL;
	*to = '\0';
	return word;
}

void param_parse_text(char *text)
{
	char *at = text, *word;

	while ((word = next_param_word(&at))) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		set_param(word, value ? value : "");
	}
}

void param_parse(void)
{
	if (boot_info.cmdline_truncated)
		printk("param: the command line was longer: only its first %zu "
		       "bytes are here\n",
		       strlen(boot_info.cmdline));
	string_copy(cmdline, boot_info.cmdline, sizeof(cmdline));
	param_parse_text(cmdline);
}
