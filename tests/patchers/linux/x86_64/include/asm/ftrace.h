/* SPDX-License-Identifier: MIT */
/* Linux's records of call sites: here there is one. */
#ifndef PATCHERS_ASM_FTRACE_H
#define PATCHERS_ASM_FTRACE_H

#include <linux/patching.h>

#define MCOUNT_INSN_SIZE 5
#define MCOUNT_ADDR ((unsigned long)ftrace_call)
extern char ftrace_call[MCOUNT_INSN_SIZE], ftrace_regs_call[MCOUNT_INSN_SIZE];
extern const void *ftrace_expected;

enum {
	FTRACE_UPDATE_IGNORE,
	FTRACE_UPDATE_MAKE_CALL,
	FTRACE_UPDATE_MODIFY_CALL,
	FTRACE_UPDATE_MAKE_NOP
};

/* Its one record, the change that is due, and where it calls to, now and then. */
struct ftrace_rec_iter {
	struct dyn_ftrace rec;
	int update, error;
	unsigned long now, next;
};
extern struct ftrace_rec_iter one_record;
#define for_ftrace_rec_iter(iter)                                              \
	for ((iter) = &one_record; (iter); (iter) = NULL)
#define ftrace_rec_iter_record(iter) (&(iter)->rec)
#define ftrace_test_record(rec, enable) ((void)(enable), one_record.update)
#define ftrace_get_addr_curr(rec) ((void)(rec), one_record.now)
#define ftrace_get_addr_new(rec) ((void)(rec), one_record.next)
#define ftrace_update_record(rec, enable) ((void)(rec), (void)(enable))
#define ftrace_bug(code, rec) ((void)(rec), (void)(one_record.error = (code)))

void ftrace_replace_code(int enable);

#endif
