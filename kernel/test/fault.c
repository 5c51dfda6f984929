/* SPDX-License-Identifier: MIT */
/* Mistakes on purpose: fault.h. */
#include <kernel/test/fault.h>

#include <arch/arch.h>
#include <kernel/ctl/ctl.h>
#include <kernel/errno.h>
#include <kernel/lib/format.h>
#include <kernel/lib/string.h>
#include <kernel/param.h>
#include <kernel/time.h>

typedef struct fault *fault_ptr;
REGISTRY(fault_ptr, faults);

notrace bool fault_happens(struct fault *f)
{
	const u32 *read = READ_ONCE(f->read);
	u32 from = READ_ONCE(f->from), time;

	if (!from)
		return false;
	time = __atomic_add_fetch(&f->times, 1, __ATOMIC_RELAXED);
	if (time < from || (time > from && READ_ONCE(f->once)))
		return false;
	if (read)
		(void)READ_ONCE(*read);
	return true;
}

static void plant_fault(struct fault *f, u32 from, bool once)
{
	WRITE_ONCE(f->from, 0);
	WRITE_ONCE(f->times, 0);
	WRITE_ONCE(f->once, once);
	WRITE_ONCE(f->from, from);
}

void fault_dawdle(void)
{
	u64 begin = time_ns();

	while (time_ns() - begin < NSEC_PER_MSEC)
		arch_cpu_relax();
}

void fault_plant(struct fault *f, u32 from)
{
	plant_fault(f, from, false);
}

void fault_plant_once(struct fault *f, u32 nth)
{
	plant_fault(f, nth, true);
}

static struct fault *fault_find(const char *name)
{
	const fault_ptr *f;

	for_each_registered (f, faults)
		if (!strcmp((*f)->name, name))
			return *f;
	return NULL;
}

struct fault *fault_plant_text(const char *value)
{
	const char *end = strchr(value, ':');
	char name[40];
	u64 from = 1;
	struct fault *f;

	if (!end)
		end = strchr(value, '@');
	if (!end)
		end = value + strlen(value);
	if ((size_t)(end - value) >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(end - value), value);
	if (*end && (parse_u64(end + 1, &from) || !from || from >> 32))
		return NULL;
	f = fault_find(name);
	if (f)
		plant_fault(f, from, *end == '@');
	return f;
}

static int fault_param(const char *value)
{
	return fault_plant_text(value) ? 0 : -EINVAL;
}
KERNEL_PARAM(fault, "fault",
	     "NAME, NAME:N or NAME@N, a name that `cat /proc/faults` lists",
	     fault_param);

static int faults_read(struct ctl_handle *h, struct seq *s)
{
	struct fault *const *f = __start_faults + h->pos;

	if (f >= __stop_faults)
		return 0;
	h->pos++;
	if ((*f)->from)
		seq_printf(s, "%-18s %s time %-4u %s\n", (*f)->name,
			   (*f)->once ? "only" : "from", (*f)->from,
			   (*f)->what);
	else
		seq_printf(s, "%-18s %-14s %s\n", (*f)->name, "off",
			   (*f)->what);
	return 1;
}
CTL_FILE(faults, .path = "/proc/faults", .read = faults_read);
