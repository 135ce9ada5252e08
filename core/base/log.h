/* Log messages on standard error, one line each: "tare: message". The level is set at startup by -v
 * or -q, otherwise by log.level. Thread-safe. */
#ifndef TARE_CORE_BASE_LOG_H
#define TARE_CORE_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_DEBUG = 0, LOG_INFO = 1, LOG_WARN = 2, LOG_ERROR = 3, LOG_NONE = 4 };

void log_set_level(enum log_level level);
/* Set the level of the configuration. Has no effect after log_set_level. */
void log_set_default_level(enum log_level level);
enum log_level log_level(void);
/* Set a prefix for every message of this process ("rank 3: "), at most 31 bytes. */
void log_set_prefix(const char *prefix);
/* Send messages to sink, from any thread, instead of standard error; the status line is off. NULL:
 * back to standard error. Call it only while no other thread logs. */
typedef void (*log_sink)(void *ctx, enum log_level level, const char *text);
void log_set_sink(log_sink sink, void *ctx);
void log_message(enum log_level level, const char *format, ...) ERR_PRINTF(2, 3);
void log_error(const struct err *e); /* "tare: message"; with -v also the frames */

#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_message(LOG_WARN, __VA_ARGS__)

/* Show a progress line that is redrawn in place on a terminal, below the messages. text NULL:
 * remove the line. */
void log_status_line(const char *text);

#endif
