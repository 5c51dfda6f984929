/* SPDX-License-Identifier: MIT */
/*
 * Proves that a CPU goes and comes back, alone or with others, and that a request that
 * cannot be met is refused and changes nothing: through calls, through control files, and
 * for a CPU that arrives late.
 */
#include <boot/boot_info.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/cpu/order.h>
#include <kernel/cpu/hotplug_testing.h>
#include <kernel/cpu/stop.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/string.h>
#include <kernel/patch_path.h>
#include <kernel/sched/task.h>
#include <kernel/image/symbols.h>
#include <kernel/test/ktest.h>
#include <kernel/time.h>
#include <kernel/test/again.h>

KTEST(hotplug_each, "hotplug.down_up")
{
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	for (unsigned int round = 0; round < 3; round++)
		for (unsigned int c = 1; c < nr_cpus; c++) {
			KEXPECT_EQ(t, cpu_down(c), 0);
			KEXPECT_EQ(t, cpus_online, all & ~(1u << c));
			KEXPECT_EQ(t, answering_cpus(), all & ~(1u << c));
			KEXPECT(t, !task_create("none", PRIO_LOW, 1u << c,
						set_cpu_in_mask, NULL));
			KEXPECT_EQ(t, cpu_up(c), 0);
			KEXPECT_EQ(t, cpus_online, all);
			KEXPECT_EQ(t, answering_cpus(), all);
		}
}

/* All CPUs but CPU 0 go at once, and come back in another order. */
KTEST(hotplug_all, "hotplug.alone")
{
	cpumask_t all = cpus_online;

	KNEED_TWO(t);
	for (unsigned int c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpus_online, 1);
	KEXPECT_EQ(t, answering_cpus(), 1);
	task_sleep(NSEC_PER_MSEC);
	for (unsigned int c = nr_cpus - 1; c; c--)
		KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, answering_cpus(), all);
}

KTEST(hotplug_refused, "hotplug.refused")
{
	cpumask_t all = cpus_online;
	unsigned int c = ktest_last_cpu();

	KEXPECT_EQ(t, cpu_down(0), -EPERM);
	KEXPECT_EQ(t, cpu_up(0), 0);
	KEXPECT_EQ(t, cpu_down(nr_cpus), -ENODEV);
	KEXPECT_EQ(t, cpu_up(nr_cpus), -ENODEV);
	KEXPECT_EQ(t, cpus_online, all);
	KNEED_TWO(t);
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpu_down(c), 0);
	KEXPECT_EQ(t, cpus_online, all & ~(1u << c));
	KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT_EQ(t, cpus_online, all);
}

/* ---- files ---- */

#define DIR "/sys/devices/system/cpu/"

static bool file_says(const char *name, const char *want)
{
	char path[64], text[32];
	struct ctl_handle *h;
	ssize_t n;

	snprintf(path, sizeof(path), DIR "%s", name);
	if (ctl_open(path, false, false, &h))
		return false;
	n = ctl_read(h, text, sizeof(text) - 1);
	ctl_abandon(h);
	text[max(n, (ssize_t)0)] = '\0';
	return !strcmp(text, want);
}

/*
 * Writes the text to the CPU's `online`. Returns the error, if exactly one line
 * explains it.
 */
static int online_refused(unsigned int c, const char *text)
{
	char path[64], error[160] = "";
	int err;

	snprintf(path, sizeof(path), DIR "cpu%u/online", c);
	err = ctl_echo(path, text, false, error, sizeof(error));
	return *error && !strchr(error, '\n') ? err : 0;
}

KTEST(hotplug_files, "hotplug.files")
{
	static const char *const wrong[] = {
		"2", "on", "0x0", "-1", "1 0", "\n"
	};
	cpumask_t all = cpus_online;
	char range[16];

	if (nr_cpus > 1)
		snprintf(range, sizeof(range), "0-%u\n", nr_cpus - 1);
	else
		snprintf(range, sizeof(range), "0\n");
	KEXPECT(t, file_says("online", range));
	KEXPECT(t, file_says("present", range));
	KEXPECT(t, file_says("cpu0/online", "1\n"));
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++)
		KEXPECT_EQ(t, online_refused(nr_cpus - 1, wrong[i]), -EINVAL);
	KEXPECT_EQ(t, online_refused(0, "0"), -EPERM);
	if (nr_cpus < boot_info.nr_cpus)
		KEXPECT_EQ(t, online_refused(nr_cpus, "1"), -ENODEV);
	KEXPECT_EQ(t, cpus_online, all);
}

KTEST(hotplug_list, "hotplug.files.list")
{
	if (nr_cpus != 4)
		KSKIP(t, "four CPUs are needed");
	KEXPECT(t, !ctl_echo(DIR "cpu1/online", "0", false, NULL, 0));
	KEXPECT(t, file_says("cpu1/online", "0\n"));
	KEXPECT(t, file_says("online", "0,2-3\n"));
	cpu_down(3);
	KEXPECT(t, file_says("online", "0,2\n"));
	cpu_down(2);
	KEXPECT(t, file_says("online", "0\n"));
	KEXPECT(t, file_says("present", "0-3\n"));
	for (unsigned int c = 1; c < 4; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
	KEXPECT(t, file_says("online", "0-3\n"));
}

/* ---- the order of events ---- */

struct seen_event {
	u32 cpu, event, on, online, irqs_off;
};
static struct seen_event seen_events[8];
static u32 nr_seen;

static notrace void see_event(enum order_event event, u32 c)
{
	struct seen_event *e = &seen_events[nr_seen % 8];

	if (event < ORDER_JOINED)
		return;
	nr_seen++;
	e->cpu = c;
	e->event = event;
	e->on = arch_this_cpu()->head.index;
	e->online = READ_ONCE(cpus_online) >> c & 1;
	e->irqs_off = arch_irqs_off();
}
PATCH_INDIRECT(order_tell, see_event);

KTEST(hotplug_events, "hotplug.events")
{
	static const struct {
		enum order_event event;
		u32 online;
	} want[] = { { ORDER_LEFT, 0 },
		     { ORDER_JOINED, 1 },
		     { ORDER_SYNCED, 1 } };
	void (*before)(enum order_event, u32) = order_hook;
	unsigned int c = ktest_last_cpu();

	KNEED_TWO(t);
	nr_seen = 0;
	PATCH_HOOK_SET(order_hook, order_tell, see_event);
	cpu_down(c);
	cpu_up(c);
	PATCH_HOOK_SET(order_hook, order_tell, before);
	KASSERT(t, nr_seen == ARRAY_SIZE(want));
	for (u32 i = 0; i < ARRAY_SIZE(want); i++) {
		KEXPECT_EQ(t, seen_events[i].cpu, c);
		KEXPECT_EQ(t, seen_events[i].on, c);
		KEXPECT_EQ(t, seen_events[i].event, want[i].event);
		KEXPECT_EQ(t, seen_events[i].online, want[i].online);
		KEXPECT(t, seen_events[i].irqs_off);
	}
}

/* ---- a CPU that is late ---- */

#define ADDS 20000u

static u32 added;

static void add_often(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < ADDS; i++)
		__atomic_fetch_add(&added, 1, __ATOMIC_RELAXED);
}

/* Are all of the kernel's lock prefixes there, where the machine has such? */
static bool atomics_are_smp(void)
{
	for (u32 i = 0; i < lock_count; i++)
		if (*((const u8 *)_text + lock_table[i]) != 0xf0)
			return false;
	return true;
}

/*
 * A CPU that was started and has not arrived when cpu_up() gives up is no CPU that
 * is away: atomics stay on, for it may arrive at any moment (H27). Nor may they be
 * off when it is let in at last.
 */
KTEST(hotplug_late, "hotplug.late_cpu")
{
	u64 usual = cpu_start_ns;
	unsigned int c;

	KNEED_TWO(t);
	for (c = 1; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_down(c), 0);
	fault_cpu_join_late.cpu = 1;
	fault_plant(&fault_cpu_join_late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	KEXPECT_EQ(t, cpu_up(1), -ETIMEDOUT);
	/* The firmware has let CPU 1 go: it waits in the kernel. */
	KASSERT(t, KWAIT(READ_ONCE(fault_cpu_join_late.times)));
	cpu_start_others(); /* as at boot: says that CPU 1 did not come */
	KEXPECT(t, atomics_are_smp());
	cpu_start_ns = usual;
	/* Others come and go meanwhile. A slow host's may not have come in 20 ms. */
	for (c = 2; c < nr_cpus; c++) {
		KEXPECT_EQ(t, cpu_up(c), 0);
		KEXPECT_EQ(t, cpu_down(c), 0);
	}
	KEXPECT(t, atomics_are_smp());
	fault_plant(&fault_cpu_join_late, 0);
	KEXPECT_EQ(t, cpu_up(1), 0);
	KEXPECT(t, atomics_are_smp());
	for (c = 2; c < nr_cpus; c++)
		KEXPECT_EQ(t, cpu_up(c), 0);
	added = 0;
	cpu_call(~0u, add_often, NULL);
	KEXPECT_EQ(t, added, ADDS * nr_cpus);
}

/* A CPU that parks only after cpu_down() has given up can come back all the same. */
KTEST(hotplug_parks_late, "hotplug.parks_late")
{
	u64 usual = cpu_start_ns;

	KNEED_TWO(t);
	fault_plant(&fault_cpu_park_late, 1);
	cpu_start_ns = 20 * NSEC_PER_MSEC;
	KEXPECT_EQ(t, cpu_down(1), -ETIMEDOUT);
	KEXPECT_EQ(t, cpu_up(1), -ETIMEDOUT);
	KEXPECT(t, !cpu_online(1) && atomics_are_smp());
	fault_plant(&fault_cpu_park_late, 0);
	cpu_start_ns = usual;
	KEXPECT_EQ(t, cpu_up(1), 0);
	KEXPECT(t, cpu_online(1));
	KEXPECT_EQ(t, cpu_down(1), 0);
	KEXPECT_EQ(t, cpu_up(1), 0);
}
