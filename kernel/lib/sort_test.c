/* SPDX-License-Identifier: MIT */
/* Proves that rows are sorted, that none is lost, and how many comparisons it takes. */
#include <kernel/lib/sort.h>
#include <kernel/lib/string.h>
#include <kernel/test/ktest.h>

#define ROWS 300

struct sort_row {
	u32 key, copy, marks;
};

static struct sort_row sorted[ROWS + 2];
static unsigned int comparisons;

static bool row_is_less(const void *a, const void *b)
{
	const struct sort_row *x = a, *y = b;

	comparisons++;
	return x->key < y->key;
}

/* The key of row i, in one of five orders. */
static u32 key_of(unsigned int order, unsigned int i, u32 *seed)
{
	switch (order) {
	case 0:
		return i;
	case 1:
		return ROWS - i;
	case 2:
		return 7;
	case 3:
		return i % 2 ? i : ROWS - i;
	default:
		return ktest_random(seed) % 100;
	}
}

static void check_sorted(struct ktest_run *t, unsigned int order,
			 unsigned int n, u32 *seed)
{
	u64 sum = 0, after = 0;
	unsigned int i, wrong = 0;

	memset(sorted, 0xee, sizeof(sorted));
	for (i = 0; i < n; i++) {
		u32 key = key_of(order, i, seed);

		sorted[1 + i] = (struct sort_row){ key, key, i * i };
		sum += key + (u64)i * i;
	}
	comparisons = 0;
	sort_rows(&sorted[1], n, sizeof(sorted[0]), row_is_less);
	for (i = 0; i < n; i++) {
		after += sorted[1 + i].key + sorted[1 + i].marks;
		wrong += sorted[1 + i].key != sorted[1 + i].copy;
		wrong += i && sorted[1 + i].key < sorted[i].key;
	}
	KEXPECT_EQ(t, wrong, 0);
	KEXPECT_EQ(t, after, sum);
	KEXPECT_EQ(t, sorted[0].key, 0xeeeeeeee);
	KEXPECT_EQ(t, sorted[1 + n].key, 0xeeeeeeee);
	/* 2 n log2(n), of 300 rows. */
	KEXPECT(t, comparisons <= 2 * 9 * ROWS);
}

KTEST(sort_any_order, "sort.any_order")
{
	u32 seed = 7;

	for (unsigned int order = 0; order < 5; order++)
		for (unsigned int n = 0; n <= ROWS; n = n < 9 ? n + 1 : n * 2)
			check_sorted(t, order, n, &seed);
	for (unsigned int order = 0; order < 5; order++)
		check_sorted(t, order, ROWS, &seed);
}
