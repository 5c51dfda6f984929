/* SPDX-License-Identifier: MIT */
/* A walk over the entries of a binary page, for the tests of pages and of their files. */
#ifndef TRACER_RAW_TESTING_H
#define TRACER_RAW_TESTING_H

#include <kernel/test/ktest.h>

/* Where the walk is. */
extern struct page_walk {
	const char *at, *end;
	u64 time;
	u32 len;
	const char *payload;
	bool swapped; /* the page is in the other byte order */
} raw_walk;

/* A number of so many bytes, in the page's byte order. */
u64 raw_number_at(const char *p, unsigned int size);
/* Begin with a page. The number of entries that were lost before it. */
u64 raw_walk_begin(struct ktest_run *t, const char *page);
/* Go to the next entry of the page. False: there is no more. */
bool raw_next_entry(struct ktest_run *t);

/* Call victim_call() so often. */
void raw_call_victim(unsigned int times);

#endif
