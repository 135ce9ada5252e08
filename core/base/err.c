#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Shorten a text that is too long (a long path, for example) in the middle, because the reason is
 * at the end. */
static void keep_ends(char *out, size_t capacity, const char *text)
{
    static const char gap[] = " ... ";
    const size_t n = strlen(text), head = (capacity - sizeof gap) / 2, tail = capacity - sizeof gap - head;
    if (n < capacity) {
        memcpy(out, text, n + 1);
        return;
    }
    memcpy(out, text, head);
    memcpy(out + head, gap, sizeof gap - 1);
    memcpy(out + head + sizeof gap - 1, text + n - tail, tail + 1);
}

tare_status err_set(struct err *e, tare_status code, const char *file, int line, const char *format, ...)
{
    if (!e) return code;
    char text[4 * sizeof e->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_ends(e->message, sizeof e->message, text);
    e->frames[0] = 0;
    return err_frame(e, code, file, line);
}

tare_status err_prefix(struct err *e, const char *format, ...)
{
    if (!e) return TARE_E_GENERIC;
    char prefix[3 * sizeof e->message], text[sizeof prefix + sizeof e->message + 2];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", prefix, e->message);
    keep_ends(e->message, sizeof e->message, text);
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

tare_status err_note_fault(struct faults *f, tare_status status, struct err *e)
{
    if (!status || !f || status == TARE_E_NOMEM || status == TARE_E_CANCELLED) return status;
    f->n++;
    f->report(e);
    return TARE_OK;
}
