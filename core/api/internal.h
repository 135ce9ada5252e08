/* Declarations shared by the files of core/api. */
#ifndef TARE_CORE_API_INTERNAL_H
#define TARE_CORE_API_INTERNAL_H

#include "api/api.h"
#include "base/err.h"

#include <sys/types.h>

/* Ends an API function: copies e's message to the caller's error and returns the status. */
tare_status api_finish(tare_status status, const struct err *e, tare_api_error *error);
/* TARE_E_INVALID for a NULL handle; TARE_E_STATE in a process other than made_by, which lacks its
 * threads. what: "model" */
tare_status api_check(const void *handle, pid_t made_by, const char *what, struct err *e);

/* Registers the plugins that call the caller's functions (callbacks.c), once. They get these from
 * the host's extension. */
struct callbacks {
    void *ctx;
    tare_api_reward reward;
    tare_api_advantage advantage;
};
#define CALLBACKS_ID "tare.callbacks/1"
tare_status callbacks_add(struct err *e);

#endif
