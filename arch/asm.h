/* SPDX-License-Identifier: MIT */
/*
 * For the ports' assembly: a function's symbol and its frame information, from
 * FUNCTION(name), or LOCAL_FUNCTION(name), to END(name).
 */
#ifndef ARCH_ASM_H
#define ARCH_ASM_H

#include <frame.h>

#ifndef CFI_STARTPROC
#define CFI_STARTPROC .cfi_startproc
#endif

/* clang-format off */
	.cfi_sections .debug_frame

#define LOCAL_FUNCTION(name) \
	.type name, @function; .balign 4; name: CFI_STARTPROC
#define FUNCTION(name) .globl name; LOCAL_FUNCTION(name)
#define END(name) .cfi_endproc; .size name, . - name
/* clang-format on */

#endif
