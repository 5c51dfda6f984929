/* SPDX-License-Identifier: MIT */
/* Proves the string functions, number parsing, and filter patterns. */
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/lib/string.h>
#include <kernel/lib/glob.h>

static bool all_are(const u8 *p, u8 value, size_t n)
{
	while (n--)
		if (*p++ != value)
			return false;
	return true;
}

/* Every alignment and the lengths around a word, with a border on both sides. */
KTEST(string_memory, "string.memory")
{
	static u8 a[64], b[64];

	for (size_t at = 8; at < 16; at++)
		for (size_t n = 0; n < 20; n++) {
			memset(a, 1, sizeof(a));
			memset(b, 2, sizeof(b));
			memset(a + at, 3, n);
			KEXPECT(t, all_are(a, 1, at) && all_are(a + at, 3, n) &&
					   all_are(a + at + n, 1, 64 - at - n));
			memcpy(b + 8, a + at, n);
			KEXPECT(t, all_are(b, 2, 8) && all_are(b + 8, 3, n) &&
					   all_are(b + 8 + n, 2, 56 - n));
		}
	for (u8 i = 0; i < 64; i++)
		a[i] = b[i] = i;
	memmove(a + 3, a, 40);
	KEXPECT(t, !memcmp(a + 3, b, 40) && !memcmp(a, b, 3));
	memmove(a, a + 3, 40);
	KEXPECT(t, !memcmp(a, b, 40));
	KEXPECT(t, memcmp("a", "b", 1) < 0 && memcmp("b", "a", 1) > 0);
	KEXPECT_EQ(t, memcmp("a", "b", 0), 0);
}

/* memcpy() from each alignment to each, with no byte beyond; words are put together from two. */
KTEST(string_copies, "string.copies")
{
	static u8 a[96], b[96];

	for (u8 i = 0; i < sizeof(a); i++)
		a[i] = 100 + i;
	for (size_t i = 0; i < 8 * 8 * 56; i++) {
		size_t from = 8 + i % 8, to = 8 + i / 8 % 8, n = i / 64;

		memset(b, 2, sizeof(b));
		memcpy(b + to, a + from, n);
		KASSERT(t, all_are(b, 2, to) && !memcmp(b + to, a + from, n) &&
				   all_are(b + to + n, 2, sizeof(b) - to - n));
	}
}

KTEST(string_text, "string.text")
{
	const char *s = "trace_entry";
	char small[4];

	KEXPECT_EQ(t, strlen(""), 0);
	KEXPECT_EQ(t, strlen(s), 11);
	KEXPECT_EQ(t, strnlen(s, 5), 5);
	KEXPECT(t, !strcmp("a", "a") && strcmp("a", "ab") < 0);
	KEXPECT(t, strcmp("b", "ab") > 0 && strcmp("\xff", "a") > 0);
	KEXPECT(t, !strncmp("abc", "abd", 2) && strncmp("abc", "abd", 3) < 0);
	KEXPECT(t, !strncmp("a", "a", 9) && !strncmp("a", "b", 0));
	KEXPECT(t, strchr(s, '_') == s + 5 && !strchr(s, 'q'));
	KEXPECT(t, strchr(s, '\0') == s + 11);
	KEXPECT(t, strrchr(s, 'r') == s + 9 && !strrchr(s, 'q'));
	KEXPECT(t, strstr(s, "ent") == s + 6 && !strstr(s, "x"));
	KEXPECT(t, strstr(s, "") == s && strstr(s, "entry") == s + 6);
	KEXPECT_EQ(t, string_copy(small, "abcdef", sizeof(small)), 6);
	KEXPECT(t, !strcmp(small, "abc"));
	KEXPECT_EQ(t, string_copy(small, "x", 0), 1);
}

static long long parsed_u64(const char *s)
{
	u64 v = 0;
	int err = parse_u64(s, &v);

	return err ? err : (long long)v;
}

KTEST(string_parse, "string.parse_u64")
{
	u64 v;

	KEXPECT_EQ(t, parsed_u64("0"), 0);
	KEXPECT_EQ(t, parsed_u64("1234"), 1234);
	KEXPECT_EQ(t, parsed_u64("0xfF"), 255);
	KEXPECT_EQ(t, parsed_u64("4K"), 4096);
	KEXPECT_EQ(t, parsed_u64("0x2m"), 2 << 20);
	KEXPECT_EQ(t, parse_u64("18446744073709551615", &v), 0);
	KEXPECT(t, v == ~0ull);
	KEXPECT_EQ(t, parsed_u64("18446744073709551616"), -ERANGE);
	KEXPECT_EQ(t, parsed_u64("0x8000000000000000K"), -ERANGE);
	KEXPECT_EQ(t, parsed_u64(""), -EINVAL);
	KEXPECT_EQ(t, parsed_u64("0x"), -EINVAL);
	KEXPECT_EQ(t, parsed_u64("-1"), -EINVAL);
	KEXPECT_EQ(t, parsed_u64("12a"), -EINVAL);
	KEXPECT_EQ(t, parsed_u64("1 "), -EINVAL);
	KEXPECT_EQ(t, parsed_u64("1KK"), -EINVAL);
}

/* A negative error, or the number. */
static long long parsed_in_base(const char *s, unsigned int base)
{
	u64 v = 0;
	int err = parse_in_base(s, base, &v);

	return err ? err : (long long)v;
}

/* As Linux 6.1 takes and refuses them in its files. */
KTEST(string_number, "string.parse_in_base")
{
	KEXPECT_EQ(t, parsed_in_base("12", 10), 12);
	KEXPECT_EQ(t, parsed_in_base("+1", 10), 1);
	KEXPECT_EQ(t, parsed_in_base("010", 10), 10);
	KEXPECT_EQ(t, parsed_in_base("08", 10), 8);
	KEXPECT_EQ(t, parsed_in_base("010", 0), 8);
	KEXPECT_EQ(t, parsed_in_base("08", 0), -EINVAL);
	KEXPECT_EQ(t, parsed_in_base("0", 0), 0);
	KEXPECT_EQ(t, parsed_in_base("0X1f", 0), 0x1f);
	KEXPECT_EQ(t, parsed_in_base("1F", 16), 0x1f);
	/* Leading zeros do not count as digits, however many there are. */
	KEXPECT_EQ(t, parsed_in_base("00000000000000001f", 16), 0x1f);
	KEXPECT_EQ(t, parsed_in_base("10000000000000000", 16), -ERANGE);
	KEXPECT_EQ(t, parsed_in_base("99999999999999999999", 10), -ERANGE);
	static const char *const wrong[] = { "",   "+",	  "-1",	 " 1",	"1 ",
					     "1k", "0x1", "1\n", "0b1", "one" };
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++)
		KEXPECT_EQ(t, parsed_in_base(wrong[i], 10), -EINVAL);
	KEXPECT_EQ(t, parsed_in_base("0x", 0), -EINVAL);
	KEXPECT_EQ(t, parsed_in_base("0x1", 16), -EINVAL);
	KEXPECT_EQ(t, parsed_in_base("1g", 16), -EINVAL);
}

static const struct {
	const char *pattern, *text;
	bool matches;
} globs[] = {
	{ "", "", true },
	{ "", "a", false },
	{ "*", "", true },
	{ "*", "anything", true },
	{ "abc", "abc", true },
	{ "abc", "abcd", false },
	{ "a?c", "abc", true },
	{ "a?c", "ac", false },
	{ "sched_*", "sched_tick", true },
	{ "sched_*", "xsched_tick", false },
	{ "*_tick", "sched_tick", true },
	{ "*a*b*c", "xxaxxbxxbxxc", true },
	{ "*a*b*c", "xxaxxcxxbxx", false },
	{ "*aab", "aaaab", true },
	{ "[a-c]x", "bx", true },
	{ "[a-c]x", "dx", false },
	{ "[!a-c]x", "dx", true },
	{ "[!a-c]x", "ax", false },
	{ "[]]", "]", true },
	{ "[a-]", "-", true },
	{ "[abc", "[abc", true },
	{ "[", "[", true },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "a\\?", "a?", true },
	{ "\\", "\\", true },
	{ "**", "abc", true },
	{ "?*?", "ab", true },
	{ "?*?", "a", false },
};

KTEST(string_glob, "string.glob_match")
{
	for (unsigned int i = 0; i < ARRAY_SIZE(globs); i++)
		if (glob_match(globs[i].pattern, globs[i].text) !=
		    globs[i].matches) {
			printk("# '%s' and '%s'\n", globs[i].pattern,
			       globs[i].text);
			ktest_fail(t, __FILE__, __LINE__, "the other answer");
		}
}
