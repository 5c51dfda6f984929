/* SPDX-License-Identifier: MIT */
/* What the latency tracers hook into: latency.h. */
#include <kernel/event/latency.h>

STATIC_KEY(irqsoff);
STATIC_KEY(preemptoff);
STATIC_KEY(wakeup);

const struct latency_hooks *latency_hooks;
