/* SPDX-License-Identifier: MIT */
/*
 * The words of Linux that its patch code for x86-64 uses beyond <linux/patching.h>. Features of a
 * CPU are off, so that alternative.c's replacements at boot, which nothing calls here, compile.
 */
#ifndef PATCHERS_ASM_X86_H
#define PATCHERS_ASM_X86_H

#include <linux/patching.h>

#include <kernel/image/symbols.h>

#define __initdata
#define __initdata_or_module __attribute__((unused))
#define __init_or_module __attribute__((unused))
#define __ro_after_init
#define __ref
#define noinstr notrace
#define EXPORT_SYMBOL_GPL(symbol)
#define EXPORT_SYMBOL(symbol)
#define __visible
#define fallthrough __attribute__((fallthrough))
#define cond_resched() ((void)0)
#define kstrtouint(text, base, to) ((void)(text), *(to) = 0, 0)
#define __setup(text, function)                                                \
	static int (*const setup_##function)(char *) __attribute__((unused)) = \
		function
#define pr_crit(...) printk("# unexpected bytes at a jump label\n")
#define KERN_DEBUG
#define KERN_CONT
#define BUG() panic("BUG() in Linux's patch code")
#define barrier() __asm__ volatile("" : : : "memory")
#define OPTIMIZER_HIDE_VAR(variable) __asm__("" : "+r"(variable))
#define min_t(type, a, b) ((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define INT_MAX 0x7fffffff
#define WARN_ON_ONCE(wrong) WARN_ON(wrong)
#define WARN_ONCE(wrong, text) ((void)(wrong), printk("# " text "\n"))
#define kasan_disable_current() ((void)0)
#define kasan_enable_current() ((void)0)
#define is_module_text_address(address) ((void)(address), false)
#define perf_event_text_poke(address, old, old_length, new, new_length)        \
	((void)(address), (void)(old), (void)(new))

/* ---- features, and alternatives at boot ---- */

#define NCAPINTS 1
#define NBUGINTS 0
#define X86_FEATURE_NX 0
#define boot_cpu_has(feature) ((void)(feature), false)
#define ALTINSTR_FLAG_INV 0x8000
#define ALT_FLAG_NOT 1
#define ALT_FLAG_DIRECT_CALL 2
#define paravirt_set_cap() ((void)0)
#define ibt_save(...) 0
#define ibt_restore(ibt) ((void)(ibt))
#define stop_nmi() ((void)0)
#define restart_nmi() ((void)0)
#define apply_paravirt(start, end) ((void)0)

struct alt_instr {
	s32 instr_offset, repl_offset;
	u16 cpuid, flags;
	u8 instrlen, replacementlen;
};
void apply_alternatives(struct alt_instr *start, struct alt_instr *end);
void apply_retpolines(s32 *start, s32 *end);
void apply_returns(s32 *start, s32 *end);
void apply_ibt_endbr(s32 *start, s32 *end);
void alternative_instructions(void);

extern struct alt_instr __alt_instructions[], __alt_instructions_end[];
enum cfi_mode { CFI_AUTO, CFI_OFF, CFI_KCFI, CFI_FINEIBT };
void nop_func(void);
#define DEFINE_ASM_FUNC(function, text, section)                               \
	void function(void)                                                    \
	{                                                                      \
	}
#define callthunks_patch_builtin_calls() ((void)0)

/* The encodings that Intel and AMD recommend for one NOP of so many bytes. */
#define ASM_NOP_MAX 8
#define BYTES_NOP1 0x90
#define BYTES_NOP2 0x66, 0x90
#define BYTES_NOP3 0x0f, 0x1f, 0x00
#define BYTES_NOP4 0x0f, 0x1f, 0x40, 0x00
#define BYTES_NOP5 0x0f, 0x1f, 0x44, 0x00, 0x00
#define BYTES_NOP6 0x66, BYTES_NOP5
#define BYTES_NOP7 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00
#define BYTES_NOP8 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
extern const unsigned char *const x86_nops[];
extern int alternatives_patched;

/* ---- its self-test of the breakpoint, which nothing calls ---- */

/* The function that it calls is in a section of Linux's: no assembly at file scope. */
#define asm(text)

#define ANNOTATE_NOENDBR
#define ASM_CALL_CONSTRAINT "+r"(stack_pointer)
#define __ASM_SEL_RAW(narrow, wide) "D"
#define _ASM_ARG1 "rdi"
#define asm_inline __asm__
#define ALTERNATIVE(old, new, feature) ""
register unsigned long stack_pointer __asm__("rsp");
enum { NOTIFY_DONE, NOTIFY_STOP, DIE_INT3 };
struct notifier_block {
	int (*notifier_call)(struct notifier_block *self, unsigned long val,
			     void *data);
	int priority;
};
struct pt_regs;
struct die_args {
	struct pt_regs *regs;
};
#define register_die_notifier(block) ((void)(block), 0)
#define unregister_die_notifier(block) ((void)(block))

/* ---- the mapping through which text is written: it is the text itself ---- */

struct mm_struct;
typedef unsigned long pte_t, pgprot_t;
typedef int *spinlock_t;
#define _stext _text
#define current NULL
#define after_bootmem true
#define virt_to_page(address) phys_to_page((unsigned long)(address))
#define PageReserved(page) ((void)(page), true)
#define offset_in_page(address) ((unsigned long)(address) & ~PAGE_MASK)
#define PAGE_SHIFT 12
#define PAGE_KERNEL 0
#define _PAGE_GLOBAL 0
#define pgprot_val(protection) (protection)
#define __pgprot(protection) (protection)
#define mk_pte(page, protection) ((void)(page), (protection))
#define VM_BUG_ON(wrong) ((void)(wrong))
static pte_t unused_pte __attribute__((unused));
#define get_locked_pte(mm, address, lock)                                      \
	((void)(mm), (void)(address), *(lock) = NULL, &unused_pte)
#define set_pte_at(mm, address, place, pte)                                    \
	((void)(mm), (void)(address), (void)(place), (void)(pte))
#define pte_clear(mm, address, place)                                          \
	((void)(mm), (void)(address), (void)(place))
#define pte_unmap_unlock(place, lock) ((void)(place), (void)(lock))
#define flush_tlb_mm_range(mm, from, to, shift, freed) ((void)(mm))
#define this_cpu_read(variable) 0
#define smp_processor_id() 0
#define leave_mm(...) ((void)0)
#define switch_mm_irqs_off(from, to, task) ((void)(to))
#define hw_breakpoint_active() false
#define hw_breakpoint_disable() ((void)0)
#define hw_breakpoint_restore() ((void)0)
#define lockdep_assert_irqs_disabled() ((void)0)
#define local_irq_save(flags) ((void)((flags) = 0))
#define local_irq_restore(flags) ((void)(flags))

/* ---- atomics: another CPU's trap uses the same count ---- */

#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_mb__before_atomic() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define atomic_set_release(a, to)                                              \
	__atomic_store_n(&(a)->value, (to), __ATOMIC_RELEASE)
#define arch_atomic_dec(a)                                                     \
	((void)__atomic_fetch_sub(&(a)->value, 1, __ATOMIC_SEQ_CST))
#define atomic_dec_and_test(a)                                                 \
	(__atomic_sub_fetch(&(a)->value, 1, __ATOMIC_SEQ_CST) == 0)
#define atomic_cond_read_acquire(a, condition)                                 \
	({                                                                     \
		int VAL;                                                       \
                                                                               \
		while (VAL = __atomic_load_n(&(a)->value, __ATOMIC_ACQUIRE),   \
		       !(condition))                                           \
			cpu_relax();                                           \
		VAL;                                                           \
	})

/* Their names in 6.12. */
#define raw_atomic_dec(a) arch_atomic_dec(a)
#define raw_atomic_inc_not_zero(a) arch_atomic_inc_not_zero(a)

static always_inline bool arch_atomic_inc_not_zero(atomic_t *a)
{
	int seen = __atomic_load_n(&a->value, __ATOMIC_RELAXED);

	while (seen &&
	       !__atomic_compare_exchange_n(&a->value, &seen, seen + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return seen;
}

/* The element of a sorted array that compares as 0, or NULL. */
static always_inline void *
__inline_bsearch(const void *key, const void *array, size_t nr, size_t size,
		 int (*compare)(const void *key, const void *element))
{
	const char *from = array;

	while (nr) {
		const char *middle = from + nr / 2 * size;
		int order = compare(key, middle);

		if (!order)
			return (void *)middle;
		if (order > 0)
			from = middle + size;
		nr = order > 0 ? (nr - 1) / 2 : nr / 2;
	}
	return NULL;
}

/* ---- stores and synchronisation ---- */

/* As Linux's memcpy() without fast strings: of four to seven bytes it stores the first word, then
 * the last one. */
static inline void *copy_anywhere(void *to, const void *from, size_t length)
{
	unsigned long at = (unsigned long)to;

	if (at < (unsigned long)_text || at >= (unsigned long)_etext)
		return memcpy(to, from, length);
	if (length < 4) {
		patcher_write(at, from, length);
		return to;
	}
	patcher_write_once(at, from, 4);
	if (length > 4)
		patcher_write_once(at + length - 4,
				   (const char *)from + length - 4, 4);
	return to;
}
#define memcpy(to, from, length) copy_anywhere(to, from, length)

#define sync_core() patcher_sync()
#define on_each_cpu(function, argument, wait)                                  \
	((void)(function), (void)(argument), patcher_sync_all())

#endif
