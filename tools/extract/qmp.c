/* QEMU's machine protocol, as much of it as reads a machine's memory (QMP: docs/interop). */
#include "guest.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static struct qmp {
	const char *path;
	FILE *from, *to;
	bool stopped; /* by us: it is to go on */
} connection;

/* The next answer that is no event. */
static json_t *answer(struct qmp *q)
{
	char *line = NULL;
	size_t size = 0;
	json_t *root;

	for (;;) {
		if (getline(&line, &size, q->from) <= 0)
			errx(1, "%s: QEMU does not answer", q->path);
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

	json_dumpf(root, q->to, 0);
	fputc('\n', q->to);
	if (fflush(q->to))
		errx(1, "%s: QEMU has gone", q->path);
	json_decref(root);
	root = answer(q);
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
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), running = 0;
	json_t *root;

	if (strlen(path) >= sizeof(at.sun_path))
		errx(1, "%s: the name is too long for a socket", path);
	strcpy(at.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		err(1, "%s", path);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	*q = (struct qmp){ path, fdopen(fd, "r"), fdopen(dup(fd), "w"), false };
	if (!q->from || !q->to)
		err(1, "%s", path);
	root = answer(q);
	if (!json_object_get(root, "QMP"))
		errx(1, "%s: no QMP is spoken there", path);
	json_decref(root);
	json_decref(command(q, "qmp_capabilities", NULL));
	root = command(q, "query-status", NULL);
	json_unpack(root, "{s:{s:b}}", "return", "running", &running);
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
