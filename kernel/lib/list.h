/* SPDX-License-Identifier: MIT */
/* Circular doubly linked lists. A node that is on no list points to itself. */
#ifndef KERNEL_LIST_H
#define KERNEL_LIST_H

#include <kernel/types.h>

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name)                                                        \
	{                                                                      \
		&(name), &(name)                                               \
	}

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

/* Insert n before pos: at the tail when pos is the list's head. */
static inline void list_add_before(struct list *pos, struct list *n)
{
	n->next = pos;
	n->prev = pos->prev;
	pos->prev->next = n;
	pos->prev = n;
}

/* Take n off its list. Taking off a node that is on none is harmless. */
static inline void list_del(struct list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_for_each(pos, head, member)                                       \
	for ((pos) = list_entry((head)->next, __typeof__(*(pos)), member);     \
	     &(pos)->member != (head);                                         \
	     (pos) = list_entry((pos)->member.next, __typeof__(*(pos)),        \
				member))

#endif
