/* SPDX-License-Identifier: MIT */
/*
 * Fills boot_info from the monitor's arguments and the coherence manager's
 * registers. The monitor's strings are checked before they are followed: nonsense
 * ends in boot_fail().
 */
#include <boot/boot_info.h>
#include <boot/boot.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>
#include <kernel/image/symbols.h>
#include <kernel/main.h>

#define MONITOR_WORDS 64    /* entries of argv or of the environment */
#define MONITOR_STRING 4096 /* bytes of one */
#define MONITOR_CMDLINE 255 /* QEMU's malta cuts a longer one */
#define MEMORY_LEAST 0x1000000
/* argc with semihosting on: ask by UHI calls. argv is there all the same. */
#define ARGC_UHI 0xffffffffu

noreturn void boot_main(u32 argc, const u32 *argv, const u32 *env);

/* A string or table of the monitor: in kseg0, in the RAM below the image. */
static bool is_monitors(u32 address)
{
	return address >= KSEG0 && address < KERNEL_VIRT;
}

static const char *monitor_string(const char *what, u32 address)
{
	const char *s = (const char *)address;

	if (!is_monitors(address) ||
	    strnlen(s, MONITOR_STRING) == MONITOR_STRING)
		boot_fail("monitor: %s at %#x is no string in its memory", what,
			  address);
	return s;
}

/* The environment's value of name, or NULL. */
static const char *monitor_environment(const u32 *env, const char *name)
{
	for (int i = 0; i < MONITOR_WORDS && env[i]; i += 2)
		if (!strcmp(monitor_string("environment", env[i]), name))
			return monitor_string(name, env[i + 1]);
	return NULL;
}

/* A memory size in bytes from the environment. 0: there is none that makes sense. */
static u64 memory_size(const u32 *env, const char *name)
{
	const char *text = monitor_environment(env, name);
	u64 size;

	if (!text)
		return 0;
	if (parse_u64(text, &size) || size < MEMORY_LEAST || size % PAGE_SIZE)
		boot_fail("monitor: %s=%s: a multiple of %lu of at least %d "
			  "MiB wanted",
			  name, text, PAGE_SIZE, MEMORY_LEAST >> 20);
	return size;
}

/* memsize is the RAM that kseg0 reaches, ememsize all RAM. */
static void find_memory(const u32 *env)
{
	u64 size = memory_size(env, "memsize");
	u64 all = memory_size(env, "ememsize");

	if (!size)
		boot_fail("monitor: no memsize in the environment");
	boot_info.ram_bytes = max(size, all);
	/* Below the image: the monitor's. */
	boot_add_memory(KERNEL_PHYS, min(size, (u64)RAM_LIMIT));
	boot_remove_memory(KERNEL_PHYS, arch_virt_to_phys(_end));
}

/* "name=number" at *text: the number, and *text moved past it and blanks. */
static bool take_number(const char **text, const char *name, u64 *value)
{
	size_t len = strlen(name);
	char number[24];
	const char *end;

	if (strncmp(*text, name, len))
		return false;
	end = strchr(*text + len, ' ');
	if (!end || (size_t)(end - *text) - len >= sizeof(number))
		boot_fail("monitor: %s without a number in: %s", name, *text);
	string_copy(number, *text + len, end - *text - len + 1);
	if (parse_u64(number, value))
		boot_fail("monitor: %s%s is no number", name, number);
	*text = end + 1;
	return true;
}

/*
 * argv[1] is -append's text. With an initrd, "rd_start=ADDRESS rd_size=BYTES "
 * before it, the address one of kseg0, sign-extended to 64 bits.
 */
static void find_cmdline(u32 argc, const u32 *argv)
{
	const char *text = argc > 1 ? monitor_string("argv[1]", argv[1]) : "";
	bool cut = strlen(text) >= MONITOR_CMDLINE;
	u64 start, size;

	if (take_number(&text, "rd_start=", &start)) {
		if (!take_number(&text, "rd_size=", &size))
			boot_fail("monitor: rd_start= without rd_size=");
		start = (u32)start - KSEG0;
		if (size > RAM_LIMIT ||
		    start + size > min(boot_info.ram_bytes, (u64)RAM_LIMIT))
			boot_fail("monitor: initrd lies outside memory");
		boot_info.initrd = (struct boot_range){ start, start + size };
		boot_remove_memory(start, start + size);
	}
	boot_set_cmdline(text, MONITOR_STRING);
	boot_info.cmdline_truncated |= cut;
}

/* The coherence manager's registers, or 0. QEMU's P5600 always claims to have
 * one. If so, its GCR_BASE says where. */
static unsigned long find_gcr(void)
{
	u32 phys;

	if (!(read_c0(C0_CONFIG) & CONFIG_M) ||
	    !(read_c0(C0_CONFIG1) & CONFIG_M) ||
	    !(read_c0(C0_CONFIG2) & CONFIG_M) ||
	    !(read_c0(C0_CONFIG3) & CONFIG3_CMGCR))
		return 0;
	phys = read_c0(C0_CMGCRBASE) << 4;
	if ((reg_read(KSEG1 + phys, GCR_BASE) & GCR_BASE_MASK) != phys)
		return 0;
	return KSEG1 + phys;
}

/* Give a block of registers its place, and enable it there. */
static unsigned long place_block(const char *name, u32 offset, u32 phys)
{
	unsigned long gcr = boot_info.port.gcr;

	reg_write(gcr, offset, phys | GCR_BASE_ENABLE);
	if (reg_read(gcr, offset) != (phys | GCR_BASE_ENABLE))
		boot_fail("coherence manager: no %s at %#x", name, phys);
	return KSEG1 + phys;
}

static void find_gic(void)
{
	struct boot_port *port = &boot_info.port;
	u32 config;

	port->gic = place_block("GIC", GCR_GIC_BASE, GIC_PHYS);
	config = reg_read(port->gic, GIC_CONFIG);
	port->gic_sources = GIC_CONFIG_SOURCES(config);
	if (port->gic_sources < 2 * GCR_VPS)
		boot_fail("GIC: %u shared interrupts, %u wanted",
			  port->gic_sources, 2 * GCR_VPS);
	/* Its low word is used, as 32 bits is all that QEMU's counter has. */
	reg_write(port->gic, GIC_CONFIG, config & ~GIC_CONFIG_COUNTSTOP);
	arch_clock_words.counter = (volatile u32 *)(port->gic + GIC_COUNTER_LO);
}

/*
 * The VPs of the boot VP's core. Further cores would need their caches set up
 * and are left alone.
 */
static void find_cpus(void)
{
	struct boot_port *port = &boot_info.port;
	u32 self = read_c0(C0_EBASE) & EBASE_CPUNUM, cores = 1;

	port->vps = 1;
	boot_info.cpu_hwid[0].id = self;
	boot_info.nr_cpus = 1;
	port->gcr = find_gcr();
	if (port->gcr) {
		port->vps = (reg_read(port->gcr, GCR_CL_CONFIG) & 0x3ff) + 1;
		cores = (reg_read(port->gcr, GCR_CONFIG) & 0xff) + 1;
		port->cpc = place_block("CPC", GCR_CPC_BASE, CPC_PHYS);
		find_gic();
	}
	for (u32 vp = 0; vp < min(port->vps, (u32)GCR_VPS); vp++)
		if (vp != self)
			boot_info.cpu_hwid[boot_info.nr_cpus++].id = vp;
	boot_info.cpus_ignored = port->vps * cores - boot_info.nr_cpus;
}

noreturn void boot_main(u32 argc, const u32 *argv, const u32 *env)
{
	arch_console_init();
	if (argc == ARGC_UHI)
		argc = 2;
	if (argc > MONITOR_WORDS || !is_monitors((u32)argv) ||
	    !is_monitors((u32)env) || ((u32)argv | (u32)env) % 4)
		boot_fail("monitor: argc %u, argv %p, environment %p make no "
			  "sense",
			  argc, argv, env);
	find_memory(env);
	find_cmdline(argc, argv);
	find_cpus();
	boot_info.clock_hz = clock_measure();
	if (!boot_info.clock_hz)
		boot_fail("clock: the PIT at ISA %#x does not count", PIT);
	arch_ns_per_tick =
		(1000000000ull + boot_info.clock_hz / 2) / boot_info.clock_hz;
	kernel_main();
}
