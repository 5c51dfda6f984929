/* SPDX-License-Identifier: MIT */
/*
 * Stands before each file of a tool that tools/fuzz-tools builds. AFL++ gives one process many
 * inputs, because a new process costs more than a tool does. So main() becomes a function that a
 * loop calls here, and whatever would end the process ends the round.
 */
#include <err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define FUZZ_ROUNDS 200

#define FUZZ __attribute__((weak))
extern void fuzz_setup(char **argv) FUZZ; /* before the first round */
extern unsigned int errors FUZZ;	  /* tools/lib/scan.c */
int fuzz_status FUZZ;
int fuzz_fd FUZZ = 3; /* the first file that a round has left open */
jmp_buf fuzz_over FUZZ;

static inline __attribute__((noreturn)) void fuzz_exit(int status)
{
	fuzz_status = status;
	longjmp(fuzz_over, 1);
}

static inline __attribute__((noreturn, format(printf, 2, 3))) void
fuzz_errx(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarnx(format, ap);
	va_end(ap);
	fuzz_exit(status);
}

#define exit fuzz_exit
#define errx fuzz_errx
#define main(...)                                                              \
	fuzz_main(__VA_ARGS__);                                                \
	int(main)(int argc, char **argv)                                       \
	{                                                                      \
		if (fuzz_setup)                                                \
			fuzz_setup(argv);                                      \
		__AFL_INIT();                                                  \
		while (__AFL_LOOP(FUZZ_ROUNDS)) {                              \
			if (&errors)                                           \
				errors = 0;                                    \
			if (!setjmp(fuzz_over))                                \
				fuzz_status = fuzz_main(argc, argv);           \
			close_range(fuzz_fd, 100, 0);                          \
		}                                                              \
		return fuzz_status;                                            \
	}                                                                      \
	int fuzz_main(__VA_ARGS__)
