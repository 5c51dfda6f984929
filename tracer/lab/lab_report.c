/* SPDX-License-Identifier: MIT */
/* The result of a case of the lab: a row of the table, or a line of JSON. */
#include <kernel/printk.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/sites/sites.h>

#define OUTCOME_MAX 120

static const struct {
	u32 bit;
	const char *text, *word;
} damages[] = {
	{ LAB_FAULT, "fault", "fault" },
	{ LAB_HUNG, "never came back", "hung" },
	{ LAB_SP, "sp is off", "sp" },
	{ LAB_REGS, "a register changed", "regs" },
	{ LAB_RETURN, "wrong return", "return" },
	{ LAB_CALLS, "a call lost or doubled", "calls" },
	{ LAB_ATOMIC, "not atomic", "atomic" },
};

static const char *const verdicts[] = {
	[LAB_HOLDS] = "holds",
	[LAB_BROKEN] = "broken as claimed",
	[LAB_SURPRISE] = "SURPRISE",
	[LAB_INCOMPLETE] = "INCOMPLETE",
};

/* Damage where none is claimed comes before an incomplete case: it is the graver news. */
enum lab_verdict lab_judge(const struct lab_case *c)
{
	bool safe = !c->breaks != fault_happens(&fault_lab_claim);
	u32 breaks = c->breaks ? c->breaks : ~0u;

	if (c->wrong || (safe && c->seen))
		return LAB_SURPRISE;
	if (c->incomplete || !c->boundaries)
		return LAB_INCOMPLETE;
	if (!safe && !(c->seen & breaks))
		return LAB_SURPRISE;
	return safe ? LAB_HOLDS : LAB_BROKEN;
}

/* "+3" in the site, else "name+0x.." */
static int place_text(char *buf, size_t size, const struct lab_case *c,
		      unsigned long pc)
{
	long off = pc - c->victim->site;

	if (off >= -32 && off < 2 * LAB_SITE_MAX)
		return snprintf(buf, size, "%s%ld", off < 0 ? "" : "+", off);
	return snprintf(buf, size, "%pS", (void *)pc);
}

static size_t bytes_used(int n, size_t size)
{
	return min((size_t)n, size - 1);
}

static size_t damage_text(char *buf, size_t size, const struct lab_case *c,
			  const struct lab_finding *f)
{
	const char *comma = "";
	size_t n = 0;

	buf[0] = '\0';
	for (unsigned int i = 0; i < ARRAY_SIZE(damages); i++) {
		bool fault = damages[i].bit == LAB_FAULT && f->what;

		if (!(f->damage & damages[i].bit))
			continue;
		n += bytes_used(snprintf(buf + n, size - n, "%s%s%s", comma,
					 fault ? f->what : damages[i].text,
					 fault ? " at " : ""),
				size - n);
		if (fault)
			n += bytes_used(place_text(buf + n, size - n, c, f->at),
					size - n);
		comma = ", ";
	}
	return n;
}

static size_t finding_text(char *buf, size_t size, const struct lab_case *c,
			   const struct lab_finding *f)
{
	size_t n = damage_text(buf, size, c, f);

	if (f->between) {
		n += bytes_used(
			snprintf(buf + n, size - n,
				 f->state && f->state < c->last ?
					 " on another CPU between the writes" :
					 " at rest"),
			size - n);
		return n;
	}
	n += bytes_used(snprintf(buf + n, size - n, " when held at "),
			size - n);
	n += bytes_used(place_text(buf + n, size - n, c, f->held[0]), size - n);
	if (f->nr_held == 1)
		return n;
	n += bytes_used(snprintf(buf + n, size - n,
				 f->nr_held == 2 ? ", " : ".."),
			size - n);
	return n + bytes_used(place_text(buf + n, size - n, c,
					 f->held[f->nr_held - 1]),
			      size - n);
}

/* The damage that the scheme claims, if it was seen. Else the first damage seen. */
static const struct lab_finding *worst_finding(const struct lab_case *c)
{
	for (unsigned int i = 0; i < c->nr_findings; i++)
		if (c->finding[i].damage & c->breaks)
			return &c->finding[i];
	return &c->finding[0];
}

static void outcome_text(char *buf, size_t size, const struct lab_case *c)
{
	size_t n;

	if (c->wrong) {
		snprintf(buf, size, "does not work at rest: %s", c->wrong);
	} else if (c->nr_findings) {
		n = finding_text(buf, size, c, worst_finding(c));
		if (c->nr_findings > 1)
			snprintf(buf + n, size - n, " (and %u more)",
				 c->nr_findings - 1);
	} else if (c->incomplete) {
		n = bytes_used(snprintf(buf, size, "%s%s", c->incomplete,
					c->incomplete_at ? " " : ""),
			       size);
		if (c->incomplete_at)
			place_text(buf + n, size - n, c, c->incomplete_at);
	} else if (!c->boundaries) {
		snprintf(buf, size, "nobody was held anywhere");
	} else {
		snprintf(buf, size, "as before or as after, never wrong");
	}
}

static const char *const explained[] = {
	"from      its seed or hazard: tracer/ORIGINS.md, tracer/HAZARDS.md",
	"held      12/12: of 12 instructions where a task can stand, counted "
	"in "
	"each state of the text,",
	"          the lab held a task at 12",
	"outcome   +4 is 4 bytes behind the site's start, -4 before it, +0..+8 "
	"from +0 to +8;",
	"          (and 2 more): other damage, which 'lab run -j' names",
	"claim     safe: no damage may be seen. unsafe: damage must be seen",
	"verdict   SURPRISE: the claim is wrong. INCOMPLETE: nothing is "
	"proved, "
	"the outcome says why",
	"The lab cannot show what a CPU fetches while another CPU stores, "
	"since "
	"QEMU runs one CPU at a",
	"time here: the models in tracer/patch/models and tools/stale are for "
	"that.",
};

int lab_help(struct sink *out)
{
	int err = sink_printf(
		out,
		"scheme    one way to patch one shape of site; 'own' is this "
		"kernel's site as this boot has\n"
		"          prepared it: nop=%s. Other boots: the parameter "
		"nop= takes %s\n",
		site_boot.nop, arch_nop_names);

	for (unsigned int i = 0; !err && i < ARRAY_SIZE(explained); i++)
		err = sink_printf(out, "%s\n", explained[i]);
	return err;
}

void lab_header(struct sink *out)
{
	sink_printf(out, "# 'lab help' explains the columns\n");
	sink_printf(out, "%-26s%-10s%-12s%-16s%-9s%-60s%-8s%s\n", "scheme",
		    "from", "strategy", "transition", "held", "outcome",
		    "claim", "verdict");
}

void lab_row(struct sink *out, const struct lab_case *c)
{
	char name[40], transition[40], count[16], text[OUTCOME_MAX];

	snprintf(name, sizeof(name), "%s %s", arch_name, c->name);
	snprintf(transition, sizeof(transition), "%s->%s", c->old, c->new);
	snprintf(count, sizeof(count), "%u/%u", c->held, c->boundaries);
	outcome_text(text, sizeof(text), c);
	sink_printf(out, "%-25s %-9s %-11s %-15s %-8s %-59s %-7s ", name,
		    c->from, c->strategy, transition, count, text,
		    c->breaks ? "unsafe" : "safe");
	sink_printf(out, "%s\n", verdicts[lab_judge(c)]);
}

/* ---- for programs ---- */

static void json_form(struct sink *out, const struct lab_form *form,
		      const u8 *bytes, unsigned int length)
{
	sink_printf(out, "{\"name\": \"%s\", \"insns\": [", form->name);
	for (int i = 0; i < LAB_INSNS && form->insn[i]; i++) {
		int n = form->insn[i];

		sink_printf(out, "%s%d", i ? ", " : "", n);
		length += n < 0 ? -n : n;
	}
	sink_printf(out, "], \"bytes\": \"");
	for (unsigned int i = 0; i < length; i++)
		sink_printf(out, "%02x", bytes[i]);
	sink_printf(out, "\"}");
}

static long offset_in(const struct lab_case *c, unsigned long pc)
{
	return pc - c->victim->site;
}

static void json_finding(struct sink *out, const struct lab_case *c,
			 const struct lab_finding *f)
{
	char text[OUTCOME_MAX];
	const char *comma = "";

	finding_text(text, sizeof(text), c, f);
	sink_printf(out, "{\"text\": \"%s\", \"damage\": [", text);
	for (unsigned int i = 0; i < ARRAY_SIZE(damages); i++) {
		if (!(f->damage & damages[i].bit))
			continue;
		sink_printf(out, "%s\"%s\"", comma, damages[i].word);
		comma = ", ";
	}
	sink_printf(out, "], \"state\": %u, \"between\": %s, \"held\": [",
		    f->state, f->between ? "true" : "false");
	for (unsigned int i = 0; i < f->nr_held; i++)
		sink_printf(out, "%s%ld", i ? ", " : "",
			    offset_in(c, f->held[i]));
	sink_printf(out, "]}");
}

void lab_json(struct sink *out, const struct lab_case *c)
{
	char text[OUTCOME_MAX];

	outcome_text(text, sizeof(text), c);
	sink_printf(out,
		    "{\"scheme\": \"%s %s\", \"from\": \"%s\", "
		    "\"strategy\": \"%s\", \"transition\": \"%s->%s\", ",
		    arch_name, c->name, c->from, c->strategy, c->old, c->new);
	sink_printf(out,
		    "\"claim\": \"%s\", \"verdict\": \"%s\", \"held\": %u, "
		    "\"boundaries\": %u, \"runs\": %u, \"site\": %lu, ",
		    c->breaks ? "unsafe" : "safe", verdicts[lab_judge(c)],
		    c->held, c->boundaries, c->runs, c->victim->site);
	sink_printf(out, "\"around\": [%ld, %ld, %ld, %ld], ",
		    offset_in(c, c->victim->boundary[0]),
		    offset_in(c, c->victim->boundary[1]),
		    offset_in(c, c->victim->boundary[2]),
		    offset_in(c, c->victim->boundary[3]));
	sink_printf(out, "\"outcome\": \"%s\", \"because\": \"%s\", ", text,
		    c->because);
	sink_printf(out, "\"forms\": [");
	json_form(out, c->before, c->bytes[0], c->length);
	sink_printf(out, ", ");
	json_form(out, c->after, c->bytes[1], c->length);
	sink_printf(out, "], \"findings\": [");
	for (unsigned int i = 0; i < c->nr_findings; i++) {
		sink_printf(out, i ? ", " : "");
		json_finding(out, c, &c->finding[i]);
	}
	sink_printf(out, "]}\n");
}
