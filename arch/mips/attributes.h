/* GCC attributes whose spelling depends on how sites are made. */
#ifndef ARCH_ATTRIBUTES_H
#define ARCH_ATTRIBUTES_H

/* The function has no site: -pg leaves it alone. */
#define notrace __attribute__((no_instrument_function))

#endif
