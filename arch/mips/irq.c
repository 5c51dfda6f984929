/* SPDX-License-Identifier: MIT */
/*
 * Interrupts: IP7 is the CPU's timer, Count/Compare. With a GIC two of its pins
 * are used: IP2 the i8259 (shared interrupt 3), IP3 the inter-processor
 * interrupt (a shared interrupt for each VP, raised by a write). Without a GIC
 * IP2 is the i8259, and there is one CPU.
 */
#include <arch/arch.h>
#include <arch/uart16550.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>
#include <kernel/irq.h>

enum { PIN_I8259, PIN_IPI }; /* pin n is IP(n + 2) */

enum { UART_IRQ = 4, CASCADE_IRQ = 2 }; /* of the i8259s */

#define IP_I8259 CAUSE_IP(2 + PIN_I8259)
#define IP_IPI CAUSE_IP(2 + PIN_IPI)
#define IP_ALL (IP_I8259 | IP_IPI | IP_TIMER)

/* The shared interrupts used for IPIs are the last ones. Malta wires none. */
static u32 ipi_source(u32 vp)
{
	return boot_info.port.gic_sources - GCR_VPS + vp;
}

static void gic_route(u32 source, u32 pin, u32 vp, bool edge)
{
	unsigned long gic = boot_info.port.gic;
	u32 bit = 1u << (source % 32);
	u32 trigger = reg_read(gic, GIC_TRIGGER(source)) & ~bit;

	reg_write(gic, GIC_TRIGGER(source), trigger | (edge ? bit : 0));
	reg_write(gic, GIC_POLARITY(source),
		  reg_read(gic, GIC_POLARITY(source)) | bit);
	reg_write(gic, GIC_MAP_PIN(source), GIC_PIN | pin);
	reg_write(gic, GIC_MAP_VP(source), 1u << vp);
	reg_write(gic, GIC_SET_MASK(source), bit);
}

/*
 * The i8259s, 82371AB manual: vectors unused since pending interrupts are read by poll
 * commands, all lines masked but the UART's. Done before IP2 is unmasked: from reset on
 * the timer's line is open.
 */
static void i8259_init(void)
{
	isa_out(PIC1 + 1, 0xff);
	isa_out(PIC2 + 1, 0xff);
	isa_out(PIC1, 0x11); /* ICW1: ICW4 follows */
	isa_out(PIC1 + 1, 0x00);
	isa_out(PIC1 + 1, 1 << CASCADE_IRQ);
	isa_out(PIC1 + 1, 0x01); /* ICW4: 8086 mode */
	isa_out(PIC2, 0x11);
	isa_out(PIC2 + 1, 0x08);
	isa_out(PIC2 + 1, CASCADE_IRQ);
	isa_out(PIC2 + 1, 0x01);
	isa_out(PIC1 + 1, 0xff & ~(1 << UART_IRQ));
}

/* The boot CPU takes the i8259, and routes every CPU's IPI: the registers are
 * shared, and CPUs may start at the same time. */
static void gic_init(void)
{
	gic_route(GIC_I8259, PIN_I8259, boot_info.cpu_hwid[0].id, false);
	for (unsigned int c = 0; c < boot_info.nr_cpus; c++) {
		u32 vp = boot_info.cpu_hwid[c].id;

		gic_route(ipi_source(vp), PIN_IPI, vp, true);
	}
}

void arch_irq_init(void)
{
	if (cpu_index() == 0) {
		i8259_init();
		if (boot_info.port.gic)
			gic_init();
	}
	/* All of its sources that are this VP's own: open from reset. */
	if (boot_info.port.gic)
		reg_write(boot_info.port.gic, GIC_VL_RESET_MASK, 0xffffffff);
	write_c0(C0_STATUS, (read_c0(C0_STATUS) & ~STATUS_IM) | IP_ALL);
}

void arch_ipi_send(unsigned int cpu)
{
	/* The receiver sees the stores before it. Pairs with its load of
	 * ipi_pending, which depends on the interrupt. */
	asm volatile("sync" : : : "memory");
	reg_write(boot_info.port.gic, GIC_WEDGE,
		  GIC_WEDGE_SET | ipi_source(cpus[cpu].hwid.id));
}

static void ipi_acknowledge(void)
{
	/* Before the CPU reads the IPI's reasons: a later IPI comes again. */
	reg_write(boot_info.port.gic, GIC_WEDGE,
		  ipi_source(arch_this_cpu()->hwid.id));
	asm volatile("sync" : : : "memory");
}

/* The i8259's output is high: ask it which, until it has no more. */
static void i8259_interrupt(void)
{
	for (;;) {
		u8 poll;

		isa_out(PIC1, 0x0c); /* OCW3: the next read acknowledges */
		poll = isa_in(PIC1);
		if (!(poll & 0x80))
			return;
		if ((poll & 7) == UART_IRQ)
			uart_interrupt();
		else
			irq_event(IRQ_SPURIOUS);
		isa_out(PIC1,
			0x60 | (poll & 7)); /* specific end of interrupt */
	}
}

static bool in_window(const struct trap_frame *f, const char *start,
		      const char *end)
{
	return f->epc >= (u32)start && f->epc < (u32)end;
}

#define INSN_MOVE_AT_RA 0x03e00825u

/*
 * An interrupt in the delay slot of a site's `jal`: EPC says that the jal runs again,
 * but the jal has already written ra. If the jal has been patched out before the task
 * resumes, ra keeps the value that jal wrote, and the function returns into itself for
 * ever. So ra gets back the value from before the jal, which is in at. (Between the
 * move and the jal one instruction may stand for -mmcount-ra-address, and one for the
 * static chain.)
 */
static void undo_link(struct trap_frame *f)
{
	const u32 *insn = (const u32 *)f->epc;

	if (f->cause & CAUSE_BD && f->reg[REG_RA] == f->epc + 8 &&
	    (insn[-1] == INSN_MOVE_AT_RA || insn[-2] == INSN_MOVE_AT_RA ||
	     insn[-3] == INSN_MOVE_AT_RA))
		f->reg[REG_RA] = f->reg[REG_AT];
}

/* From trap_handle(), interrupts off. */
void irq_dispatch(struct trap_frame *f)
{
	u32 pending = f->cause & f->status;

	undo_link(f);
	/* See relax_wait() and arch_cpu_idle(). */
	if (in_window(f, relax_window, relax_window_end)) {
		f->epc = (u32)relax_window_end;
		f->status &= ~STATUS_IE;
		return;
	}
	if (in_window(f, idle_window, idle_window_end))
		f->epc = (u32)idle_window_end;
	irq_enter(f);
	if (pending & IP_TIMER)
		clock_interrupt();
	if (pending & IP_IPI) {
		ipi_acknowledge();
		irq_event(IRQ_IPI);
	}
	if (pending & IP_I8259)
		i8259_interrupt();
	if (!(pending & IP_ALL))
		irq_event(IRQ_SPURIOUS);
	irq_exit(f);
}

int arch_nmi_send(unsigned int cpu)
{
	(void)cpu;
	return -ENOSYS;
}
