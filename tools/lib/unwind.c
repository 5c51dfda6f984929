/* SPDX-License-Identifier: MIT */
/* Frame information into the kernel's unwind table: see unwind.h. */
#include "unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

/* Bytes in which a function's site lies, at most. */
#define SITE_MOST 16

/* ---- Frame information, opened ------------------------------------------- */

/*
 * libdw 0.188 evaluates frame information only of machines that it has a back end
 * for. MIPS has none until 0.190, so such an image is opened as one of another
 * machine whose defaults fit (arch->cfi_machine): the rules themselves are the
 * same on every machine.
 */
static Elf *open_as(const struct image *im, unsigned int machine)
{
	size_t size;
	char *raw = elf_rawfile(im->elf, &size), *copy = malloc(size);
	unsigned int high = im->big_endian ? 0 : 1;
	Elf *elf;

	if (!raw || !copy)
		errx(1, "%s: cannot be read again", im->path);
	memcpy(copy, raw, size);
	if (machine) {
		size_t at = offsetof(Elf64_Ehdr, e_machine);

		copy[at + high] = (char)(machine >> 8);
		copy[at + 1 - high] = (char)machine;
	}
	elf = elf_memory(copy, size);
	if (!elf)
		errx(1, "%s: cannot be read again", im->path);
	return elf;
}

/*
 * GCC and GAS for MIPS begin each CIE with DW_CFA_def_cfa_register, which libdw
 * takes only behind a DW_CFA_def_cfa. Where a DW_CFA_nop follows, the instruction is
 * changed in place into DW_CFA_def_cfa with offset 0, which means the same. (The
 * port's own assembly says .cfi_def_cfa at each function's beginning.)
 */
static void mend_cies(const struct image *im, Elf *elf, const char *section,
		      bool eh)
{
	size_t strings;
	Elf_Scn *scn = NULL;
	Elf_Data *data = NULL;
	GElf_Shdr sh;
	Dwarf_Off at = 0, next;
	Dwarf_CFI_Entry entry;

	if (elf_getshdrstrndx(elf, &strings))
		errx(1, "%s: no section names", im->path);
	while (!data && (scn = elf_nextscn(elf, scn))) {
		elf_header(im->path, scn, &sh);
		if (!strcmp(elf_text(im->path, elf, strings, sh.sh_name),
			    section))
			data = elf_getdata(scn, NULL);
	}
	while (data &&
	       !dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL),
			       data, eh, at, &next, &entry)) {
		uint8_t *p = (uint8_t *)entry.cie.initial_instructions;

		if (dwarf_cfi_cie_p(&entry) &&
		    entry.cie.initial_instructions_end - p > 2 &&
		    p[0] == DW_CFA_def_cfa_register && p[2] == DW_CFA_nop)
			p[0] = DW_CFA_def_cfa;
		at = next;
	}
}

/* ---- One instruction's rule ---------------------------------------------- */

static const struct arch *port;

/* A rule of the form "at the CFA + offset", in memory or (value) the sum. */
static bool from_cfa(const Dwarf_Op *op, size_t n, int *offset, bool *value)
{
	*offset = 0;
	*value = false;
	if (!n || op[0].atom != DW_OP_call_frame_cfa)
		return false;
	for (size_t i = 1; i < n; i++) {
		if (op[i].atom == DW_OP_plus_uconst)
			*offset = (unsigned int)*offset +
				  (unsigned int)op[i].number;
		else if (op[i].atom == DW_OP_stack_value)
			*value = true;
		else
			return false;
	}
	return true;
}

/* Where the value is that register `column` had in the caller. */
static unsigned int where(Dwarf_Frame *frame, int column, int *offset)
{
	Dwarf_Op mem[3], *op;
	size_t n;
	bool value;

	*offset = 0;
	if (dwarf_frame_register(frame, column, mem, &op, &n))
		return UNWIND_NONE;
	if (!n && op) /* undefined */
		return UNWIND_END;
	if (!n) /* unchanged */
		return column == port->link ? UNWIND_LINK :
		       column == port->alt  ? UNWIND_ALT :
					      UNWIND_LOST;
	if (op[0].atom == DW_OP_regx || op[0].atom <= DW_OP_reg31) {
		int reg = op[0].atom == DW_OP_regx ? (int)op[0].number :
						     op[0].atom - DW_OP_reg0;

		return reg == port->link ? UNWIND_LINK :
		       reg == port->alt	 ? UNWIND_ALT :
					   UNWIND_LOST;
	}
	if (!from_cfa(op, n, offset, &value))
		return UNWIND_NONE;
	return value ? UNWIND_TAKEN : UNWIND_STACK;
}

/* NULL, or why the table cannot express the frame. */
static const char *make_rule(Dwarf_Frame *frame, struct unwind_rule *r,
			     uint64_t *end)
{
	Dwarf_Addr from, to;
	Dwarf_Op *op;
	size_t n;
	bool signal;
	int column = dwarf_frame_info(frame, &from, &to, &signal);

	memset(r, 0, sizeof(*r));
	if (column < 0 || to <= from)
		return "its frame information cannot be read";
	*end = to;
	if (dwarf_frame_cfa(frame, &op, &n) || n != 1 ||
	    op[0].atom != DW_OP_bregx || (int)op[0].number != port->sp)
		return "its frame is not found from the stack pointer "
		       "(alloca, a frame pointer?)";
	r->cfa = (unsigned int)op[0].number2 - (unsigned int)port->cfa;
	if (r->cfa != (int16_t)r->cfa)
		return "its frame is larger than 32,767 bytes, and so than any "
		       "task's stack";
	r->pc = where(frame, column, &r->pc_at);
	if (signal && r->pc == UNWIND_END)
		r->pc = UNWIND_TRAP;
	r->exact = signal;
	if (r->pc == UNWIND_NONE)
		return "its return address is where no table row can say";
	/* Only a trampoline gives its caller back a link register that is not
	 * the address it returns to. */
	r->link = UNWIND_LOST;
	if (port->link >= 0 && column != port->link && r->pc != UNWIND_TRAP)
		r->link = where(frame, port->link, &r->link_at);
	return NULL;
}

/* ---- The table ----------------------------------------------------------- */

static unsigned int find_rule(struct unwind_table *t,
			      const struct unwind_rule *r)
{
	unsigned int i;

	for (i = 0; i < t->nr_rules; i++)
		if (!memcmp(&t->rule[i], r, sizeof(*r)))
			return i;
	if (i == UNWIND_RULES)
		errx(1, "more than %d kinds of stack frames", UNWIND_RULES);
	t->rule[t->nr_rules++] = *r;
	return i;
}

static void add_row(struct unwind_table *t, uint64_t addr, unsigned int rule)
{
	if (t->count && t->row[t->count - 1].rule == rule)
		return;
	t->row = array_grow(t->row, t->count, sizeof(t->row[0]));
	t->row[t->count++] = (struct unwind_row){ addr, rule };
}

struct sources {
	Dwarf_CFI *debug, *eh;
};

/* libgcc's .eh_frame has 32-bit addresses signed. */
static bool frame_at(const struct image *im, const struct sources *s,
		     uint64_t addr, Dwarf_Frame **f)
{
	uint64_t extended =
		im->pointer_size == 4 ? (uint64_t)(int32_t)addr : addr;

	return (s->debug && !dwarf_cfi_addrframe(s->debug, addr, f)) ||
	       (s->eh && !dwarf_cfi_addrframe(s->eh, extended, f));
}

/* The first site at addr or above it. */
static size_t site_at_least(const struct addresses *sites, uint64_t addr)
{
	size_t lo = 0, hi = sites->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sites->addr[mid] < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Where a function's frame information begins. GCC for RISC-V puts the NOPs of
 * -fpatchable-function-entry before it, and a stub that the linker makes (MIPS:
 * ".pic.NAME", two instructions) leads into NAME: the frame is as at its beginning.
 */
static uint64_t first_frame(const struct image *im, const struct sources *from,
			    const struct symbol *s,
			    const struct addresses *sites)
{
	uint64_t addr = s->addr;
	size_t i;
	Dwarf_Frame *frame;

	if (!strncmp(s->name, ".pic.", 5))
		return s->addr + s->size;
	i = site_at_least(sites, s->addr);
	if (i == sites->count || sites->addr[i] >= s->addr + SITE_MOST)
		return addr;
	while (addr < s->addr + SITE_MOST && !frame_at(im, from, addr, &frame))
		addr++;
	return addr;
}

/* The rows of one function. True if it has frame information. */
static bool read_function(const struct image *im, const struct sources *from,
			  const struct symbol *s, const struct addresses *sites,
			  struct unwind_table *t)
{
	uint64_t addr = first_frame(im, from, s, sites),
		 end = s->addr + s->size;
	uint64_t at = s->addr;

	do {
		struct unwind_rule r;
		Dwarf_Frame *frame;
		const char *why;
		uint64_t next;

		if (!frame_at(im, from, addr, &frame))
			break;
		why = make_rule(frame, &r, &next);
		free(frame);
		if (why) {
			complain(im, addr, why);
			return true;
		}
		add_row(t, at, find_rule(t, &r));
		if (im->pointer_size == 4)
			next = (uint32_t)next;
		if (next <= addr) {
			complain(im, addr, "its frame information has no end");
			return true;
		}
		at = addr = next;
	} while (addr < end);
	return at > s->addr;
}

void unwind_read(const struct image *im, const struct arch *arch,
		 const struct addresses *sites, struct unwind_table *t)
{
	/* Rule 0: no function. Rule 1, UNWIND_ENTRY: as any function begins. */
	static const struct unwind_rule none;
	const struct unwind_rule entry = {
		.cfa = arch->link < 0 ? (int)im->pointer_size : 0,
		.pc = arch->link < 0 ? UNWIND_STACK : UNWIND_LINK,
		.pc_at = arch->link < 0 ? -(int)im->pointer_size : 0,
		.link = UNWIND_LOST,
	};
	Elf *elf = open_as(im, arch->cfi_machine);
	struct sources from = { 0 };
	Dwarf *dwarf;

	memset(t, 0, sizeof(*t));
	port = arch;
	add_row(t, im->text, find_rule(t, &none));
	find_rule(t, &entry);
	mend_cies(im, elf, ".debug_frame", false);
	mend_cies(im, elf, ".eh_frame", true);
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	from.debug = dwarf ? dwarf_getcfi(dwarf) : NULL;
	from.eh = dwarf_getcfi_elf(elf);
	for (size_t i = 0; i < im->nr_symbols; i++) {
		const struct symbol *s = &im->symbols[i];

		if (!read_function(im, &from, s, sites, t))
			complain(im, s->addr,
				 "a function without frame "
				 "information (.cfi_startproc)");
	}
}

/* Of each block of text, the row that its first byte belongs to. */
static void emit_index(FILE *f, const struct image *im,
		       const struct unwind_table *t)
{
	uint64_t end = im->etext + 2 * UNWIND_BLOCK;
	size_t row = 0;

	fprintf(f, "unwind_index:\n");
	for (uint64_t at = im->text; at < end; at += UNWIND_BLOCK) {
		while (row + 1 < t->count && t->row[row + 1].addr <= at)
			row++;
		fprintf(f, "\t.4byte %zu\n", row);
	}
}

void unwind_emit(FILE *f, const struct image *im, const struct unwind_table *t)
{
	fprintf(f,
		"\n\t.balign 4\n\t.globl unwind_count, unwind_index, "
		"unwind_rows, unwind_rules\nunwind_count:\n\t.4byte %zu\n",
		t->count);
	emit_index(f, im, t);
	fprintf(f, "unwind_rows:\n");
	for (size_t i = 0; i < t->count; i++)
		fprintf(f, "\t.4byte 0x%06llx%02x\n",
			(unsigned long long)(t->row[i].addr - im->text),
			t->row[i].rule);
	fprintf(f, "unwind_rules:\n");
	for (unsigned int i = 0; i < t->nr_rules; i++) {
		const struct unwind_rule *r = &t->rule[i];

		fprintf(f, "\t.2byte %d, %d, %d\n\t.byte %u, %u, %u, 0\n",
			r->cfa, r->pc_at, r->link_at, r->pc, r->link, r->exact);
	}
}
