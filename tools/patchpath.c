/* SPDX-License-Identifier: MIT */
/*
 * patchpath: proves on the linked image that nothing that runs while text is
 * being patched, or while CPUs are stopped for it, can be switched, nor has a jump label. It
 * would execute an instruction that is just being changed (hazard seen on MIPS in
 * 2013 and on RISC-V in 2020).
 *
 *   patchpath --arch A --sites F --objdump P image.elf
 *
 * The closure is computed from the disassembly (lib/path.h). mksites keeps its sites out of
 * the table of those that can be switched: site_table. They are in kept_off_table, which boot
 * turns off for good. This program looks at both tables of the finished image. Two functions,
 * and what they call, may have no site at all: with RECORD=runtime the called function records
 * itself through the stub, and boot's conversion would run code that it has just changed.
 *
 * It also proves that the functions which synchronise a CPU's instruction fetch
 * execute the instruction for it on every way through them, and that the fences which
 * comments speak of are there, also those which belong beside an instruction wherever it
 * stands (machine.json: sync, fences, behind, before), and that no other barrier is there.
 * No test in the kernel can see any of this: QEMU needs none of them.
 */
#include "lib/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool holds(const struct addresses *a, uint64_t addr)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->addr[i] == addr)
			return true;
	return false;
}

static void say_site(const struct image *im, const struct path *p,
		     uint64_t addr, const char *what)
{
	path_say(im, p, path_node(im, p, addr), what);
	fprintf(stderr, " (%s is a site)\n", image_name(im, addr));
}

/* No site of the path may be in site_table, and all must be in kept_off_table. */
static void check_sites(const struct image *im, const struct path *p,
			const struct addresses *all)
{
	struct addresses switched =
		table_addresses(im, "site_count", "site_table");
	struct addresses kept =
		table_addresses(im, "kept_off_count", "kept_off_table");

	for (size_t i = 0; i < all->count; i++) {
		uint64_t addr = all->addr[i];

		if (path_node(im, p, addr) == PATH_NONE)
			continue;
		if (holds(&switched, addr))
			say_site(im, p, addr, "site on the patching path");
		if (!holds(&kept, addr))
			say_site(im, p, addr,
				 "site on the patching path that nothing turns "
				 "off");
	}
	free(switched.addr);
	free(kept.addr);
}

/* Neither the function nor any that it calls has a site. */
static void check_bare(const struct image *im, const struct arch *arch,
		       const struct addresses *all, const char *root,
		       const char *what)
{
	struct path p;

	path_find_from(im, arch, root, &p);
	for (size_t i = 0; i < all->count; i++)
		if (path_node(im, &p, all->addr[i]) != PATH_NONE)
			say_site(im, &p, all->addr[i], what);
}

static void check_labels(const struct image *im, const struct arch *arch,
			 const struct path *p)
{
	struct jump_labels labels = { 0 };

	scan_labels(im, arch, &labels);
	for (size_t i = 0; i < labels.count; i++) {
		uint64_t addr = labels.label[i].addr;
		size_t node = path_node(im, p, addr);

		if (node == PATH_NONE)
			continue;
		path_say(im, p, node, "jump label on the patching path");
		fprintf(stderr, " (%s has a static_branch())\n",
			image_name(im, addr));
	}
	free(labels.label);
}

static void check_path(const struct image *im, const struct arch *arch,
		       const struct format *format)
{
	struct addresses all = { 0 };
	struct path p;

	scan_sites(im, arch, format, &all);
	path_find(im, arch, &p);
	check_sites(im, &p, &all);
	check_bare(im, arch, &all, "trace_stub", "site behind the stub");
	check_bare(im, arch, &all, "sites_convert_all",
		   "site in what converts sites");
	check_labels(im, arch, &p);
	free(all.addr);
}

/* ---- Synchronising instructions ------------------------------------------ */

/*
 * Can control get from instruction i of a function of n out of it, or to its end,
 * without an instruction that matches? A delay slot counts as executed with its jump.
 */
static bool gets_past(const struct image *im, const struct arch *arch,
		      const struct insn *in, size_t n, size_t i,
		      const char *pattern, bool *seen)
{
	uint64_t first = in[0].addr, last = in[n - 1].addr, to;

	for (; i < n; i++) {
		if (seen[i])
			return false;
		seen[i] = true;
		if (insn_matches(&in[i], pattern))
			return false;
		if (in[i].flow == FLOW_NEXT || in[i].flow == FLOW_CALL ||
		    in[i].flow == FLOW_INDIRECT_CALL)
			continue;
		if (arch->delay_slots && i + 1 < n &&
		    insn_matches(&in[i + 1], pattern))
			return false;
		to = in[i].target;
		if (in[i].flow == FLOW_STOP || in[i].flow == FLOW_MAY_RETURN ||
		    in[i].flow == FLOW_INDIRECT_JUMP || to < first || to > last)
			return true;
		if (gets_past(im, arch, in, n,
			      image_insn(im, to) - (in - im->insns), pattern,
			      seen))
			return true;
		if (in[i].flow == FLOW_JUMP)
			return false;
	}
	return true;
}

/* The instructions of a function that the port's file names: the first, and how many. */
static const struct insn *function_insns(const struct image *im,
					 const struct arch *arch,
					 const char *key, const char *name,
					 size_t *n)
{
	const struct symbol *s;
	const struct insn *in;
	uint64_t addr;

	if (!image_value(im, name, &addr) || !(s = image_symbol_at(im, addr)))
		errx(1, "%s: code: %s: there is no function %s", arch->file,
		     key, name);
	in = &im->insns[image_insn(im, s->addr)];
	*n = image_insn(im, s->addr + s->size) - (in - im->insns);
	if (!*n)
		errx(1, "%s: code: %s: function %s has no instructions",
		     arch->file, key, name);
	return in;
}

/* Of each function of the list, an instruction that every way through it passes. */
static void check_sync(const struct image *im, const struct arch *arch)
{
	const struct insn *in;
	const char *name;
	json_t *value;
	bool *seen;
	size_t n;

	json_object_foreach (arch->sync, name, value) {
		const char *pattern = json_string_value(value);

		in = function_insns(im, arch, "sync", name, &n);
		seen = calloc(n + 1, sizeof(*seen));
		if (!seen)
			errx(1, "out of memory");
		if (gets_past(im, arch, in, n, 0, pattern, seen)) {
			fprintf(stderr,
				"patchpath: %s: a way through it has no \"%s\" "
				"(%s: sync)\n",
				name, pattern, arch->file);
			errors++;
		}
		free(seen);
	}
}

/* Of each function of the list, how many of an instruction stand in it. Those that are found
 * are marked as claimed. */
static void check_fences(const struct image *im, const struct arch *arch,
			 bool *claimed)
{
	const char *name, *pattern;
	json_t *fences, *value;

	json_object_foreach (arch->fences, name, fences) {
		json_object_foreach (fences, pattern, value) {
			const char *why = json_string_value(value);
			size_t wanted = strtoul(why, NULL, 10), found = 0, n;
			const struct insn *in =
				function_insns(im, arch, "fences", name, &n);

			for (size_t i = 0; i < n; i++)
				if (insn_matches(&in[i], pattern)) {
					claimed[in - im->insns + i] = true;
					found++;
				}
			if (found == wanted)
				continue;
			fprintf(stderr,
				"patchpath: %s: there are %zu of \"%s\", not "
				"%s "
				"(%s: fences)\n",
				name, found, pattern, why, arch->file);
			errors++;
		}
	}
}

/* Is the instruction what another calls for that stands before or behind it? */
static bool beside(const struct insn *in, const struct insn *next,
		   json_t *neighbours, bool is_next)
{
	const struct insn *cause = is_next ? in : next;
	const struct insn *effect = is_next ? next : in;
	const char *pattern;
	json_t *value;

	json_object_foreach (neighbours, pattern, value) {
		if (insn_matches(cause, pattern) &&
		    insn_matches(effect, json_string_value(value)))
			return true;
	}
	return false;
}

/* Each barrier of the kinds that no compiler makes is claimed: so a comment says which accesses
 * it orders, and its loss fails the build. */
static void check_claims(const struct image *im, const struct arch *arch,
			 bool *claimed)
{
	const char *name;
	json_t *value;
	size_t n;

	json_object_foreach (arch->sync, name, value) {
		const struct insn *in =
			function_insns(im, arch, "sync", name, &n);

		for (size_t i = 0; i < n; i++)
			if (insn_matches(&in[i], json_string_value(value)))
				claimed[in - im->insns + i] = true;
	}
	for (size_t i = 1; i + 1 < im->nr_insns; i++) {
		const struct insn *in = &im->insns[i];
		const struct symbol *s = image_symbol_at(im, in->addr);
		bool barrier = false;

		for (const char *const *p = arch->barriers; p && *p; p++)
			barrier |= insn_matches(in, *p);
		if (!barrier || claimed[i] ||
		    beside(in - 1, in, arch->behind, true) ||
		    beside(in, in + 1, arch->before, false))
			continue;
		fprintf(stderr,
			"patchpath: %s: nothing claims the \"%s%s%s\" at "
			"0x%" PRIx64 " (%s: fences)\n",
			s ? s->name : "?", in->mnemonic,
			*in->operands ? " " : "", in->operands, in->addr,
			arch->file);
		errors++;
	}
}

/* Of a kind of instruction, what must stand behind or before each one. */
static void check_beside(const struct image *im, const struct arch *arch,
			 json_t *neighbours, const char *key, int step)
{
	const char *pattern;
	json_t *value;

	json_object_foreach (neighbours, pattern, value) {
		const char *wanted = json_string_value(value);

		for (size_t i = 1; i + 1 < im->nr_insns; i++) {
			const struct insn *in = &im->insns[i];
			const struct symbol *s;

			if (!insn_matches(in, pattern) ||
			    insn_matches(in + step, wanted))
				continue;
			s = image_symbol_at(im, in->addr);
			fprintf(stderr,
				"patchpath: %s: %s the \"%s\" at 0x%" PRIx64
				" stands no \"%s\" (%s: %s)\n",
				s ? s->name : "?", key, in->mnemonic, in->addr,
				wanted, arch->file, key);
			errors++;
		}
	}
}

int main(int argc, char **argv)
{
	const struct arch *arch;
	struct image im;
	bool *claimed;

	if (argc != 8 || strcmp(argv[1], "--arch") ||
	    strcmp(argv[3], "--sites") || strcmp(argv[5], "--objdump"))
		errx(1, "usage: patchpath --arch NAME --sites FORMAT "
			"--objdump PROGRAM IMAGE");
	arch = arch_find(argv[2]);
	image_open(&im, argv[7], arch, argv[6]);
	check_path(&im, arch, format_find(arch, argv[4]));
	claimed = calloc(im.nr_insns + 1, sizeof(*claimed));
	if (!claimed)
		errx(1, "out of memory");
	check_sync(&im, arch);
	check_fences(&im, arch, claimed);
	check_beside(&im, arch, arch->behind, "behind", 1);
	check_beside(&im, arch, arch->before, "before", -1);
	check_claims(&im, arch, claimed);
	free(claimed);
	return errors != 0;
}
