/* What can be seen to go wrong with a victim, for C and assembly: tracer/lab/lab.h. */
#ifndef TRACER_LAB_DAMAGE_H
#define TRACER_LAB_DAMAGE_H

#define LAB_FAULT 1   /* a trap that is not the strategy's */
#define LAB_HUNG 2    /* it never came to its end */
#define LAB_SP 4      /* the stack pointer was off behind the site */
#define LAB_REGS 8    /* a register that the ABI keeps has changed */
#define LAB_RETURN 16 /* it came back to the wrong place */
/* Called twice; or not, though the new form, or the old one, was there as a
 * whole. */
#define LAB_CALLS 32
#define LAB_ATOMIC 64 /* an instruction ran without its lock prefix */

#endif
