/* SPDX-License-Identifier: MIT */
/* The functions that a port calls when an interrupt or an NMI arrives. */
#ifndef KERNEL_IRQ_H
#define KERNEL_IRQ_H

#include <kernel/types.h>

struct trap_frame;

enum irq_kind {
	IRQ_TIMER,
	IRQ_IPI,
	IRQ_CONSOLE,
	IRQ_SPURIOUS,
	IRQ_NMI, /* counted by the port: nothing else in an NMI may run a site */
	NR_IRQ_KINDS
};
extern const char *const irq_kind_names[NR_IRQ_KINDS];

/*
 * A port's interrupt path, interrupts off all along:
 *	irq_enter(frame); acknowledge; irq_event(kind) ...; end of interrupt;
 *	irq_exit(frame);
 * irq_exit() may switch tasks: on return the frame may be resumed much later
 * and on another CPU, so nothing about the CPU may be kept across it, and the
 * controller must have been told before.
 */
void irq_enter(struct trap_frame *f);
void irq_event(enum irq_kind kind);
void irq_exit(struct trap_frame *f);

/* Is this an interrupt handler (or an NMI)? */
bool in_interrupt(void);

/*
 * Hook for tests: called inside every NMI, NULL: nothing needs it. The port's way to
 * it has no site, which the build proves. The hook itself may call functions with
 * sites only while no batch can be carried out by `stop`, because an NMI can see
 * that strategy's stores half done. It takes no lock.
 */
extern void (*irq_nmi_hook)(void);

/* From a port's NMI: calls the hook. The build's proof ends here (tools/patchpath). */
void irq_nmi(void);

/* The frame of the innermost interrupt on this CPU, or NULL. */
struct trap_frame *irq_frame(void);

#endif
