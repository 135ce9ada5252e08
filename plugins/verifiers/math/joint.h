/* joint.c: boxes side by side, and inside each other. */
#ifndef TARE_MATH_JOINT_H
#define TARE_MATH_JOINT_H

#include "math.h"

/* Where the "x =" in front of i starts; i: there is none. */
int64_t named_from(tare_text t, int64_t i);
/* Is the text between two boxes only a joint? The name of the second one may stand there: "and $y =$". words: other words, too, beside an "and". */
bool is_joint(tare_text gap, bool words);
int joint_in(tare_text gap); /* enum joint: the word in it; 0: none */
/* \boxed{\boxed{x}}: x */
tare_text unboxed(tare_text t);
bool approximates(tare_text gap); /* "$\frac13$, or approximately 33.3%": does it lead to an approximation of what it follows? */

#endif
