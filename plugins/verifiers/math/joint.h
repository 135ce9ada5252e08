/* joint.c: adjacent and nested boxes. */
#ifndef TARE_MATH_JOINT_H
#define TARE_MATH_JOINT_H

#include "math.h"

/* Returns where the "x =" before i starts; i: none. */
int64_t named_from(tare_text t, int64_t i);
/* Returns true if the text between two boxes only joins them. The name of the second one may be
 * there: "and $y =$". words: also allows other words besides "and". */
bool is_joint(tare_text gap, bool words);
int joint_in(tare_text gap); /* returns the enum joint of its connective; 0: none */
/* Returns the innermost text of nested boxes: x for \boxed{\boxed{x}}. */
tare_text unboxed(tare_text t);
/* Returns true if the text leads to an approximation of the formula before it: "$\frac13$, or
 * approximately 33.3%". */
bool approximates(tare_text gap);

#endif
