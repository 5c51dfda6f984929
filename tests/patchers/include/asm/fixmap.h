/* SPDX-License-Identifier: MIT */
#define PATCHERS_FIXMAP_H
#include <linux/patching.h>
