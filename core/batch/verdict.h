/* Names of verdicts and of ends of completions, as records use them. */
#ifndef TARE_CORE_BATCH_VERDICT_H
#define TARE_CORE_BATCH_VERDICT_H

#include <stdint.h>
#include <tare/batch.h>

/* Returns "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial" for code
 * 1..7; NULL otherwise. */
const char *verdict_name(int32_t code);
/* Returns the code of a name; 0: unknown, or name is NULL. */
int32_t verdict_code(const char *name);
/* Map TARE_FATE_... to "kept", "left_out", "counted" and back; -1: unknown, or name is NULL. */
const char *batch_fate_name(int32_t fate);
int32_t batch_fate_code(const char *name);
/* Returns "stop", "length" or "ended"; NULL: none. An unknown number counts as "length". */
const char *batch_finish_name(int32_t finish);
/* Returns the code of a name; TARE_FINISH_NONE: unknown, or name is NULL. */
int32_t batch_finish_code(const char *name);

#endif
