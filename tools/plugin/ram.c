/* SPDX-License-Identifier: MIT */
/* The guest's RAM: ram.h. */
#include "ram.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint8_t *ram;
uint64_t ram_size;

void ram_find(const char *path)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint64_t start, end;

	while (maps && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strstr(line, path) ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
			continue;
		if (ram && start != (uintptr_t)ram + ram_size)
			errx(1, "%s is mapped twice", path);
		ram = ram ? ram : (uint8_t *)(uintptr_t)start;
		ram_size += end - start;
	}
	if (maps)
		fclose(maps);
	if (!ram)
		errx(1, "QEMU has not mapped %s", path);
}
