/* SPDX-License-Identifier: MIT */
/* Heap sort: sort.h. */
#include <kernel/lib/sort.h>

static void swap_rows(void *x, void *y, size_t size)
{
	u32 *a = x, *b = y;

	for (size_t i = 0; i < size / sizeof(u32); i++) {
		u32 word = a[i];

		a[i] = b[i];
		b[i] = word;
	}
}

/* Row i has two children, 2i + 1 and 2i + 2, and comes last of the three. Let it sink until that is
 * so again. */
static void sink_row(char *rows, size_t i, size_t n, size_t size,
		     bool (*comes_first)(const void *a, const void *b))
{
	size_t child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n &&
		    comes_first(rows + child * size, rows + (child + 1) * size))
			child++;
		if (!comes_first(rows + i * size, rows + child * size))
			return;
		swap_rows(rows + i * size, rows + child * size, size);
	}
}

void sort_rows(void *base, size_t n, size_t size,
	       bool (*comes_first)(const void *a, const void *b))
{
	char *rows = base;

	for (size_t i = n / 2; i--;)
		sink_row(rows, i, n, size, comes_first);
	while (n > 1) {
		n--;
		swap_rows(rows, rows + n * size, size);
		sink_row(rows, 0, n, size, comes_first);
	}
}
