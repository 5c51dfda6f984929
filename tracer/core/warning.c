/* SPDX-License-Identifier: MIT */
/* traceoff_on_warning: warning.h. */
#include <tracer/core/warning.h>

#include <kernel/errno.h>
#include <kernel/lock/lock.h>
#include <kernel/lock/mutex.h>
#include <kernel/param.h>
#include <tracer/core/client.h>
#include <tracer/core/tracer.h>

bool warning_ends_trace(void)
{
	mutex_assert_held(&trace_mutex);
	return cleared_by_complaint;
}

static void want_warning(bool on)
{
	WRITE_ONCE(cleared_by_complaint, on ? &trace_top.on : NULL);
}

static void warning_show(struct ctl_handle *h, struct seq *s)
{
	(void)h;
	seq_printf(s, "%d\n", !!READ_ONCE(cleared_by_complaint));
}

static int warning_write(struct ctl_handle *h, char *text)
{
	bool before;
	int on, err = ctl_int(h, text, CTL_SWITCH, &on);

	if (err)
		return err;
	before = warning_ends_trace();
	want_warning(on);
	err = clients_settings_changed(h);
	if (err) {
		want_warning(before);
		clients_settings_changed(h);
	}
	return err;
}
TRACE_FILE(traceoff_on_warning, .path = "/proc/sys/kernel/traceoff_on_warning",
	   .show = warning_show, .write = warning_write);

/* Early, before anything is recorded. */
static int set_warning(const char *value)
{
	bool on;
	int err = param_switch(value, &on);

	if (!err)
		want_warning(on);
	return err;
}
KERNEL_PARAM(traceoff_on_warning, "traceoff_on_warning", PARAM_SWITCH,
	     set_warning);
