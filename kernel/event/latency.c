/* SPDX-License-Identifier: MIT */
/* The kernel's hooks for the latency tracers: latency.h. */
#include <kernel/event/latency.h>

STATIC_KEY(irqsoff);
STATIC_KEY(preemptoff);
STATIC_KEY(wakeup);

const struct latency_hooks *latency_hooks;
