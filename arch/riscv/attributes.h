/* notrace: no site in this function, whatever front end SITES= chose. */
#ifndef ARCH_RISCV_ATTRIBUTES_H
#define ARCH_RISCV_ATTRIBUTES_H

#define notrace                                                                \
	__attribute__((patchable_function_entry(0), no_instrument_function))

#endif
