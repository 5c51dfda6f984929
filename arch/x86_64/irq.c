/* SPDX-License-Identifier: MIT */
/* Local APIC, I/O APIC, and the old PICs silenced. */
#include <arch/arch.h>
#include <boot/boot_info.h>
#include <kernel/cpu/cpu.h>
#include <kernel/printk.h>

#define SVR_ENABLE 0x100
#define ICR_PENDING 0x1000

enum { PIC1 = 0x20, PIC2 = 0xa0 };

enum { IOAPIC_VERSION = 1, IOAPIC_REDIRECTION = 0x10 };
#define REDIRECTION_MASKED 0x10000
#define REDIRECTION_LEVEL 0x8000
#define REDIRECTION_LOW 0x2000

volatile u32 *lapic;
static volatile u32 *ioapic; /* [0] selects a register, [4] is its value */
static unsigned int ioapic_pins;

u32 lapic_read(unsigned int reg)
{
	return lapic[reg / 4];
}

void lapic_write(unsigned int reg, u32 v)
{
	lapic[reg / 4] = v;
}

void lapic_command(hwid_t dest, u32 command)
{
	/* The register is two words: no interrupt may send one in between. */
	irq_state_t state = arch_irq_save();

	while (lapic_read(LAPIC_ICR) & ICR_PENDING)
		arch_cpu_relax();
	lapic_write(LAPIC_ICR_HIGH, dest.id << 24);
	lapic_write(LAPIC_ICR, command);
	arch_irq_restore(state);
}

static u32 ioapic_read(unsigned int reg)
{
	ioapic[0] = reg;
	return ioapic[4];
}

static void ioapic_write(unsigned int reg, u32 v)
{
	ioapic[0] = reg;
	ioapic[4] = v;
}

void ioapic_route(u32 gsi, u8 vector, bool level, bool low)
{
	unsigned int pin = gsi - boot_info.port.ioapic_gsi;
	unsigned int reg = IOAPIC_REDIRECTION + 2 * pin;

	if (pin >= ioapic_pins) {
		printk("x86_64: interrupt %u is none of the I/O APIC's %u\n",
		       gsi, ioapic_pins);
		return;
	}
	ioapic_write(reg + 1, boot_info.cpu_hwid[0].id << 24);
	ioapic_write(reg, vector | (level ? REDIRECTION_LEVEL : 0) |
				  (low ? REDIRECTION_LOW : 0));
}

/* Vectors out of the exceptions' way, then everything masked. */
static void pic_silence(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		u16 port = i ? PIC2 : PIC1;

		outb(port, 0x11);
		outb(port + 1, VECTOR_PIC + 8 * i);
		outb(port + 1, i ? 2 : 4); /* how the two are connected */
		outb(port + 1, 1);
		outb(port + 1, 0xff);
	}
}

static void ioapic_init(void)
{
	ioapic = mmu_map_device(boot_info.port.ioapic);
	ioapic_pins = (ioapic_read(IOAPIC_VERSION) >> 16 & 0xff) + 1;
	for (unsigned int pin = 0; pin < ioapic_pins; pin++)
		ioapic_write(IOAPIC_REDIRECTION + 2 * pin, REDIRECTION_MASKED);
}

void lapic_map(void)
{
	lapic = mmu_map_device(boot_info.port.lapic);
}

void arch_irq_init(void)
{
	/*
	 * The PICs before their pin of the local APIC is masked: QEMU 7.2 keeps
	 * a request that was raised before, and delivers it as vector -1.
	 */
	if (cpu_index() == 0) {
		pic_silence();
		ioapic_init();
	}
	lapic_write(LAPIC_SVR, SVR_ENABLE | VECTOR_SPURIOUS);
	lapic_write(LAPIC_TPR, 0);
	/* LINT0 is the PIC's, LINT1 the machine's NMI button. */
	lapic_write(LAPIC_LVT_LINT0, LVT_MASKED);
	lapic_write(LAPIC_LVT_LINT1, LVT_NMI);
	lapic_write(LAPIC_LVT_ERROR, LVT_MASKED);
	lapic_write(LAPIC_EOI, 0);
}

/* The registers are uncached: the write comes after all stores before it. */
void arch_ipi_send(unsigned int cpu)
{
	lapic_command(cpus[cpu].hwid, ICR_FIXED | VECTOR_IPI);
}

int arch_nmi_send(unsigned int cpu)
{
	lapic_command(cpus[cpu].hwid, ICR_NMI);
	return 0;
}
