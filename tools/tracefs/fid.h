/* Fids, the numbers that 9P gives to files. Any thread. */
#ifndef TOOLS_FID_H
#define TOOLS_FID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIDS 1024

/* Files whose name matches this glob are not there. NULL: all are. Set before the first walk. */
extern const char *fid_left_out;
bool fid_is_left_out(const char *name);

/*
 * A new fid for a path; n: so much of it. 0; -ENOENT; -ENAMETOOLONG; or an error as of p9_call().
 * What is open has a fid already, and for that libfuse gives no path: it may have been removed
 * meanwhile.
 */
int fid_walk(const char *path, size_t n, uint32_t *fid);
/* Give a fid back, and close what is open by it. 0, or an error as of p9_call(). */
int fid_clunk(uint32_t fid);

#endif
