/* SPDX-License-Identifier: MIT */
/*
 * A TCG plugin: counts, from outside the guest, how often each of a list of
 * instructions was executed, on all CPUs together. The calls that the tracer says that it
 * recorded is compared with this.
 *
 *   -plugin file=witness.so,addrs=FILE,counts=FILE
 *
 * addrs: binary, one little-endian u32 an instruction: the low half of its
 * address. counts: as many u64, in the same order, a mapped file: the test
 * reads it while the guest runs.
 */
#include "../../tools/plugin/plugin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

PLUGIN_EXPORT int qemu_plugin_version = 1;

static uint32_t *addrs; /* ascending */
static uint64_t *counts;
static size_t nr_addrs;

static void fail(const char *what)
{
	fprintf(stderr, "witness: %s\n", what);
	exit(1);
}

static void *map(const char *path, size_t *size)
{
	int fd = open(path, O_RDWR);
	off_t length = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	void *p;

	if (length <= 0)
		fail(path);
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		fail(path);
	close(fd);
	*size = length;
	return p;
}

static void executed(unsigned int vcpu, void *data)
{
	(void)vcpu;
	__atomic_add_fetch((uint64_t *)data, 1, __ATOMIC_RELAXED);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint32_t addr = qemu_plugin_insn_vaddr(insn);
		uint32_t *found = bsearch(&addr, addrs, nr_addrs,
					  sizeof(*addrs), compare);

		if (found)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, executed, PLUGIN_NO_REGISTERS,
				&counts[found - addrs]);
	}
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id,
				      const struct plugin_info *info, int argc,
				      char **argv)
{
	size_t size = 0;
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "addrs=", 6)) {
			addrs = map(argv[i] + 6, &size);
			nr_addrs = size / sizeof(*addrs);
		} else if (!strncmp(argv[i], "counts=", 7)) {
			counts = map(argv[i] + 7, &size);
		}
	}
	if (!addrs || !counts || size != nr_addrs * sizeof(*counts))
		fail("addrs= and counts= of the same length are needed");
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
