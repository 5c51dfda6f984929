/* SPDX-License-Identifier: MIT */
/*
 * The interrupt controller: a GICv3 (IHI 0069), or a GICv2 (IHI 0048), as the device tree
 * says. It brings the console's interrupt to the boot CPU. Each CPU's timer and the
 * interrupt between CPUs are private ones.
 */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/panic.h>
#include <kernel/cpu/cpu.h>
#include <kernel/errno.h>

#define GIC_IPI 0	       /* the number of the interrupt between CPUs */
#define GIC_NONE 1020	       /* from here on: there is none, after all */
#define GIC_NUMBER 0x3ff       /* the CPU interface adds other facts above it */
#define GIC_LOWEST_OF_ALL 0xf0 /* the priority mask: takes every interrupt */
#define GIC_TIMER_ALONE 0x80 /* takes those above this priority: the timer's */
#define GIC_BEHIND_TIMER 0x80808080 /* the priority of four interrupts */

/* The distributor. For private interrupts a redistributor has the first two, at GICR_PRIVATE. */
#define GICD_CTLR 0x000
#define GICD_GROUP(irq) (0x080 + (irq) / 32 * 4)
#define GICD_ENABLE(irq) (0x100 + (irq) / 32 * 4)
#define GICD_PRIORITY(irq) (0x400 + ALIGN_DOWN(irq, 4u)) /* a byte each */
#define GICD_TARGET 0x800 /* a byte each. Version 2 */
#define GICD_SEND 0xf00	  /* version 2 */
#define GICD_ROUTE(irq) (0x6000 + 8 * (irq))
#define GICD_CTLR_V2 0x1
#define GICD_CTLR_V3 0x12 /* group 1, by affinity */

#define GICR_SIZE 0x20000
#define GICR_TYPER 0x8 /* affinity in the upper half */
#define GICR_TYPER_LAST 0x10
#define GICR_WAKER 0x14
#define GICR_WAKER_SLEEP 0x2
#define GICR_WAKER_ASLEEP 0x4
#define GICR_PRIVATE 0x10000

/* The CPU interface: registers of version 2, and the system registers of version 3. */
enum { GICC_CTLR = 0x00, GICC_PMR = 0x04, GICC_IAR = 0x0c, GICC_EOIR = 0x10 };
#define ICC_PMR s3_0_c4_c6_0
#define ICC_SGI1R s3_0_c12_c11_5
#define ICC_IAR1 s3_0_c12_c12_0
#define ICC_EOIR1 s3_0_c12_c12_1
#define ICC_CTLR s3_0_c12_c12_4
#define ICC_SRE s3_0_c12_c12_5
#define ICC_IGRPEN1 s3_0_c12_c12_7

/* A macro's argument is a name for the assembler only after it has been expanded. */
#define icc_read(reg) reg_read(reg)
#define icc_write(reg, v) reg_write(reg, v)

/* Version 2, by CPU index: the bit that the distributor knows the CPU by. */
static u8 target_bit[MAX_CPUS];

static bool is_v3(void)
{
	return boot_info.port.gicr;
}

static u64 gicd(u64 offset)
{
	return (u64)arch_phys_to_virt(boot_info.port.gicd) + offset;
}

static u64 gicc(u64 offset)
{
	return (u64)arch_phys_to_virt(boot_info.port.gicc) + offset;
}

/* The redistributor of this CPU. */
static u64 find_gicr(void)
{
	u64 at = boot_info.port.gicr, typer;

	do {
		u64 va = (u64)arch_phys_to_virt(at);

		typer = mmio_read64(va + GICR_TYPER);
		if (typer >> 32 == arch_this_cpu()->hwid.id)
			return va;
		at += GICR_SIZE;
	} while (!(typer & GICR_TYPER_LAST) && at < boot_info.port.gicr_end);
	panic("no redistributor for CPU %u", arch_this_cpu()->hwid.id);
}

/* Of the private interrupts. */
static void set_priorities(u64 base)
{
	mmio_write32(base + GICD_PRIORITY(boot_info.port.timer_irq), 0);
	mmio_write32(base + GICD_PRIORITY(GIC_IPI), GIC_BEHIND_TIMER);
}

static void init_v3(u32 private)
{
	u64 gicr = find_gicr();
	u32 waker = mmio_read32(gicr + GICR_WAKER);

	mmio_write32(gicd(GICD_CTLR), GICD_CTLR_V3);
	mmio_write32(gicr + GICR_WAKER, waker & ~GICR_WAKER_SLEEP);
	while (mmio_read32(gicr + GICR_WAKER) & GICR_WAKER_ASLEEP)
		;
	mmio_write32(gicr + GICR_PRIVATE + GICD_GROUP(0), ~0u);
	set_priorities(gicr + GICR_PRIVATE);
	mmio_write32(gicr + GICR_PRIVATE + GICD_ENABLE(0), private);
	icc_write(ICC_SRE, 1);
	insn_sync();
	icc_write(ICC_PMR, GIC_LOWEST_OF_ALL);
	icc_write(ICC_CTLR, 0);
	icc_write(ICC_IGRPEN1, 1);
	insn_sync();
}

static void init_v2(u32 private)
{
	target_bit[cpu_index()] = (u8)mmio_read32(gicd(GICD_TARGET));
	mmio_write32(gicd(GICD_CTLR), GICD_CTLR_V2);
	set_priorities(gicd(0));
	mmio_write32(gicd(GICD_ENABLE(0)), private);
	mmio_write32(gicc(GICC_PMR), GIC_LOWEST_OF_ALL);
	mmio_write32(gicc(GICC_CTLR), GICD_CTLR_V2);
}

void arch_irq_init(void)
{
	u32 private = 1u << boot_info.port.timer_irq | 1u << GIC_IPI;

	if (is_v3())
		init_v3(private);
	else
		init_v2(private);
}

void gic_enable(u32 irq)
{
	u64 target = gicd(GICD_TARGET + ALIGN_DOWN(irq, 4u));
	u64 group = gicd(GICD_GROUP(irq));
	u32 byte = irq % 4 * 8;

	if (is_v3()) {
		mmio_write32(group, mmio_read32(group) | 1u << irq % 32);
		mmio_write64(gicd(GICD_ROUTE(irq)), cpus[0].hwid.id);
	} else {
		mmio_write32(target, (mmio_read32(target) & ~(0xffu << byte)) |
					     (u32)target_bit[0] << byte);
	}
	mmio_write32(gicd(GICD_PRIORITY(irq)), GIC_BEHIND_TIMER);
	mmio_write32(gicd(GICD_ENABLE(irq)), 1u << irq % 32);
}

void gic_timer_alone(bool alone)
{
	u32 mask = alone ? GIC_TIMER_ALONE : GIC_LOWEST_OF_ALL;

	if (is_v3()) {
		icc_write(ICC_PMR, mask);
		insn_sync();
	} else {
		mmio_write32(gicc(GICC_PMR), mask);
	}
}

/*
 * The end of the interrupt is told before the event is dealt with, because until then the GIC
 * signals no other of the same priority. Interrupts are masked, so this one cannot come again
 * meanwhile.
 */
static void gic_end(u32 ack)
{
	if (is_v3()) {
		icc_write(ICC_EOIR1, ack);
		insn_sync();
	} else {
		mmio_write32(gicc(GICC_EOIR), ack);
	}
}

void gic_interrupt(void)
{
	u32 ack =
		is_v3() ? (u32)icc_read(ICC_IAR1) : mmio_read32(gicc(GICC_IAR));
	u32 irq = ack & GIC_NUMBER;
	enum irq_kind kind = IRQ_SPURIOUS;

	/* Acknowledged before the CPU reads an IPI's reasons: a later IPI is another interrupt. */
	asm volatile("dsb sy" ::: "memory");
	if (irq == boot_info.port.timer_irq) {
		timer_silence();
		kind = IRQ_TIMER;
	} else if (irq == GIC_IPI) {
		kind = IRQ_IPI;
	} else if (irq == boot_info.port.uart_irq) {
		kind = IRQ_CONSOLE;
	}
	if (irq < GIC_NONE)
		gic_end(ack);
	irq_event(kind);
}

void arch_ipi_send(unsigned int cpu)
{
	u64 id = cpus[cpu].hwid.id;

	/* Pairs with the one in gic_interrupt(). */
	asm volatile("dsb sy" ::: "memory");
	if (is_v3())
		icc_write(ICC_SGI1R, (id >> 16 & 0xff) << 32 |
					     (id >> 8 & 0xff) << 16 |
					     GIC_IPI << 24 | 1u << (id & 0xf));
	else
		mmio_write32(gicd(GICD_SEND),
			     (u32)target_bit[cpu] << 16 | GIC_IPI);
	insn_sync();
}

int arch_nmi_send(unsigned int cpu)
{
	(void)cpu;
	return -ENOSYS;
}
