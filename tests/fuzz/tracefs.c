/* SPDX-License-Identifier: MIT */
/*
 * tools/tracefs between a hostile guest, which writes into its mailbox as it likes, and this
 * machine's kernel, which keeps the rules of FUSE. The input says by turns which request the kernel
 * makes and which bytes the guest writes. Each request is answered once, and none is left when the
 * guest is given up. The clock is the input's, too.
 */
#include <sanitizer/asan_interface.h>

#pragma push_macro("main")
#undef main
#define main tracefs_main
#define serve tracefs_serve
#include "../../tools/tracefs/tracefs.c"
#pragma pop_macro("main")
/* Their variables are as new before each session. */
#include "../../tools/tracefs/mailbox.c"
#define mailbox_take take_message
static uint32_t take_message(uint8_t *message, uint32_t room);
#include "../../tools/tracefs/p9.c"
#undef mailbox_take

#define MOST 64
#define RING (2 * P9_MSIZE)

/* A node that this machine's kernel knows, or an open file. id 0: this place is free. */
struct object {
	uintptr_t id;
	unsigned int users; /* requests, and open files */
	uint64_t lookups;
	bool folder;
	struct object *node; /* of a file */
	struct fuse_file_info info;
};

struct fuse_req {
	bool answered, may_open;
	struct object *about; /* It stays until the answer. */
	fuse_interrupt_func_t interrupt;
	void *data;
};

static struct object nodes[MOST] = { { FUSE_ROOT_ID, .folder = true } };
static struct object files[MOST];
static struct fuse_req asked[2 * MOST]; /* the last turns release and forget */
static unsigned int nr_asked;
static uint64_t clock_ns = 1000000000;
static char memory[32]; /* the guest's: a file */
static FILE *input;

static uint32_t next(unsigned int n)
{
	uint32_t value = 0;

	while (n--)
		value = value << 8 | (getc(input) & 0xff);
	return value;
}

/* ---- The guest ------------------------------------------------------------------------- */

/* Put bytes into the ring of replies: of the input, or these. */
static void guest_put(const void *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		replies[(box->reply_head + i) % RING] =
			bytes ? ((const uint8_t *)bytes)[i] : next(1);
	box->reply_head += n;
}

/* Answer the oldest request that has no answer, with n bytes. type 0: the right one. */
static void guest_answer(uint8_t type, const void *bytes, uint32_t n)
{
	uint32_t at = box->request_tail, size = 0;
	uint8_t head[7];

	for (unsigned int i = 0; i < 7; i++)
		head[i] = requests[(at + i) % RING];
	memcpy(&size, head, 4);
	if (at == box->request_head || size > box->request_head - at) {
		/* It has none, or it has spoilt the ring itself. */
		while (!bytes && n--)
			next(1);
		return;
	}
	box->request_tail += size;
	size = n + 7;
	memcpy(head, &size, 4);
	head[4] = type ? type : head[4] + 1;
	guest_put(head, 7);
	guest_put(bytes, n);
}

/* tracefs waits: the guest boots, and takes up the session. */
int nanosleep(const struct timespec *ns, struct timespec *left)
{
	static uint32_t sessions;
	static const uint8_t version[] = { 0, 0, 1, 0, 8, 0, '9', 'P' },
			     qid[13];

	clock_ns += 1000000;
	if (box->guest_epoch != box->host_epoch)
		box->alive = ++sessions; /* p9.c knows the one before */
	box->guest_epoch = box->host_epoch;
	guest_answer(0, version, sizeof(version));
	guest_answer(0, qid, sizeof(qid));
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	clock_ns += 1000;
	*now = (struct timespec){ clock_ns / 1000000000,
				  clock_ns % 1000000000 };
	return 0;
}

/* The sanitizer sees a read behind the message, which p9.c keeps in a larger place. */
static uint32_t take_message(uint8_t *message, uint32_t room)
{
	uint32_t size;

	ASAN_UNPOISON_MEMORY_REGION(message, room);
	size = mailbox_take(message, room);
	ASAN_POISON_MEMORY_REGION(message + size, room - size);
	return size;
}

/* ---- This machine's kernel -------------------------------------------------------------- */

static void answer(fuse_req_t req)
{
	if (req->answered)
		abort(); /* a second answer */
	req->answered = true;
	req->about->users--;
}

/* An object of that id, or a new one. NULL: there are too many. */
static struct object *object_of(struct object *objects, uintptr_t id)
{
	struct object *free = NULL;

	for (struct object *o = objects; o < objects + MOST; o++)
		if (o->id == id)
			return o;
		else if (!o->id && !free)
			free = o;
	if (free)
		*free = (struct object){ .id = id };
	return free;
}

int fuse_reply_err(fuse_req_t req, int err)
{
	if (err < 0 || err > 4095)
		abort(); /* the kernel takes none of these */
	answer(req);
	return 0;
}

void fuse_reply_none(fuse_req_t req)
{
	answer(req);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	struct object *n = object_of(nodes, e->ino);

	answer(req);
	if (!n)
		abort(); /* MOST requests make fewer */
	n->lookups++;
	n->folder = S_ISDIR(e->attr.st_mode);
	return 0;
}

int fuse_reply_open(fuse_req_t req, const struct fuse_file_info *info)
{
	struct object *f = req->may_open ? object_of(files, info->fh) : NULL;

	if (f) {
		f->node = req->about;
		f->node->users++;
		f->folder = f->node->folder;
		f->info = *info;
	}
	answer(req);
	return f ? 0 : -ENOENT; /* the program that has opened it has ended */
}

#define ANSWERS(name, ...)                                                     \
	int name(fuse_req_t req, __VA_ARGS__)                                  \
	{                                                                      \
		answer(req);                                                   \
		return 0;                                                      \
	}
ANSWERS(fuse_reply_attr, const struct stat *st, double s)
ANSWERS(fuse_reply_write, size_t size)
ANSWERS(fuse_reply_poll, unsigned int events)

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
	static char copy[1 << 17];

	memcpy(copy, buf, size);
	answer(req);
	return 0;
}

int fuse_lowlevel_notify_store(struct fuse_session *s, fuse_ino_t ino, off_t at,
			       struct fuse_bufvec *bytes,
			       enum fuse_buf_copy_flags flags)
{
	return 0;
}

int fuse_req_interrupted(fuse_req_t req)
{
	return 0;
}

int fuse_lowlevel_notify_poll(struct fuse_pollhandle *handle)
{
	return *(char *)handle;
}

void fuse_pollhandle_destroy(struct fuse_pollhandle *handle)
{
	free(handle);
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t fn,
			     void *data)
{
	req->interrupt = fn;
	req->data = data;
}

/* One of these that is used, as the input says. NULL: that one is not. */
static struct object *choose(struct object *objects)
{
	struct object *o = &objects[next(1) % MOST];

	return o->id ? o : NULL;
}

static fuse_req_t ask(struct object *about)
{
	fuse_req_t req = &asked[nr_asked++];

	*req = (struct fuse_req){ .about = about, .may_open = next(1) & 1 };
	about->users++;
	return req;
}

static void forget(struct object *n)
{
	if (n->users || !n->lookups)
		return;
	do_forget(ask(n), n->id, n->lookups);
	n->id = 0;
}

static void release(struct object *f)
{
	if (f->users)
		return;
	if (f->folder)
		do_releasedir(ask(f), f->node->id, &f->info);
	else
		do_release(ask(f), f->node->id, &f->info);
	f->node->users--;
	f->id = 0;
}

static void about_a_node(unsigned int what, struct object *n)
{
	static const char *const names[] = { "trace", "trace_pipe", "a_raw",
					     "trace_pipe_raw" };
	struct fuse_file_info info = { .flags = next(2) & (O_ACCMODE | O_TRUNC |
							   O_NONBLOCK) };
	const char *name = names[next(1) % 4];

	if (what == 0 && n->folder)
		do_lookup(ask(n), n->id, name);
	else if (what == 1 && n->folder)
		do_opendir(ask(n), n->id, &info);
	else if (what == 1)
		do_open(ask(n), n->id, &info);
	else if (what == 2 && n->folder && info.flags)
		do_mkdir(ask(n), n->id, name, 0755);
	else if (what == 2 && n->folder)
		do_rmdir(ask(n), n->id, name);
	else if (what == 2)
		do_setattr(ask(n), n->id, &(struct stat){ 0 },
			   FUSE_SET_ATTR_SIZE, NULL);
	else if (what == 3)
		do_getattr(ask(n), n->id, NULL);
	else
		forget(n);
}

static void about_a_file(unsigned int what, struct object *f)
{
	bool writes = (f->info.flags & O_ACCMODE) != O_RDONLY;
	bool reads = (f->info.flags & O_ACCMODE) != O_WRONLY;
	static const char data[1 << 17];
	size_t size = next(3) % sizeof(data);
	off_t at = next(1) * 4096;

	f->info.lock_owner = next(1) & 1;
	if (what == 0 && f->folder && !f->users)
		do_readdir(ask(f), f->node->id, size, at, &f->info);
	else if (what == 0 && !f->folder && reads)
		do_read(ask(f), f->node->id, size, at, &f->info);
	else if (what == 1 && !f->folder)
		do_poll(ask(f), f->node->id, &f->info, at ? malloc(1) : NULL);
	else if (what == 2 && !f->folder && writes)
		do_write(ask(f), f->node->id, data, size, 0, &f->info);
	else if (what == 3)
		do_getattr(ask(f), f->node->id, f->folder ? NULL : &f->info);
	else if (what == 4)
		release(f);
}

/* ---- The input's turns ------------------------------------------------------------------- */

static void turn(unsigned int what)
{
	struct object *o = what < 10 ? choose(what < 5 ? nodes : files) : NULL;
	fuse_req_t req = &asked[what == 10 ? next(1) % MOST : 0];

	if (o && what < 5)
		about_a_node(what, o);
	else if (o)
		about_a_file(what - 5, o);
	else if (what == 10 && req->interrupt && !req->answered)
		req->interrupt(req, req->data);
	else if (what == 11)
		clock_ns += 1ull << next(1) % 36;
	else if (what == 12)
		guest_answer(0, NULL, next(2));
	else if (what == 13)
		guest_answer(next(1), NULL, next(1));
	else if (what == 14)
		guest_put(NULL, next(2));
	else if (what == 15)
		(&box->ring_size)[next(1) % 8] = next(4);
	p9_step();
	reads_look();
	node_raise_lowered();
}

void fuzz_setup(char **argv)
{
	fuzz_fd = memfd_create("guest", 0) + 1;
	snprintf(memory, sizeof(memory), "/proc/self/fd/%d", fuzz_fd - 1);
}

/* All as in a new tracefs, before a new guest. */
static void begin(void)
{
	static const struct mailbox new = { .magic = MAGIC, .ring_size = RING };

	for (unsigned int i = 0; i < TAGS; i++) {
		free(sent[i]);
		sent[i] = NULL;
	}
	sent_count = next_tag = 0;
	prompt = NULL;
	prompt_end = &prompt;
	dead = given_up = false;
	broken = NULL;
	queue = NULL;
	queue_end = &queue;
	nr_asked = 0;
	memset(asked, 0, sizeof(asked));
	if (ftruncate(fuzz_fd - 1, 0) ||
	    ftruncate(fuzz_fd - 1, PAGE + 2 * RING) ||
	    pwrite(fuzz_fd - 1, &new, sizeof(new), 0) < 0)
		errx(2, "no memory");
}

int main(int argc, char **argv)
{
	const char *failure;

	begin();
	input = fopen(argv[argc - 1], "r");
	if (!input)
		errx(2, "%s: no input", argv[argc - 1]);
	failure = p9_attach(memory, 0);
	if (failure)
		errx(1, "%s", failure);
	while (nr_asked < MOST && !feof(input))
		turn(next(1) % 16);
	p9_give_up();
	for (unsigned int i = 0; i < nr_asked; i++)
		if (!asked[i].answered)
			abort(); /* a program waits for ever */
	for (unsigned int i = 0; i < MOST; i++)
		if (files[i].id)
			release(&files[i]);
	for (unsigned int i = 1; i < MOST; i++)
		if (nodes[i].id)
			forget(&nodes[i]);
	p9_step();
	munmap(box, PAGE + 2 * RING);
	return 0;
}
