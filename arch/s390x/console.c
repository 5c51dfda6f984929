/* SPDX-License-Identifier: MIT */
/* The console: the service processor's (SCLP) events with lines of ASCII. */
#include <arch/arch.h>
#include <kernel/cpu/cpu.h>
#include <kernel/lib/string.h>

#define EVENT_ASCII 0x1a
#define MASK_ASCII (1u << (32 - EVENT_ASCII))
#define VARIABLE_LENGTH 0x80

/* A block for the service processor begins with this. */
struct sclp_head {
	u16 length;
	u8 function, control[3];
	u16 response;
};

struct sclp_event {
	u16 length;
	u8 type, flags;
	u16 unused;
};

struct mask_block {
	struct sclp_head head;
	u16 unused, mask_length;
	u32 receive, send, sclp_receive, sclp_send;
};

/* A page each, which no block may cross. */
struct write_block {
	struct sclp_head head;
	struct sclp_event event;
	char c;
} __attribute__((aligned(16)));

static struct write_block writing[MAX_CPUS];
static struct {
	struct sclp_head head;
	struct sclp_event event;
	char text[PAGE_SIZE - sizeof(struct sclp_head) -
		  sizeof(struct sclp_event)];
} reading __attribute__((aligned(PAGE_SIZE)));
static unsigned int nr_read, next_read;

void arch_console_init(void)
{
	static struct mask_block block __attribute__((aligned(32)));

	block = (struct mask_block){
		.head.length = sizeof(block),
		.mask_length = sizeof(block.receive),
		.receive = MASK_ASCII,
		.send = MASK_ASCII,
	};
	sclp_call(SCLP_WRITE_MASK, arch_virt_to_phys(&block));
}

void arch_console_putc(char c)
{
	irq_state_t state = arch_irq_save();
	struct write_block *block = &writing[cpu_index()];

	*block = (struct write_block){
		.head.length = offsetof(struct write_block, c) + 1,
		.event.length = sizeof(block->event) + 1,
		.event.type = EVENT_ASCII,
		.c = c,
	};
	sclp_call(SCLP_WRITE_DATA, arch_virt_to_phys(block));
	arch_irq_restore(state);
}

/* The first byte of an event says that characters follow. */
static void read_more(void)
{
	memset(&reading.head, 0, sizeof(reading.head));
	reading.head.length = sizeof(reading);
	reading.head.control[2] = VARIABLE_LENGTH;
	sclp_call(SCLP_READ_DATA, arch_virt_to_phys(&reading));
	next_read = 1;
	nr_read = reading.head.response == SCLP_DONE &&
				  reading.event.type == EVENT_ASCII ?
			  reading.event.length - sizeof(reading.event) :
			  0;
}

int arch_console_getc(void)
{
	if (next_read >= nr_read)
		read_more();
	return next_read < nr_read ? (u8)reading.text[next_read++] : -1;
}
