/* SPDX-License-Identifier: MIT */
/* QEMU's machine protocol, as much of it as reads a machine's memory (QMP: docs/interop). */
#include "guest.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE 20 /* seconds for an answer of QEMU's */

static struct qmp {
	const char *path;
	FILE *from, *to;
	bool stopped; /* by us: it is to go on */
} connection;

static noreturn void waited(struct qmp *q, const char *what)
{
	/* QEMU would not answer "cont" either. */
	q->stopped = false;
	errx(1, "%s: QEMU has not %s for %d s; is it stopped?", q->path, what,
	     PATIENCE);
}

/* The next answer, to that command, that is no event. */
static json_t *answer(struct qmp *q, const char *name)
{
	char *line = NULL, what[64];
	size_t size = 0;
	json_t *root;

	for (;;) {
		errno = 0;
		if (getline(&line, &size, q->from) <= 0) {
			snprintf(what, sizeof(what), "answered %s", name);
			if (errno == EAGAIN)
				waited(q, what);
			errx(1, "%s: QEMU has ended before it %s", q->path,
			     what);
		}
		root = json_loads(line, 0, NULL);
		if (!root)
			errx(1, "%s: no QMP is spoken there", q->path);
		if (!json_object_get(root, "event"))
			break;
		json_decref(root);
	}
	free(line);
	return root;
}

/* Takes the arguments, or NULL. */
static json_t *command(struct qmp *q, const char *name, json_t *arguments)
{
	json_t *root = json_pack("{s:s, s:o*}", "execute", name, "arguments",
				 arguments);
	const char *wrong;

	if (!root || json_dumpf(root, q->to, 0))
		errx(1, "%s: %s cannot be said in JSON", q->path, name);
	fputc('\n', q->to);
	if (fflush(q->to))
		errx(1, "%s: QEMU has gone", q->path);
	json_decref(root);
	root = answer(q, name);
	if (!json_unpack(root, "{s:{s:s}}", "error", "desc", &wrong))
		errx(1, "%s: %s: %s", q->path, name, wrong);
	return root;
}

void qmp_continue(struct qmp *q)
{
	if (!q->stopped)
		return;
	q->stopped = false;
	json_decref(command(q, "cont", NULL));
}

/* Whatever ends this program, the machine goes on. */
static void end(void)
{
	qmp_continue(&connection);
}

struct qmp *qmp_stop(const char *path)
{
	struct qmp *q = &connection;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), running = 0;
	json_t *root;

	if (strlen(path) >= sizeof(at.sun_path))
		errx(1, "%s: the name is too long for a socket", path);
	strcpy(at.sun_path, path);
	if (fd < 0)
		err(1, "%s", path);
	/* The second is connect()'s, too, which waits while others wait for QEMU. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
		       sizeof(patience)))
		err(1, "%s", path);
	q->path = path;
	if (connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		if (errno == EAGAIN)
			waited(q, "accepted a connection");
		err(1, "%s", path);
	}
	*q = (struct qmp){ path, fdopen(fd, "r"), fdopen(dup(fd), "w"), false };
	if (!q->from || !q->to)
		err(1, "%s", path);
	root = answer(q, "the connection");
	if (!json_object_get(root, "QMP"))
		errx(1, "%s: no QMP is spoken there", path);
	json_decref(root);
	json_decref(command(q, "qmp_capabilities", NULL));
	root = command(q, "query-status", NULL);
	if (json_unpack(root, "{s:{s:b}}", "return", "running", &running))
		errx(1, "%s: QEMU does not say whether it runs", path);
	json_decref(root);
	if (running) {
		json_decref(command(q, "stop", NULL));
		q->stopped = true;
		atexit(end);
	}
	return q;
}

void qmp_save(struct qmp *q, u64 from, u64 size, const char *file)
{
	json_decref(
		command(q, "pmemsave",
			json_pack("{s:I, s:I, s:s}", "val", (json_int_t)from,
				  "size", (json_int_t)size, "filename", file)));
}

bool qmp_place(struct qmp *q, u64 addr, u64 *at)
{
	unsigned long long value;
	const char *said;
	char line[40];
	json_t *root;
	bool found;

	snprintf(line, sizeof(line), "gva2gpa %#llx", (unsigned long long)addr);
	root = command(q, "human-monitor-command",
		       json_pack("{s:s, s:i}", "command-line", line,
				 "cpu-index", 0));
	found = !json_unpack(root, "{s:s}", "return", &said) &&
		sscanf(said, "gpa: %llx", &value) == 1;
	*at = found ? value : 0;
	json_decref(root);
	return found;
}
