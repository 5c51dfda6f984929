/* SPDX-License-Identifier: MIT */
/* Functions that cannot be traced, and why: the control file unpatchable_functions. */
#include <tracer/sites/kept_off.h>

#include <kernel/ctl/ctl.h>
#include <tracer/sites/sites.h>
#include <tracer/base/instance.h>

bool site_is_kept_off(unsigned long site)
{
	for (unsigned int i = 0; i < kept_off_count; i++)
		if (site_entry_address(&kept_off_table[i]) == site)
			return true;
	return false;
}

static const char *kept_off_name(unsigned int node)
{
	return symbol_names + symbol_name[path_symbol[node]];
}

/* The function, its caller, and so on, back to where patching begins. */
static void put_path(struct seq *s, unsigned int node)
{
	seq_printf(s, "%s", kept_off_name(node));
	for (; path_from[node] != PATH_ROOT; node = path_from[node])
		seq_printf(s, " <- %s", kept_off_name(path_from[node]));
	seq_printf(s, "\n");
}

static bool is_on_path(unsigned int symbol)
{
	for (unsigned int node = 0; node < path_count; node++)
		if (path_symbol[node] == symbol)
			return true;
	return false;
}

static bool has_site(const struct symbol *f)
{
	unsigned int i = site_lower_bound(f->start);

	return i < site_count && site_address(i) < f->start + f->size;
}

/* First the functions on the path, in the order of their table, then those without a site. */
static int unpatchable_read(struct ctl_handle *h, struct seq *s)
{
	struct symbol f;

	if (h->pos < path_count) {
		put_path(s, h->pos++);
		return 1;
	}
	/* With RECORD=runtime a function may have one that has not been called yet. */
	while (sites_all_known && symbol_get(h->pos - path_count, &f)) {
		h->pos++;
		if (has_site(&f) || is_on_path(f.index))
			continue;
		seq_printf(s, "%s: compiled without a site\n", f.name);
		return 1;
	}
	return 0;
}
CTL_FILE(unpatchable_functions, .path = TRACING "unpatchable_functions",
	 .read = unpatchable_read);
