/* SPDX-License-Identifier: MIT */
/*
 * extract: the trace of a guest, read from its memory, as a file for other programs. The
 * guest does not help: it may run, hang or have panicked.
 */
#include "trace.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
	"extract --elf KERNEL (--qmp SOCKET | --memory FILE) [--format "
	"FORMAT]\n"
	"        [--instance NAME] -o OUTPUT\n"
	"\n"
	"Read a guest's trace out of its memory, without any help of the "
	"guest.\n"
	"  --qmp SOCKET     QEMU's, as tools/run --qmp SOCKET makes it; the "
	"guest\n"
	"                   stands still for a moment\n"
	"  --memory FILE    a copy of its RAM, or the file that is its RAM\n"
	"  --format FORMAT  one of these (default trace.dat):\n"
	"    trace.dat   for trace-cmd and KernelShark\n"
	"    text        what `cat trace` prints in the guest\n"
	"    uftrace     a folder for uftrace\n"
	"    chrome      JSON for Perfetto and chrome://tracing\n"
	"    folded      stacks and nanoseconds, for flame graphs\n"
	"  --instance NAME  of the tracer, instead of the top level\n"
	"  -o OUTPUT        a file, or of uftrace a folder; - is the standard "
	"output\n";

static const struct output {
	const char *name;
	void (*write)(struct trace *t, FILE *f);
} formats[] = { { "trace.dat", write_trace_dat },
		{ "text", write_text },
		{ "chrome", write_chrome },
		{ "folded", write_folded },
		{ "uftrace", NULL } };

static char partial[4096];

/* A file that is half-written when the program ends is removed. */
static void remove_partial(void)
{
	if (partial[0])
		unlink(partial);
}

static void write_file(struct trace *t, const struct output *format,
		       const char *path)
{
	FILE *f = stdout;

	if (strcmp(path, "-")) {
		snprintf(partial, sizeof(partial), "%s.partial", path);
		f = fopen(partial, "w");
		if (!f) {
			int error = errno;

			partial[0] = 0;
			errx(1, "%s: %s", path, strerror(error));
		}
		atexit(remove_partial);
	} else if (format->write == write_trace_dat &&
		   lseek(1, 0, SEEK_CUR) < 0) {
		errx(1, "trace.dat cannot be written into a pipe");
	}
	format->write(t, f);
	if (fflush(f) || ferror(f))
		err(1, "%s", path);
	if (partial[0] && rename(partial, path))
		err(1, "%s", path);
	partial[0] = 0;
}

static const struct output *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	errx(2, "--format %s: trace.dat, text, uftrace, chrome and folded are there",
	     name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "elf", required_argument, NULL, 'e' },
		{ "qmp", required_argument, NULL, 'q' },
		{ "memory", required_argument, NULL, 'm' },
		{ "format", required_argument, NULL, 'f' },
		{ "instance", required_argument, NULL, 'i' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *elf = NULL, *qmp = NULL, *memory = NULL, *instance = NULL;
	const char *output = NULL;
	const struct output *format = &formats[0];
	static struct guest g;
	static struct trace t;
	int c;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1)
		switch (c) {
		case 'e':
			elf = optarg;
			break;
		case 'q':
			qmp = optarg;
			break;
		case 'm':
			memory = optarg;
			break;
		case 'f':
			format = find_format(optarg);
			break;
		case 'i':
			instance = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return 2;
		}
	if (!elf || !output || !qmp == !memory || optind < argc)
		errx(2, "--elf, -o, and either --qmp or --memory are needed; "
			"--help says more");
	guest_open(&g, elf);
	if (qmp)
		guest_save(&g, qmp);
	else
		guest_map(&g, memory);
	trace_open(&t, &g, instance);
	if (format->write)
		write_file(&t, format, output);
	else
		write_uftrace(&t, output);
	rings_say_lost();
	return 0;
}
