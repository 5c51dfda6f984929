/* GCC attributes that differ between ports. */
#ifndef X86_64_ATTRIBUTES_H
#define X86_64_ATTRIBUTES_H

/* A function without a site: -pg -mfentry leaves it alone. */
#define notrace __attribute__((no_instrument_function))

#endif
