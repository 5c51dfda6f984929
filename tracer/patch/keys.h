/* SPDX-License-Identifier: MIT */
/* Switching jump labels (arch/jump_label.h): all labels of a key together. */
#ifndef TRACER_SITES_KEYS_H
#define TRACER_SITES_KEYS_H

#include <arch/jump_label.h>
#include <tracer/patch/patch.h>

REGISTRY(struct static_key, static_keys);

/* The key of jump label i of jump_table. */
const struct static_key *jump_key(unsigned int i);

/*
 * Switch every jump label as the `on` of its key says, in one batch, by the strategy that is
 * chosen. 0, or patch_apply()'s error, which b explains. After an error no label has changed.
 * Context: a task, interrupts on, trace_mutex held.
 */
int static_keys_apply(struct patch_batch *b);

/* Set one key and apply it. After an error the key is as before. Context: as above. */
int static_key_set(struct patch_batch *b, struct static_key *key, bool on);

#endif
