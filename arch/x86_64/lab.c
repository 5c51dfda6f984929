/* SPDX-License-Identifier: MIT */
/*
 * The lab's schemes on x86-64: tracer/lab/lab.h. NOPs of one instruction and of
 * several, calls that are torn, and the breakpoint's part in it, lock
 * prefixes.
 *
 * | form             | bytes              | instructions           |
 * |------------------|--------------------|------------------------|
 * | p6, k8, generic  | patch.c            | one                    |
 * | jump             | eb 03, 3 old bytes | one: the rest is passed |
 * | 5x90             | 90 90 90 90 90     | five                   |
 * | 66x2             | 66 66 90, 66 90    | two                    |
 * | nop+lea          | 90, 8d 74 26 00    | two (32-bit kernels)   |
 * | nop+lea64        | 90, 48 8d 76 00    | two                    |
 * | ds lea           | 3e 8d 74 26 00     | one (32-bit kernels)   |
 * | on, on2          | e8 rel32           | one                    |
 */
#include <boot/boot_info.h>
#include <kernel/cpu/hotplug.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/test/ktest.h>
#include <kernel/patch_path.h>
#include <kernel/lib/string.h>
#include <kernel/sched/hold.h>
#include <kernel/sched/task.h>
#include <kernel/time.h>
#include <kernel/sched/balance.h>
#include <tracer/lab/lab_internal.h>
#include <tracer/lab/lab_scheme.h>
#include <tracer/patch/patch.h>

extern const struct lab_victim lab_five, lab_lock;

static const u8 p6[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static const u8 k8[] = { 0x66, 0x66, 0x66, 0x66, 0x90 };
static const u8 generic[] = { 0x3e, 0x48, 0x8d, 0x76, 0x00 };
static const u8 jump[] = { 0xeb, 0x03, 0xfe, 0xff, 0xff };
static const u8 nops[] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
static const u8 short2[] = { 0x66, 0x66, 0x90, 0x66, 0x90 };
static const u8 nop_lea[] = { 0x90, 0x8d, 0x74, 0x26, 0x00 };
static const u8 nop_lea64[] = { 0x90, 0x48, 0x8d, 0x76, 0x00 };
static const u8 ds_lea[] = { 0x3e, 0x8d, 0x74, 0x26, 0x00 };

/* The targets stand 0x170 and 0x168 before the site's end (lab.S). */
static void encode_call(u8 *bytes, unsigned int form)
{
	bytes[0] = 0xe8;
	bytes[1] = form == ON2 ? 0x98 : 0x90;
	bytes[2] = 0xfe;
	bytes[3] = bytes[4] = 0xff;
}

#define ENCODE(off)                                                            \
	static void encode_##off(unsigned long site, unsigned int form,        \
				 u8 *bytes)                                    \
	{                                                                      \
		(void)site;                                                    \
		if (form == OFF)                                               \
			memcpy(bytes, off, sizeof(off));                       \
		else                                                           \
			encode_call(bytes, form);                              \
	}
ENCODE(p6)
ENCODE(k8)
ENCODE(generic)
ENCODE(jump)
ENCODE(nops)
ENCODE(short2)
ENCODE(nop_lea)
ENCODE(nop_lea64)
ENCODE(ds_lea)

/* As the instruction in that form would: lab.S says where calls go. */
static void act_as(struct trap_frame *f, unsigned long site, unsigned int form)
{
	f->rip = site + 5;
	if (form == OFF)
		return;
	f->rsp -= 8;
	*(unsigned long *)f->rsp = f->rip;
	f->rip -= form == ON2 ? 0x168 : 0x170;
}
LAB_RESUME(act_as);

static void act_as_nop(struct trap_frame *f, unsigned long site,
		       unsigned int form)
{
	(void)form;
	f->rip = site + 5;
}
LAB_RESUME(act_as_nop);

#define FORMS(off_name, ...)                                                   \
	{                                                                      \
		{ off_name, { __VA_ARGS__ }, { 0, 0 } },                       \
			{ "on", { 5 }, { 1, 0 } }, { "on2", { 5 }, { 0, 1 } }, \
	}
#define FIVE(scheme, origin, encoder, off_name, ...)                           \
	.name = scheme, .from = origin, .victim = &lab_five, .length = 5,      \
	.form = FORMS(off_name, __VA_ARGS__), .encode = encode_##encoder
#define WHOLE(to) ONE_STORE(0, 5, to)

/* A NOP of one instruction or more, under a rendezvous, both ways. */
#define NOP_PAIR(ident, scheme, origin, encoder, on_breaks, off_breaks, why,   \
		 ...)                                                          \
	SCHEME(ident##_on, FIVE(scheme, origin, encoder, "off", __VA_ARGS__),  \
	       OFF, ON, STOP, WHOLE, on_breaks, why);                          \
	SCHEME(ident##_off, FIVE(scheme, origin, encoder, "off", __VA_ARGS__), \
	       ON, OFF, STOP, WHOLE, off_breaks, why)

NOP_PAIR(p6, "p6", "seed 0", p6, 0, 0, "one instruction", 5);
NOP_PAIR(k8, "k8", "seed 0", k8, 0, 0, "one instruction", 5);
NOP_PAIR(generic, "generic", "seed 0", generic, 0, 0,
	 "one instruction; 48 makes it 64 bits wide", 5);
NOP_PAIR(jump, "jump", "seed 3", jump, 0, 0,
	 "no task stands on what the jump passes", 2, -3);
NOP_PAIR(nops, "5x90", "seed 0", nops, LAB_FAULT, 0,
	 "four boundaries inside the future call; cure: p6", 1, 1, 1, 1, 1);
NOP_PAIR(short2, "66x2", "seed 0", short2, LAB_FAULT, 0,
	 "a boundary inside the future call; cure: k8", 3, 2);
NOP_PAIR(nop_lea64, "nop+lea64", "seed 0", nop_lea64, LAB_FAULT, 0,
	 "a boundary inside the future call; cure: generic", 1, 4);
NOP_PAIR(nop_lea, "nop+lea", "seed 0", nop_lea, LAB_FAULT | LAB_REGS, LAB_REGS,
	 "two instructions, and in 64-bit code it clears half of rsi", 1, 4);
NOP_PAIR(ds_lea, "ds-lea", "seed 0", ds_lea, LAB_REGS, LAB_REGS,
	 "in 64-bit code it clears half of rsi; cure: generic", 5);

/* ---- calls in two stores, and the breakpoint ---- */

#define OPCODE_FIRST(to) TWO_STORES(0, 4, 4, 1, to)
#define OPCODE_LAST(to) TWO_STORES(1, 4, 0, 1, to)
#define UNIT_AND_TAIL(to) TWO_STORES(0, 1, 1, 4, to)

SCHEME(torn_4_1, FIVE("torn 4+1", "seed 3", p6, "off", 5), OFF, ON, LIVE,
       OPCODE_FIRST, LAB_FAULT, "a call to nowhere; cure: int3");
SCHEME(torn_1_4, FIVE("torn 1+4", "seed 3", p6, "off", 5), OFF, ON, LIVE,
       OPCODE_LAST, LAB_FAULT | LAB_REGS,
       "half a call's distance as an operand; cure: int3");
SCHEME(torn_off, FIVE("torn 1+4", "seed 3", k8, "off", 5), ON, OFF, LIVE,
       UNIT_AND_TAIL, LAB_FAULT | LAB_REGS,
       "half a call's distance as code; cure: int3");

#define INT3(scheme) FIVE(scheme, "H13", p6, "off", 5)
#define AS_NEW "the trap acts as the new form"

SCHEME(int3_on, INT3("int3"), OFF, ON, BREAK, UNIT_AND_TAIL, 0, AS_NEW,
       .resume = act_as);
SCHEME(int3_off, INT3("int3"), ON, OFF, BREAK, UNIT_AND_TAIL, 0, AS_NEW,
       .resume = act_as);
SCHEME(int3_retarget, INT3("int3"), ON, ON2, BREAK, UNIT_AND_TAIL, 0, AS_NEW,
       .resume = act_as);
SCHEME(int3_nop, INT3("int3-nop"), ON, ON2, BREAK, UNIT_AND_TAIL, LAB_CALLS,
       "neither the old nor the new call; cure: int3", .resume = act_as_nop);

/* ---- several instructions by a bypass ---- */

#define NOPS FIVE("5x90", "seed 3", nops, "off", 1, 1, 1, 1, 1)
#define SHORT2 FIVE("66x2", "seed 3", short2, "off", 3, 2)

BYPASS(nops_on, NOPS, OFF, ON, UNIT_AND_TAIL, act_as);
BYPASS(nops_off, NOPS, ON, OFF, UNIT_AND_TAIL, act_as);
BYPASS(nops_retarget, NOPS, ON, ON2, UNIT_AND_TAIL, act_as);
BYPASS(short2_on, SHORT2, OFF, ON, UNIT_AND_TAIL, act_as);
BYPASS(short2_off, SHORT2, ON, OFF, UNIT_AND_TAIL, act_as);
NO_WAIT(nops, NOPS, OFF, ON, UNIT_AND_TAIL, act_as, LAB_FAULT);
NO_WAIT(short2, SHORT2, OFF, ON, UNIT_AND_TAIL, act_as, LAB_FAULT);
IN_PLACE(nops, NOPS, OFF, ON, UNIT_AND_TAIL, act_as, LAB_FAULT);
IN_PLACE(short2, SHORT2, OFF, ON, UNIT_AND_TAIL, act_as, LAB_FAULT);

/* ---- lock prefixes ---- */

#define LOCK_LENGTH 8
enum { UP, SMP };

/* A locked increment, its prefix replaced while one CPU is enough. */
static void lock_bytes(unsigned long site, u8 prefix, u8 *bytes)
{
	memcpy(bytes, (const void *)site, LOCK_LENGTH);
	bytes[0] = prefix;
}

static void encode_lock90(unsigned long site, unsigned int form, u8 *bytes)
{
	lock_bytes(site, form == SMP ? 0xf0 : 0x90, bytes);
}

static void encode_lock3e(unsigned long site, unsigned int form, u8 *bytes)
{
	lock_bytes(site, form == SMP ? 0xf0 : 0x3e, bytes);
}

/* Where the access faults, there the instruction began that made it. */
static bool lock_fault(struct trap_frame *f, unsigned long site, u32 *damage)
{
	if (f->rip != site && f->rip != site + 1)
		return false;
	if (f->rip == site + 1 && *(const u8 *)site == 0xf0)
		*damage |= LAB_ATOMIC;
	f->rip = site + LOCK_LENGTH;
	return true;
}

#define LOCK(scheme, encoder, ...)                                             \
	.name = scheme, .from = "H18", .victim = &lab_lock,                    \
	.length = LOCK_LENGTH, .encode = encode_##encoder,                     \
	.fault = lock_fault,                                                   \
	.form = { { "up", { __VA_ARGS__ } }, { "smp", { 8 } } }
#define LOCK90 LOCK("lock-90", lock90, 1, 7)
#define LOCK3E LOCK("lock-3e", lock3e, 8)
#define PREFIX(to) ONE_STORE(0, 1, to)

SCHEME(lock90_up, LOCK90, SMP, UP, STOP, PREFIX, 0, "one CPU is left");
SCHEME(lock90_smp, LOCK90, UP, SMP, STOP, PREFIX, LAB_ATOMIC,
       "held behind the 90, it adds without a lock; cure: 3e");
SCHEME(lock3e_up, LOCK3E, SMP, UP, STOP, PREFIX, 0, "prefix for prefix");
SCHEME(lock3e_smp, LOCK3E, UP, SMP, STOP, PREFIX, 0, "prefix for prefix");

/* ---- the port's own ---- */

const char *const arch_register_names[] = {
	[1] = "rax",  [2] = "rcx",  [3] = "rdx",  [4] = "rbx",	[5] = "rbp",
	[6] = "r8",   [7] = "r9",   [8] = "r10",  [9] = "r11",	[10] = "r12",
	[11] = "r13", [12] = "r14", [13] = "r15", [14] = "rsi",
};

const struct lab_form *lab_own_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { 5 }, { 0, 0 } },
		{ "off", { 2, -3 }, { 0, 0 } },
		{ "on", { 5 }, { 1, 0 } },
	};

	return on ? &forms[2] : &forms[(patch_nop & 0xff) == 0xeb];
}

const struct lab_form *lab_jump_form(bool on)
{
	static const struct lab_form forms[] = {
		{ "off", { 7 }, { 0, 0 } },
		{ "off", { 4, -3 }, { 0, 0 } },
		{ "on", { 7 }, { 1, 0 } },
	};

	return on ? &forms[2] : &forms[(patch_nop & 0xff) == 0xeb];
}
