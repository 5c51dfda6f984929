/* SPDX-License-Identifier: MIT */
/* /sys/devices/system/cpu: online, present, possible, and cpuN/online. */
#include <boot/boot_info.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>

#define CPU_DIR "/sys/devices/system/cpu/"

/* Linux's list format: "0-3", "0,2-3", or nothing. */
static void print_list(struct seq *s, cpumask_t mask)
{
	const char *comma = "";

	for (unsigned int c = 0, last; c < MAX_CPUS; c = last + 1) {
		last = c;
		if (!(mask & (1u << c)))
			continue;
		while (last + 1 < MAX_CPUS && mask & (1u << (last + 1)))
			last++;
		seq_printf(s, "%s%u", comma, c);
		if (last > c)
			seq_printf(s, "-%u", last);
		comma = ",";
	}
	seq_printf(s, "\n");
}

static void online_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	print_list(s, READ_ONCE(cpus_online));
}
CTL_FILE(cpus_online, .path = CPU_DIR "online", .show = online_show);

static void present_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	print_list(s, cpus_present());
}
CTL_FILE(cpus_present, .path = CPU_DIR "present", .show = present_show);

static void possible_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	print_list(s, cpus_below(boot_info.nr_cpus));
}
CTL_FILE(cpus_possible, .path = CPU_DIR "possible", .show = possible_show);

static void cpu_show(struct ctl_handle *h, struct seq *s)
{
	seq_printf(s, "%d\n", cpu_online(h->index));
}

static int explain_hotplug(struct ctl_handle *h, int err)
{
	unsigned int c = h->index;

	switch (err) {
	case 0:
		return 0;
	case -ENODEV:
		return ctl_error(h, err,
				 "CPU %u was left out at boot: maxcpus=%u", c,
				 nr_cpus);
	case -EPERM:
		return ctl_error(
			h, err,
			"CPU 0 stays online: devices interrupt it, and "
			"one CPU must be left");
	case -ETIMEDOUT:
		return ctl_error(h, err, "CPU %u does not answer", c);
	case -EIO:
		return ctl_error(h, err, "the firmware refuses to start CPU %u",
				 c);
	default:
		return ctl_error(h, err, "CPU %u: out of memory", c);
	}
}

static int cpu_write(struct ctl_handle *h, char *text)
{
	bool on;
	int err = ctl_bool(h, text, &on);

	if (err)
		return err;
	return explain_hotplug(h, on ? cpu_up(h->index) : cpu_down(h->index));
}
CTL_FILE(cpu_is_online, .path = CPU_DIR "cpu%u/online", .possible = true,
	 .show = cpu_show, .write = cpu_write);
