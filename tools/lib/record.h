/* SPDX-License-Identifier: MIT */
/*
 * Records of sites that somebody made before the final link (make RECORD=): the
 * compiler in a section of its own, or tools/mkrecord from the objects. A record
 * is never believed: it must name exactly the sites that the scan finds.
 */
#ifndef TOOLS_RECORD_H
#define TOOLS_RECORD_H

#include "scan.h"

/* The compiler's own record. False if the image kept no such section. */
bool record_compiler(const struct image *im, const struct format *format,
		     struct addresses *a);

/*
 * The record that tools/mkrecord wrote to the file at path: base symbols, which have their
 * final addresses now, plus the offsets that it saw before the link.
 */
void record_objects(const struct image *im, const char *path,
		    struct addresses *a);

/* Complain of every difference. Sorts a. */
void record_compare(const struct image *im, const struct addresses *sites,
		    struct addresses *a);

/*
 * Complain in one line of addresses of a that hold no site, or of sites that it
 * lacks. Sorts a.
 */
void record_judge(const struct image *im, const struct arch *arch,
		  const struct addresses *sites, struct addresses *a);

#endif
