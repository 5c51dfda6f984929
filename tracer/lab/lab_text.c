/* SPDX-License-Identifier: MIT */
/* Stores to text, as a scheme asks for them. */
#include <arch/arch_trace.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <tracer/lab/lab_internal.h>

notrace void lab_store_one(unsigned long alias, const u8 *bytes,
			   unsigned int length)
{
	if (length == 8 && sizeof(long) == 8 && alias % 8 == 0)
		*(volatile u64 *)alias = *(const u64 *)bytes;
	else if (length == 4 && alias % 4 == 0)
		*(volatile u32 *)alias = *(const u32 *)bytes;
	else if (length == 2 && alias % 2 == 0)
		*(volatile u16 *)alias = *(const u16 *)bytes;
	else
		for (unsigned int i = 0; i < length; i++)
			((volatile u8 *)alias)[i] = bytes[i];
}

notrace void lab_store_text(unsigned long at, const u8 *bytes,
			    unsigned int length)
{
	long delta = arch_text_open();

	lab_store_one(at + delta, bytes, length);
	arch_text_close();
}

/* arch_text_sync_site() is for one live instruction: each word is one. */
notrace void lab_sync_site(unsigned long site)
{
	for (unsigned int i = 0; i < LAB_SITE_MAX; i += 4)
		arch_text_sync_site(site + i);
	arch_text_sync();
}

notrace void lab_sync_on_cpu(void *site)
{
	lab_sync_site((unsigned long)site);
}

int lab_sync_all(unsigned long site)
{
	return cpu_call(~0u, lab_sync_on_cpu, (void *)site);
}

/* The breakpoint is a number of that many bytes in the CPU's own order. */
void lab_break_bytes(u8 *to)
{
	u64 insn = arch_break_insn;
	u32 word = (u32)insn;
	u16 half = (u16)insn;

	if (arch_break_length == sizeof(word))
		memcpy(to, &word, sizeof(word));
	else if (arch_break_length == sizeof(half))
		memcpy(to, &half, sizeof(half));
	else
		*to = (u8)insn;
}
