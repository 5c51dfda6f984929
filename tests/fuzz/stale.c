/* SPDX-License-Identifier: MIT */
/* tools/plugin/target.c without QEMU: the rules of a file, and an instruction held against them. */
#include <tools/plugin/target.h>

#include <string.h>

int main(int argc, char **argv)
{
	static const uint8_t insn[] = { 0x0f, 0x10, 0x00, 0x00 };
	struct target t;

	memset(&t, 0, sizeof(t));
	target_read(&t, argv[argc - 1], argc > 2 ? argv[1] : "", argc > 3);
	target_sync(&t, insn, sizeof(insn));
	return target_may_change(&t, insn, sizeof(insn));
}
