/* What the files of core/api share. */
#ifndef TARE_CORE_API_INTERNAL_H
#define TARE_CORE_API_INTERNAL_H

#include "api/api.h"
#include "base/err.h"

#include <sys/types.h>

/* The end of a function: e's text for the caller, and the status. */
tare_status api_told(tare_status status, const struct err *e, tare_api_error *error);
/* TARE_E_INVALID for a NULL handle, TARE_E_STATE in another process than made_by: its threads are not here. what: "model" */
tare_status api_check(const void *handle, pid_t made_by, const char *what, struct err *e);

/* callbacks.c: the plugins whose functions are the caller's, added once. They take these from the host's extension. */
struct callbacks {
    void *ctx;
    tare_api_reward reward;
    tare_api_advantage advantage;
};
#define CALLBACKS_ID "tare.callbacks/1"
tare_status callbacks_add(struct err *e);

#endif
