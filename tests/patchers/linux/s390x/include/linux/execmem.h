/* SPDX-License-Identifier: MIT */
#include <linux/patching.h>
