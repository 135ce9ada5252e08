/* Messages to standard error, one line each: "tare: message". The level is set at the start: -v or -q, else log.level. Thread-safe. */
#ifndef TARE_CORE_BASE_LOG_H
#define TARE_CORE_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_DEBUG = 0, LOG_INFO = 1, LOG_WARN = 2, LOG_ERROR = 3, LOG_NONE = 4 };

void log_set_level(enum log_level level);
/* What the configuration asks for. Without effect where log_set_level was called before. */
void log_set_default_level(enum log_level level);
enum log_level log_level(void);
/* Stands in front of every message of this process ("rank 3: "); at most 31 bytes. */
void log_set_prefix(const char *prefix);
/* Messages go to sink, from any thread, and not to standard error; no line is drawn in place. NULL: to standard error again. Set while nothing else
 * runs. */
typedef void (*log_sink)(void *ctx, enum log_level level, const char *text);
void log_set_sink(log_sink sink, void *ctx);
void log_message(enum log_level level, const char *format, ...) ERR_PRINTF(2, 3);
void log_error(const struct err *e); /* "tare: message", with -v the frames */

#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_message(LOG_WARN, __VA_ARGS__)

/* A line that is redrawn in place on a terminal (progress). Messages go above it. text NULL: remove. */
void log_status_line(const char *text);

#endif
