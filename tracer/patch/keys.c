/* SPDX-License-Identifier: MIT */
/* The keys of jump labels, and the batches that switch them. */
#include <tracer/patch/keys.h>

#include <tracer/sites/sites.h>

/* As tools/mksites counts them. */
static_assert(sizeof(struct static_key) == 2 * sizeof(void *), "two pointers");

const struct static_key *jump_key(unsigned int i)
{
	return &__start_static_keys[jump_key_number[i]];
}

static u32 want_keys(unsigned int w, const void *arg)
{
	u32 bits = 0;

	(void)arg;
	for (unsigned int i = 32 * w; i < min(32 * w + 32, jump_count); i++)
		bits |= (u32)jump_key(i)->on << i % 32;
	return bits;
}

int static_keys_apply(struct patch_batch *b)
{
	return patch_apply_jumps(b, want_keys, NULL);
}

int static_key_set(struct patch_batch *b, struct static_key *key, bool on)
{
	bool before = key->on;
	int err;

	key->on = on;
	err = static_keys_apply(b);
	if (err)
		key->on = before;
	return err;
}
