/* SPDX-License-Identifier: MIT */
/* Messages' bytes: p9_wire.h. */
#include <kernel/p9/p9_wire.h>

#include <kernel/lib/string.h>

static bool wire_has(struct p9_wire *w, u32 n)
{
	w->bad |= n > w->size - w->at;
	return !w->bad;
}

u64 p9_get(struct p9_wire *w, unsigned int n)
{
	u64 value = 0;

	if (!wire_has(w, n))
		return 0;
	for (unsigned int i = 0; i < n; i++)
		value |= (u64)w->buf[w->at + i] << 8 * i;
	w->at += n;
	return value;
}

void p9_get_text(struct p9_wire *w, char *text, size_t size)
{
	u32 n = p9_get(w, 2);

	*text = '\0';
	w->bad |= n >= size;
	if (!wire_has(w, n))
		return;
	memcpy(text, w->buf + w->at, n);
	text[n] = '\0';
	w->bad |= strlen(text) != n;
	w->at += n;
}

void p9_put(struct p9_wire *w, u64 value, unsigned int n)
{
	if (!wire_has(w, n))
		return;
	for (unsigned int i = 0; i < n; i++)
		w->buf[w->at++] = value >> 8 * i;
}

void p9_put_text(struct p9_wire *w, const char *text)
{
	u32 n = strlen(text);

	p9_put(w, n, 2);
	if (!wire_has(w, n))
		return;
	memcpy(w->buf + w->at, text, n);
	w->at += n;
}
