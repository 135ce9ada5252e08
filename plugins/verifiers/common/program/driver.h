/* The Python driver of a plugin: a program (program.h) that answers questions with JSON objects, or
 * with {"error": "..."}. */
#ifndef TARE_VERIFIERS_DRIVER_H
#define TARE_VERIFIERS_DRIVER_H

#include <jansson.h>
#include <tare/sdk.h>

/* Puts the driver's own message into an error that quotes its {"error":"..."}. Returns the code. */
tare_status driver_error(tare_error *error);
/* Reads an answer. *out: a JSON object, for json_decref; NULL with an error. */
tare_status driver_answer(tare_text reply, json_t **out, tare_error *error);
/* An answer without what was asked for. */
tare_status driver_refuse(tare_text reply, tare_error *error);

#endif
