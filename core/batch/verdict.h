/* Verdicts and ends of completions by name, as records write them. */
#ifndef TARE_CORE_BATCH_VERDICT_H
#define TARE_CORE_BATCH_VERDICT_H

#include <stdint.h>
#include <tare/curriculum.h>
#include <tare/verifier.h>

/* "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial" for code 1..7; NULL otherwise. */
const char *verdict_name(int32_t code);
/* The code of a name; 0: there is no such verdict, or name is NULL. */
int32_t verdict_code(const char *name);
/* "kept", "left_out", "counted": TARE_ROLLOUT_... by name, and back; -1: there is none of that name, or it is NULL. */
const char *fate_name(int32_t fate);
int32_t fate_code(const char *name);
/* "stop", "length" */
const char *finish_name(int32_t finish);
/* -1: there is none of that name, or name is NULL. */
int32_t finish_code(const char *name);

#endif
