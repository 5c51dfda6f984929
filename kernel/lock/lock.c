/*
 * Ticket spinlocks. A ticket is a place in the queue: CPUs enter in the order
 * in which they came, so none starves. Whoever spins for too long says who
 * holds the lock, once.
 */
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/panic.h>
#include <kernel/printk.h>
#include <kernel/time.h>

#define SPIN_PANIC_NS (100 * NSEC_PER_MSEC)

u32 spin_complain_ms = 1000;
u32 spin_complaints;

void spin_init(struct spinlock *l, const char *name)
{
	*l = (struct spinlock)SPINLOCK_INIT(name);
}

static void set_holder(struct spinlock *l, unsigned long pc)
{
	WRITE_ONCE(l->holder_pc, pc);
	WRITE_ONCE(l->holder, (int)cpu_index() + 1);
}

static noinline void complain(struct spinlock *l, unsigned long pc)
{
	int holder = READ_ONCE(l->holder);

	__atomic_fetch_add(&spin_complaints, 1, __ATOMIC_RELAXED);
	printk_urgent("lock %s: CPU %u at %pS has spun for %u ms; held by CPU "
		      "%d since %pS\n",
		      l->name, cpu_index(), (void *)pc, spin_complain_ms,
		      holder - 1, (void *)READ_ONCE(l->holder_pc));
}

/*
 * From time to time while spinning: true to stop waiting. In a panic the holder
 * may be a CPU that was stopped in mid-air; what the panic prints is worth more
 * than what the lock protects, so the panicking CPU takes it then.
 */
static bool spun_too_long(struct spinlock *l, u64 start, unsigned long pc,
			  bool *said)
{
	u64 spun = clock_delta_to_ns(arch_clock() - start);

	if (panic_here() && spun > SPIN_PANIC_NS)
		return true;
	if (!*said && spun > spin_complain_ms * NSEC_PER_MSEC) {
		*said = true;
		complain(l, pc);
	}
	return false;
}

static noinline void spin_slow(struct spinlock *l, u32 ticket, unsigned long pc)
{
	u64 start = arch_clock();
	bool said = false;

	if (READ_ONCE(l->holder) == (int)cpu_index() + 1 && !panic_here())
		panic("lock %s: taken again at %pS; held by this CPU since %pS",
		      l->name, (void *)pc, (void *)l->holder_pc);
	/* Acquire: pairs with the release in spin_release(). Reading a clock
	 * may be slow, and is not what is waited for. */
	for (u32 n = 1; __atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != ticket;
	     n++) {
		if (n % 64 == 0 && spun_too_long(l, start, pc, &said)) {
			WRITE_ONCE(l->owner, ticket);
			return;
		}
		arch_cpu_relax();
	}
}

static inline void acquire_at(struct spinlock *l, unsigned long pc)
{
	u32 ticket = __atomic_fetch_add(&l->next, 1, __ATOMIC_RELAXED);

	/* Acquire: pairs with the release in spin_release(). */
	if (__atomic_load_n(&l->owner, __ATOMIC_ACQUIRE) != ticket)
		spin_slow(l, ticket, pc);
	set_holder(l, pc);
}

#define CALLER ((unsigned long)__builtin_return_address(0))

void spin_acquire(struct spinlock *l)
{
	acquire_at(l, CALLER);
}

void spin_release(struct spinlock *l)
{
	WRITE_ONCE(l->holder, 0);
	/* Release: pairs with the acquire of the next ticket's owner. */
	__atomic_store_n(&l->owner, l->owner + 1, __ATOMIC_RELEASE);
}

irq_state_t spin_lock(struct spinlock *l)
{
	irq_state_t state = arch_irq_save();

	preempt_disable();
	acquire_at(l, CALLER);
	return state;
}

int spin_trylock(struct spinlock *l, irq_state_t *state)
{
	u32 owner;

	*state = arch_irq_save();
	owner = READ_ONCE(l->owner);
	/* Acquire: pairs with the release in spin_release(). */
	if (!__atomic_compare_exchange_n(&l->next, &owner, owner + 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		arch_irq_restore(*state);
		return -EBUSY;
	}
	preempt_disable();
	set_holder(l, CALLER);
	return 0;
}

/* Interrupts come back before preemption does: a switch that was wanted in
 * between happens in preempt_enable(), and only if they were on before. */
void spin_unlock(struct spinlock *l, irq_state_t state)
{
	spin_release(l);
	arch_irq_restore(state);
	preempt_enable();
}
