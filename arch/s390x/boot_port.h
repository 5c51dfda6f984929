/* SPDX-License-Identifier: MIT */
/* Facts about the machine that only this port needs: none. */
#ifndef ARCH_S390X_BOOT_PORT_H
#define ARCH_S390X_BOOT_PORT_H

struct boot_port {
	char unused;
};

#endif
