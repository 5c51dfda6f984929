/* SPDX-License-Identifier: MIT */
/* One jump label, in terms of Linux: where it stands, and where it jumps to. */
#ifndef PATCHERS_LINUX_JUMP_LABEL_H
#define PATCHERS_LINUX_JUMP_LABEL_H

#include <linux/patching.h>

enum jump_label_type { JUMP_LABEL_NOP, JUMP_LABEL_JMP };

struct jump_entry {
	unsigned long code, target;
};
#define jump_entry_code(entry) ((entry)->code)
#define jump_entry_target(entry) ((entry)->target)

void arch_jump_label_transform(struct jump_entry *entry,
			       enum jump_label_type type);
bool arch_jump_label_transform_queue(struct jump_entry *entry,
				     enum jump_label_type type);
void arch_jump_label_transform_apply(void);

extern const struct lab_victim lab_victim_jump;
extern const char lab_victim_jump_yes[]; /* in the port's lab.S */

/*
 * jump_label.c as the lab asks for patch code: transform(&entry, type) switches the label, which
 * leads to `yes`, and prepare(site) makes a NOP of whatever bytes are there.
 */
#define LABEL_PATCHER(transform, bytes, of_victim, yes, prepares)              \
	static int label_switch(unsigned long site, enum jump_label_type type) \
	{                                                                      \
		struct jump_entry entry = { site, (unsigned long)(yes) };      \
                                                                               \
		transform(&entry, type);                                       \
		return 0;                                                      \
	}                                                                      \
                                                                               \
	static int label_on(unsigned long site)                                \
	{                                                                      \
		return label_switch(site, JUMP_LABEL_JMP);                     \
	}                                                                      \
                                                                               \
	static int label_off(unsigned long site)                               \
	{                                                                      \
		return label_switch(site, JUMP_LABEL_NOP);                     \
	}                                                                      \
                                                                               \
	LAB_PATCHER(linux_label, "jump_label.c", .from = "Linux",              \
		    .victim = (of_victim), .length = (bytes),                  \
		    .prepare = (prepares), .on = label_on, .off = label_off,   \
		    LABEL_TRAP)
/* A port whose label needs it says which trap. */
#ifndef LABEL_TRAP
#define LABEL_TRAP .trap = NULL
#endif

/* Of the port's own label, which is switched off from any bytes. */
#define JUMP_LABEL_PATCHER(transform, bytes)                                   \
	LABEL_PATCHER(transform, bytes, &lab_victim_jump, lab_victim_jump_yes, \
		      label_off)

#endif
