/* SPDX-License-Identifier: MIT */
/*
 * QEMU's plugin interface, version 1, as in QEMU 7.2: what the plugins here and in
 * tests/plugin use of it. Debian packages no qemu-plugin.h.
 */
#ifndef TOOLS_PLUGIN_H
#define TOOLS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
/* In memory callbacks: the kind of the access. */
typedef uint32_t plugin_access;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct plugin_info {
	const char *target; /* "x86_64", "riscv64", "mips", "mipsel" */
	struct {
		int min, current;
	} version;
	bool system;
	int cpus, max_cpus;
};

/* Registers that a callback reads, and accesses that it wants to hear of. */
enum { PLUGIN_NO_REGISTERS };
enum { PLUGIN_STORES = 2, PLUGIN_ACCESSES = 3 };
/* What an instruction does to a counter without a callback. */
enum { PLUGIN_ADD };

typedef void (*plugin_tb_cb)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*plugin_exec_cb)(unsigned int vcpu, void *data);
typedef void (*plugin_mem_cb)(unsigned int vcpu, plugin_access access,
			      uint64_t vaddr, void *data);
typedef void (*plugin_exit_cb)(plugin_id id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, plugin_tb_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  plugin_exec_cb cb, int registers,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    plugin_exec_cb cb, int registers,
					    void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						int op, void *counter,
						uint64_t by);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      plugin_mem_cb cb, int registers, int what,
				      void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, plugin_exit_cb cb,
				    void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
/* QEMU's own pointer to the instruction's bytes in the guest's RAM, or NULL. */
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);

unsigned int qemu_plugin_mem_size_shift(plugin_access access);
bool qemu_plugin_mem_is_store(plugin_access access);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(plugin_access access,
						  uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hwaddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hwaddr);

#endif
