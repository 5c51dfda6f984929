/* GCC attributes that differ between ports. */
#ifndef X86_64_ATTRIBUTES_H
#define X86_64_ATTRIBUTES_H

/* notrace: no site in this function, whatever front end SITES= chose. */
#define notrace                                                                \
	__attribute__((patchable_function_entry(0), no_instrument_function))

#endif
