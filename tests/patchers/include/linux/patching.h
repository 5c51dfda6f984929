/* SPDX-License-Identifier: MIT */
/*
 * The words of Linux that its files of patch code use, in terms of tracer/lab/patcher.h.
 * Every store to text, every synchronisation and every rendezvous goes to the lab. Locks and
 * mappings do nothing: the lab runs one such file at a time, and patcher_write() finds a writable
 * alias by itself.
 */
#ifndef PATCHERS_LINUX_PATCHING_H
#define PATCHERS_LINUX_PATCHING_H

#include <arch/arch.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/types.h>
#include <tracer/lab/patcher.h>

#define CONFIG_MMU 1
#define CONFIG_DYNAMIC_FTRACE 1
#define CONFIG_DYNAMIC_FTRACE_WITH_REGS 1
#define IS_ENABLED(option) 0

#define __always_inline always_inline
#define __acquires(lock)
#define __releases(lock)
#define NOKPROBE_SYMBOL(function)
#define __read_mostly
#define __maybe_unused __attribute__((unused))
#define __init
#define __kprobes
#define unlikely(x) (x)
#define pr_err(...) printk(__VA_ARGS__)
#define pr_warn(...) printk(__VA_ARGS__)

/* ---- locks, which the lab's one task does not need ---- */

static int text_mutex __attribute__((unused));
#define mutex_lock(lock) ((void)(lock))
#define mutex_unlock(lock) ((void)(lock))
#define lockdep_assert_held(lock) ((void)(lock))
#define DEFINE_RAW_SPINLOCK(lock) int lock __attribute__((unused))
#define raw_spin_lock_irqsave(lock, flags) ((void)(flags))
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(flags))

#define preempt_disable() ((void)0)
#define preempt_enable() ((void)0)

/* ---- atomics and the rendezvous ---- */

typedef struct {
	int value;
} atomic_t;
#define ATOMIC_INIT(start)                                                     \
	{                                                                      \
		(start)                                                        \
	}
#define atomic_inc_return(a) (++(a)->value)
#define atomic_inc_return_release(a) atomic_inc_return(a)
#define atomic_inc(a) ((void)++(a)->value)
#define atomic_read(a) ((a)->value)
#define num_online_cpus() 1 /* the lab holds the others */
#define cpu_relax() arch_cpu_relax()
#define smp_mb() __sync_synchronize()
#define cpu_online_mask NULL
#define stop_machine_cpuslocked(fn, data, cpus)                                \
	((void)(cpus), patcher_hold_all(fn, data))
#define stop_machine(fn, data, cpus) stop_machine_cpuslocked(fn, data, cpus)

/* ---- mappings of text: the address stays what it is ---- */

struct page;
enum { SYSTEM_BOOTING, SYSTEM_RUNNING };
#define system_state SYSTEM_RUNNING
#define core_kernel_text(address) ((void)(address), true)
#define __pa_symbol(address) ((unsigned long)(address))
#define phys_to_page(address) ((struct page *)((address) & ~(PAGE_SIZE - 1ul)))
#define vmalloc_to_page(address) phys_to_page((unsigned long)(address))
#define page_to_phys(page) ((unsigned long)(page))
#define set_fixmap_offset(index, address) ((void)(index), (address))
#define clear_fixmap(index) ((void)(index))
#ifndef PAGE_MASK
#define PAGE_MASK (~(PAGE_SIZE - 1ul))
#endif

/* ---- stores ---- */

/* As Linux's: the largest words that both addresses are aligned to, one store each. */
static inline long copy_to_kernel_nofault(void *to, const void *from,
					  size_t length)
{
	unsigned long both = (unsigned long)to | (unsigned long)from | length;
	size_t word = both % 8 == 0 && sizeof(long) == 8 ? 8 :
		      both % 4 == 0			 ? 4 :
		      both % 2 == 0			 ? 2 :
							   1;

	for (size_t at = 0; at < length; at += word)
		if (patcher_write((unsigned long)to + at,
				  (const char *)from + at, word))
			return -EFAULT;
	return 0;
}

static inline long copy_from_kernel_nofault(void *to, const void *from,
					    size_t length)
{
	memcpy(to, from, length);
	return 0;
}

static inline void flush_icache_range(unsigned long from, unsigned long to)
{
	(void)from, (void)to;
	patcher_sync_all();
}

#define kick_all_cpus_sync() patcher_sync_all()

/* ---- bits ---- */

#define BIT(n) (1ul << (n))
#define IS_ALIGNED(number, to) ((number) % (to) == 0)
#define WARN_RATELIMIT(wrong, ...) ((void)(wrong), printk(__VA_ARGS__))
#define GENMASK(high, low)                                                     \
	((~0ul >> (sizeof(long) * 8 - 1 - (high))) & (~0ul << (low)))
#define SZ_128M 0x8000000l
#define WARN_ON(wrong)                                                         \
	({                                                                     \
		bool wrong_ = (wrong);                                         \
                                                                               \
		if (wrong_)                                                    \
			printk("# WARN_ON(" #wrong ")\n");                     \
		wrong_;                                                        \
	})

/* ---- ftrace ---- */

struct module;
struct dyn_ftrace {
	unsigned long ip;
};
typedef void (*ftrace_func_t)(unsigned long ip, unsigned long parent);

int ftrace_init_nop(struct module *mod, struct dyn_ftrace *rec);
int ftrace_make_call(struct dyn_ftrace *rec, unsigned long addr);
int ftrace_make_nop(struct module *mod, struct dyn_ftrace *rec,
		    unsigned long addr);
int ftrace_modify_call(struct dyn_ftrace *rec, unsigned long old_addr,
		       unsigned long addr);
int ftrace_dyn_arch_init(void);
int ftrace_update_ftrace_func(ftrace_func_t func);
void arch_ftrace_update_code(int command);
#define FTRACE_MAY_SLEEP 0
#define ftrace_modify_all_code(command) ((void)(command))
#define __module_text_address(address) ((void)(address), NULL)
void ftrace_arch_code_modify_prepare(void);
void ftrace_arch_code_modify_post_process(void);

#endif
