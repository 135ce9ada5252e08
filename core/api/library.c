#include "base/log.h"
#include "base/program.h"

#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    bool begun;
    tare_api_log log;
} LIBRARY;

int32_t tare_api_version(void)
{
    return TARE_API_VERSION;
}

const char *tare_api_release(void)
{
    return TARE_VERSION;
}

tare_status api_finish(tare_status status, const struct err *e, tare_api_error *error)
{
    if (!error) return status;
    error->code = status;
    snprintf(error->message, sizeof error->message, "%s", !status ? "" : e->message[0] ? e->message : err_name(status));
    return status;
}

tare_status api_check(const void *handle, pid_t made_by, const char *what, struct err *e)
{
    if (!handle) FAIL(e, TARE_E_INVALID, "the %s is closed, or was never opened", what);
    if (made_by != getpid())
        FAIL(e, TARE_E_STATE, "the %s was opened in process %ld, and its threads do not exist in this child process; open one here",
             what, (long)made_by);
    return TARE_OK;
}

static void pass_to_sink(void *ctx, enum log_level level, const char *text)
{
    LIBRARY.log(ctx, (int32_t)level, text);
}

tare_status tare_api_begin(const char *program, tare_api_log log, void *ctx, tare_api_error *error)
{
    struct err e = {0};
    if (LIBRARY.begun) return api_finish(TARE_OK, &e, error);
    if (program && !program_set(program))
        return api_finish(err_set(&e, TARE_E_INVALID, __FILE__, __LINE__, "the program's path is too long"), &e, error);
    const tare_status status = callbacks_add(&e);
    if (status) return api_finish(status, &e, error);
    LIBRARY.log = log;
    if (log) log_set_sink(pass_to_sink, ctx);
    LIBRARY.begun = true;
    return api_finish(TARE_OK, &e, error);
}

void tare_api_log_level(int32_t least)
{
    log_set_level(least < LOG_DEBUG ? LOG_DEBUG : least > LOG_NONE ? LOG_NONE : (enum log_level)least);
}

void tare_api_free(void *memory)
{
    free(memory);
}
