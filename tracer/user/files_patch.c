/* SPDX-License-Identifier: MIT */
/* Control files about patching: the strategy, the order log, and the check of its rules. */
#include <tracer/core/tracer.h>

#include <kernel/errno.h>
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/time.h>
#include <kernel/lock/mutex.h>
#include <tracer/patch/patch.h>
#include <tracer/patch/patch_live.h>
#include <tracer/patch/patch_log.h>

/* ---- Strategy ---------------------------------------------------------------- */

/* "[stop] breakpoint word bypass", and a line for each that this CPU cannot use. */
static void patch_strategy_show(struct ctl_handle *h, struct seq *s)
{
	const char *now = patch_strategy_name(), *why;
	const struct patch_strategy *p;

	(void)h;
	for_each_registered (p, patch_strategies)
		if (!patch_refused(p))
			seq_printf(s, strcmp(p->name, now) ? "%s%s" : "%s[%s]",
				   s->len ? " " : "", p->name);
	seq_printf(s, "\n");
	for_each_registered (p, patch_strategies)
		if ((why = patch_refused(p)))
			seq_printf(s, "not %s: %s\n", p->name, why);
}

static int patch_strategy_write(struct ctl_handle *h, char *text)
{
	const struct patch_strategy *p;
	const char *why;
	char names[64];
	size_t n = 0;
	int err;

	err = patch_strategy_set(text, &why);
	if (err == -ENOSYS)
		return ctl_error(h, err, "'%.32s' is not possible here: %s",
				 text, why);
	if (!err)
		return 0;
	for_each_registered (p, patch_strategies)
		if (!patch_refused(p))
			n += format_within(names + n, sizeof(names) - n, " %s",
					   p->name);
	return ctl_error(h, err, "no strategy '%.32s'; there are:%s", text,
			 names);
}
TRACE_FILE(patch_strategy, .path = TRACING "patch_strategy",
	   .show = patch_strategy_show, .write = patch_strategy_write);

/* ---- Order log ---------------------------------------------------------------- */

static const char *strategy_word(u32 i)
{
	return __start_patch_strategies + i < __stop_patch_strategies ?
		       __start_patch_strategies[i].name :
		       "?";
}

/* Offsets are from _text. A function's name stands behind for people. */
static void show_site(struct seq *s, u32 offset)
{
	seq_printf(s, " %06x %pS", offset, (void *)(_text + offset));
}

static void show_arguments(struct seq *s, const struct patch_log_entry *e)
{
	switch (e->what) {
	case LOG_BATCH:
		seq_printf(s, " %u %s", e->a, strategy_word(e->b));
		break;
	case LOG_STEP:
		seq_printf(s, " %s %u", patch_step_words[e->a], e->b);
		break;
	case LOG_STORE:
		seq_printf(s, " %s %s", patch_store_words[STORE_KIND(e->b)],
			   e->b & STORE_ON ? "on" : "off");
		show_site(s, e->a);
		break;
	case LOG_RUN:
		show_site(s, e->a);
		break;
	case LOG_HELD:
	case LOG_FREE:
		seq_printf(s, " %s", e->a ? "leads" : "follows");
		break;
	case LOG_ONLINE:
	case LOG_WAIT:
		seq_printf(s, " %02x", e->a);
		break;
	default:
		break;
	}
}

static int patch_log_head(struct seq *s)
{
	struct patch_log_stats stats;

	patch_log_stats(&stats);
	seq_printf(s, "# patch log 1: %u entries, %u lost%s\n", stats.entries,
		   stats.lost,
		   patch_log_on ? "" : "; it is off: patchlog=on at boot");
	seq_printf(s, "# seconds since boot, CPU, what, arguments\n");
	return 1;
}

static int patch_log_read(struct ctl_handle *h, struct seq *s)
{
	const struct patch_log_entry *e;
	u64 ns;

	if (!h->pos++)
		return patch_log_head(s);
	e = patch_log_get(h->pos - 2);
	if (!e)
		return 0;
	ns = clock_to_ns(e->time);
	seq_printf(s, "%llu.%09llu %u %s",
		   (unsigned long long)(ns / NSEC_PER_SEC),
		   (unsigned long long)(ns % NSEC_PER_SEC), e->cpu,
		   patch_log_words[e->what]);
	show_arguments(s, e);
	seq_printf(s, "\n");
	return 1;
}

static int patch_log_write(struct ctl_handle *h, char *text)
{
	(void)text;
	if (!patch_log_on)
		return ctl_error(h, -EINVAL,
				 "the log is off: patchlog=on at boot");
	return patch_log_start();
}
TRACE_FILE(patch_log, .path = TRACING "patch_log", .read = patch_log_read,
	   .write = patch_log_write);

static int patch_log_check_read(struct ctl_handle *h, struct seq *s)
{
	struct patch_check c;
	int err;

	if (h->pos++)
		return 0;
	err = patch_log_check(&c);
	if (err == -ENOSPC) {
		seq_printf(s, "incomplete: entries were lost\n");
		return 1;
	}
	if (err)
		return err;
	if (!c.n) {
		seq_printf(s, "empty: nothing was watched; see patch_log\n");
		return 1;
	}
	seq_printf(s, "%s: %u entries, %u batches, %u syncs, %u runs\n",
		   c.rule ? "broken" : "kept", c.n, c.batches, c.syncs, c.runs);
	if (c.rule)
		seq_printf(s, "entry %u, CPU %u: %s\n", c.at, c.cpu,
			   patch_rule_words[c.rule]);
	return 1;
}
TRACE_FILE(patch_log_check, .path = TRACING "patch_log_check",
	   .read = patch_log_check_read);
