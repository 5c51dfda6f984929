/* SPDX-License-Identifier: MIT */
/* The guest's RAM, which QEMU keeps in a file (-object memory-backend-file,share=on). */
#ifndef TOOLS_RAM_H
#define TOOLS_RAM_H

#include <stdint.h>

extern uint8_t *ram; /* QEMU's own mapping of it. NULL: not found yet */
extern uint64_t ram_size;

/* Find QEMU's mapping of the file at path, or end QEMU. Plugins are installed before there is
 * one: when code is translated, there is. */
void ram_find(const char *path);

#endif
