#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tare_status err_set(struct err *e, tare_status code, const char *file, int line, const char *format, ...)
{
    if (!e) return code;
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    e->frames[0] = 0;
    return err_frame(e, code, file, line);
}

tare_status err_prefix(struct err *e, const char *format, ...)
{
    if (!e) return TARE_E_GENERIC;
    char old[sizeof e->message], prefix[sizeof e->message];
    memcpy(old, e->message, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    const size_t n = strlen(prefix), room = sizeof e->message - 1;
    const size_t head = n < room ? n : room;
    memcpy(e->message, prefix, head);
    snprintf(e->message + head, sizeof e->message - head, ": %s", old);
    return e->code ? e->code : TARE_E_GENERIC;
}

tare_status err_frame(struct err *e, tare_status code, const char *file, int line)
{
    if (!e) return code;
    const char *slash = strrchr(file, '/');
    const size_t used = strlen(e->frames);
    snprintf(e->frames + used, sizeof e->frames - used, "%s%s:%d", used ? " < " : "", slash ? slash + 1 : file, line);
    return e->code = code;
}

const char *err_name(tare_status code)
{
    switch (code) {
    case TARE_OK:
        return "ok";
    case TARE_E_INVALID:
        return "invalid";
    case TARE_E_RANGE:
        return "out of range";
    case TARE_E_CONFIG:
        return "configuration";
    case TARE_E_SHAPE:
        return "shape mismatch";
    case TARE_E_NOMEM:
        return "out of memory";
    case TARE_E_IO:
        return "input/output";
    case TARE_E_CORRUPT:
        return "corrupt data";
    case TARE_E_VERSION:
        return "version mismatch";
    case TARE_E_UNSUPPORTED:
        return "unsupported";
    case TARE_E_NOT_FOUND:
        return "not found";
    case TARE_E_TIMEOUT:
        return "timeout";
    case TARE_E_CANCELLED:
        return "cancelled";
    case TARE_E_STATE:
        return "wrong phase";
    case TARE_E_NOT_FINITE:
        return "not finite";
    case TARE_E_COMM:
        return "communication";
    case TARE_E_DEVICE:
        return "device";
    case TARE_E_PLUGIN:
        return "plugin";
    default:
        return "failed";
    }
}

int err_exit_code(tare_status code)
{
    return code == TARE_OK ? 0 : code == TARE_E_CONFIG ? 3 : code == TARE_E_CANCELLED ? 130 : 1;
}

tare_status err_as_config(tare_status status, struct err *e)
{
    switch (status) {
    case TARE_E_NOT_FOUND:
    case TARE_E_UNSUPPORTED:
    case TARE_E_INVALID:
    case TARE_E_RANGE:
        return e->code = TARE_E_CONFIG;
    default:
        return status;
    }
}
