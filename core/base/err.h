/* Errors: a status and a message chain in the caller's struct err. Functions that can fail return tare_status, 0 is success.
 *
 *   tare_status widget_open(struct widget *w, const char *path, struct err *e)
 *   {
 *       if (!path) FAIL(e, TARE_E_INVALID, "no path given; set widget.path");
 *       TRY(fs_read_all(path, &w->text, e));
 *       return TARE_OK;
 *   }
 *
 * A message says what, where (file:line, key, row), what was allowed, and after a semicolon what to do.
 */
#ifndef TARE_CORE_BASE_ERR_H
#define TARE_CORE_BASE_ERR_H

#include <tare/base.h>

struct err {
    tare_status code;
    char message[2000];
    char frames[1000]; /* innermost first: "file.c:12 < caller.c:34", shown with -v */
};

#define ERR_PRINTF(F, A) __attribute__((format(printf, F, A)))

/* Sets code and message (an older message is overwritten) and returns code. */
tare_status err_set(struct err *e, tare_status code, const char *file, int line, const char *format, ...) ERR_PRINTF(5, 6);
/* Puts "format: " in front of the message that is already there; returns e->code. */
tare_status err_prefix(struct err *e, const char *format, ...) ERR_PRINTF(2, 3);
tare_status err_frame(struct err *e, tare_status code, const char *file, int line);
const char *err_name(tare_status code); /* "out of range", ... */
int err_exit_code(tare_status code);    /* 1 failed, 3 configuration, 130 cancelled */

/* What a configuration names (a file, a model, a plugin) cannot be used: whatever kind of error that was, it is one of the configuration. */
tare_status err_as_config(tare_status status, struct err *e);

/* For a check that is to find every error: each is told when it is met, and the check continues. */
struct faults {
    int64_t n;
    void (*tell)(const struct err *e);
};
/* TARE_OK when the error in e was told and counted. Without faults (NULL), and for what says nothing about the thing that is checked (no memory,
 * an interrupt): status. */
tare_status err_note_fault(struct faults *f, tare_status status, struct err *e);

/* What a function opens and does not hand on is declared with what closes it. It is closed on every way out, the last declared first, and each
 * step is a TRY. There is no other way to clean up after an error.
 *     OWNED(str_free) struct str text = {0};
 *     OWNED(mem_free_at) float *x = NULL;       closes what is at an address: of a pointer, NAME_at
 * It begins empty, and what could not be opened may be closed too. What is handed on is emptied: text = (struct str){0}. */
#define OWNED(CLOSE) __attribute__((cleanup(CLOSE)))

#define FAIL(E, CODE, ...) return err_set((E), (CODE), __FILE__, __LINE__, __VA_ARGS__)
#define TRY(X)                                                                                                                     \
    do {                                                                                                                           \
        tare_status try_status_ = (X);                                                                                             \
        if (try_status_) return try_status_;                                                                                       \
    } while (0)

#endif
