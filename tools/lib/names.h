/* SPDX-License-Identifier: MIT */
/* Names of functions, which a trace prints and a filter takes. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include "image.h"

/*
 * Each name of the image stands for one function, and has two words. Each mistake is said
 * (complain()), with the function's file.
 */
void names_check(const struct image *im);

#endif
