/*
 * What each architecture says of a CPU that fetches instructions which another CPU
 * stores: target.h.
 */
#include "target.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

static uint32_t number(const uint8_t *p, size_t n, bool big)
{
	uint32_t v = 0;

	for (size_t i = 0; i < n && i < 4; i++)
		v |= (uint32_t)p[i] << 8 * (big ? 3 - i : i);
	return v;
}

static bool is_prefix(uint8_t byte)
{
	return memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", byte,
		      11) ||
	       (byte & 0xf0) == 0x40; /* REX */
}

/* The serialising instructions of the SDM, by their opcodes. */
static enum sync x86_sync(const uint8_t *p, size_t n)
{
	unsigned int reg;

	while (n && is_prefix(*p))
		p++, n--;
	if (n && *p == 0xcf)
		return SYNC_WHOLE; /* iret */
	if (n < 2 || *p != 0x0f)
		return SYNC_NO;
	reg = n > 2 ? p[2] >> 3 & 7 : 8;
	switch (p[1]) {
	case 0xa2: /* cpuid */
	case 0x22: /* mov to cr */
	case 0x23: /* mov to dr */
	case 0x30: /* wrmsr */
	case 0x08: /* invd */
	case 0x09: /* wbinvd */
	case 0xaa: /* rsm */
		return SYNC_WHOLE;
	case 0x00: /* lldt, ltr */
		return reg == 2 || reg == 3 ? SYNC_WHOLE : SYNC_NO;
	case 0x01: /* lgdt, lidt, invlpg; serialize */
		if (n > 2 && p[2] == 0xe8)
			return SYNC_WHOLE;
		return n > 2 && p[2] < 0xc0 &&
				       (reg == 2 || reg == 3 || reg == 7) ?
			       SYNC_WHOLE :
			       SYNC_NO;
	}
	return SYNC_NO;
}

static enum sync riscv_sync(const uint8_t *p, size_t n)
{
	return n == 4 && number(p, n, false) == 0x0000100f ? SYNC_WHOLE :
							     SYNC_NO;
}

static enum sync mips_sync(uint32_t insn)
{
	if ((insn & 0xfc1f0000) == 0x041f0000)
		return SYNC_LINE; /* synci */
	if (insn == 0x42000018 || (insn & 0xfc00043e) == 0x00000408)
		return SYNC_BARRIER; /* eret; jr.hb, jalr.hb */
	return SYNC_NO;
}

static enum sync mipsel_sync(const uint8_t *p, size_t n)
{
	return mips_sync(number(p, n, false));
}

static enum sync mipseb_sync(const uint8_t *p, size_t n)
{
	return mips_sync(number(p, n, true));
}

static const struct target targets[] = {
	/* AMD APM vol. 2, 7.6.1; breakpoints: Intel's SDM and Linux's practice. */
	{ "x86_64", x86_sync, 8, true, 0xcc },
	/* RISC-V profiles, Ziccif. */
	{ "riscv64", riscv_sync, 4, false, -1 },
	/* Not in a manual; a strategy that stops no CPU relies on it. */
	{ "mipsel", mipsel_sync, 4, false, -1 },
	{ "mips", mipseb_sync, 4, false, -1 },
};

struct target target_find(const char *name, const char *rules)
{
	struct target t = { 0 };

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (!strcmp(targets[i].name, name))
			t = targets[i];
	if (!t.name)
		errx(1,
		     "stale: no rules for %s: x86_64, riscv64, mips and mipsel "
		     "have some",
		     name);
	if (*rules && strcmp(rules, "intel") && strcmp(rules, "none"))
		errx(1, "stale: rules=%s is unknown: intel and none are known",
		     rules);
	/* Intel's rules differ from AMD's by the promise for a store alone. */
	if (!strcmp(rules, "none") || (*rules && t.breakpoint >= 0))
		t.unit = 0;
	if (!strcmp(rules, "none"))
		t.breakpoint = -1;
	return t;
}
