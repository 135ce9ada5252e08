#include "base/log.h"

#include "base/str.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum log_level least = LOG_INFO;
static bool chosen; /* set by log_set_level */
static char status_line[400];
static char prefix[32];

void log_set_level(enum log_level level)
{
    least = level;
    chosen = true;
}

void log_set_default_level(enum log_level level)
{
    if (!chosen) least = level;
}

static log_sink sink;
static void *sink_ctx;

void log_set_sink(log_sink to, void *ctx)
{
    sink_ctx = ctx;
    sink = to;
}

void log_set_prefix(const char *text)
{
    snprintf(prefix, sizeof prefix, "%s", text);
}

enum log_level log_level(void)
{
    return least;
}

void log_message(enum log_level level, const char *format, ...)
{
    if (level < least) return;
    static const char *const NAME[] = {"debug: ", "", "warning: ", ""};
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    str_disarm(text, (int64_t)strlen(text));
    if (sink) {
        sink(sink_ctx, level, text);
        return;
    }
    pthread_mutex_lock(&lock);
    if (status_line[0]) fputs("\r\033[K", stderr);
    fprintf(stderr, "tare: %s%s%s\n", prefix, NAME[level], text);
    if (status_line[0]) fputs(status_line, stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

void log_error(const struct err *e)
{
    log_message(LOG_ERROR, "%s", e->message[0] ? e->message : err_name(e->code));
    log_message(LOG_DEBUG, "%s", e->frames);
}

void log_status_line(const char *text)
{
    if (sink) return;
    pthread_mutex_lock(&lock);
    if (status_line[0] || text) fputs("\r\033[K", stderr);
    snprintf(status_line, sizeof status_line, "%s", text ? text : "");
    fputs(status_line, stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}
