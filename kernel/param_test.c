/* SPDX-License-Identifier: MIT */
/*
 * Proves that the command line is taken apart as documented, by the parameter icount=,
 * which may be wrong for the time of a test.
 */
#include <boot/boot_info.h>
#include <kernel/test/ktest.h>
#include <kernel/param.h>
#include <kernel/lib/string.h>

static bool icount_after(const char *line)
{
	static char text[64];

	string_copy(text, line, sizeof(text));
	param_parse_text(text);
	return boot_info.icount;
}

KTEST(param_words, "param.words")
{
	bool was = boot_info.icount;

	KEXPECT(t, icount_after("icount=1"));
	KEXPECT(t, !icount_after("  icount=0  "));
	KEXPECT(t, icount_after("icount=\"1\""));
	KEXPECT(t, !icount_after("\"icount=0\""));
	KEXPECT(t, icount_after("icount=0 icount=1"));
	KEXPECT(t, icount_after(""));
	/* Each of these errors is one line on the console, and changes nothing. */
	KEXPECT(t, icount_after("icount=2"));
	KEXPECT(t, icount_after("icount"));
	KEXPECT(t, icount_after("icount=\"0 \""));
	KEXPECT(t, icount_after("count=0 =0 ="));
	/* The rest of the line is obeyed all the same. */
	KEXPECT(t, !icount_after("nonsense icount=x icount=0"));
	boot_info.icount = was;
}
