/* SPDX-License-Identifier: MIT */
/* Proves that format_args() formats as the C standard says, and never writes past its buffer. */
#include <kernel/test/ktest.h>
#include <kernel/image/symbols.h>
#include <kernel/lib/string.h>

static char buf[128];

#define EXPECT_TEXT(t, want, ...)                                              \
	do {                                                                   \
		int len = snprintf(buf, sizeof(buf), __VA_ARGS__);             \
		KEXPECT_EQ(t, len, strlen(want));                              \
		if (strcmp(buf, want))                                         \
			printk("# '%s' is not '%s'\n", buf, want);             \
		KEXPECT(t, !strcmp(buf, want));                                \
	} while (0)

KTEST(format_numbers, "printk.numbers")
{
	EXPECT_TEXT(t, "0 -1 2147483647", "%d %d %i", 0, -1, 0x7fffffff);
	EXPECT_TEXT(t, "-2147483648", "%d", (int)0x80000000);
	EXPECT_TEXT(t, "4294967295 ffffffff FFFF", "%u %x %X", ~0u, ~0u,
		    0xffff);
	EXPECT_TEXT(t, "18446744073709551615", "%llu", ~0ull);
	EXPECT_TEXT(t, "-9223372036854775808", "%lld", (long long)(1ull << 63));
	EXPECT_TEXT(t, "123456789abcdef0", "%llx", 0x123456789abcdef0ull);
	EXPECT_TEXT(t, "-5 7 9", "%ld %lu %zu", -5l, 7ul, (size_t)9);
	EXPECT_TEXT(t, "-1 255 -1 65535", "%hhd %hhu %hd %hu", 0xff, 0x1ff,
		    0xffff, 0x1ffff);
	EXPECT_TEXT(t, "[   42][42   ][00042][+42][ 42]",
		    "[%5d][%-5d][%05d][%+d][% d]", 42, 42, 42, 42, 42);
	EXPECT_TEXT(t, "[-0042][  -42][ 0042][0x2a][0]",
		    "[%05d][%5d][%5.4d][%#x][%#x]", -42, -42, 42, 42, 0);
	EXPECT_TEXT(t, "[   7][7   ][007]", "[%*d][%*d][%.*d]", 4, 7, -4, 7, 3,
		    7);
}

KTEST(format_text, "printk.text")
{
	const char *volatile none = NULL;

	EXPECT_TEXT(t, "abc|  abc|abc  |ab|x|%", "%s|%5s|%-5s|%.2s|%c|%%",
		    "abc", "abc", "abc", "abc", 'x');
	EXPECT_TEXT(t, "(null)", "%s", none);
	EXPECT_TEXT(t, "0x1234", "%p", (void *)0x1234);
}

KTEST(format_symbol, "printk.symbol")
{
	const char *name = "snprintf+0x0/0x";
	struct symbol s;

	KASSERT(t, symbol_at((unsigned long)snprintf, &s));
	snprintf(buf, sizeof(buf), "%pS", (void *)snprintf);
	KEXPECT(t, !strncmp(buf, name, strlen(name)));
	/* The end of a function is still in it for a return address. */
	snprintf(buf, sizeof(buf), "%pB", (void *)(s.start + s.size));
	KEXPECT(t, !strncmp(buf, name, strlen("snprintf+0x")));
	EXPECT_TEXT(t, "0x10", "%pS", (void *)16);
	EXPECT_TEXT(t, "      0x10", "%10pS", (void *)16);
}

KTEST(format_bounds, "printk.bounds")
{
	char small[8];

	memset(small, '#', sizeof(small));
	KEXPECT_EQ(t, snprintf(small, 5, "%s", "abcdefgh"), 8);
	KEXPECT(t, !strcmp(small, "abcd"));
	KEXPECT(t, small[5] == '#');
	KEXPECT_EQ(t, snprintf(small, 1, "%d", 1234), 4);
	KEXPECT(t, small[0] == '\0' && small[1] == 'b');
	small[0] = '#';
	KEXPECT_EQ(t, snprintf(small, 0, "%d", 1234), 4);
	KEXPECT(t, small[0] == '#');
	KEXPECT_EQ(t, format_within(small, 5, "%s", "abc"), 3);
	KEXPECT_EQ(t, format_within(small + 3, 2, "%s", "defgh"), 1);
	KEXPECT(t, !strcmp(small, "abcd") && small[5] == '#');
	KEXPECT_EQ(t, format_within(small, 1, "%d", 1234), 0);
	KEXPECT_EQ(t, format_within(small, 0, "%d", 1234), 0);
}
