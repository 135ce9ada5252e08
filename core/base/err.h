/* Errors: a status, and a message chain in the caller's struct err. Functions that can fail return
 * tare_status; 0 is success.
 *
 *   tare_status widget_open(struct widget *w, const char *path, struct err *e)
 *   {
 *       if (!path) FAIL(e, TARE_E_INVALID, "no path given; set widget.path");
 *       TRY(fs_read_all(path, &w->text, e));
 *       return TARE_OK;
 *   }
 *
 * A message names the thing and its place (file:line, key, row), the fault, and, after a semicolon,
 * the remedy. */
#ifndef TARE_CORE_BASE_ERR_H
#define TARE_CORE_BASE_ERR_H

#include <tare/base.h>

struct err {
    tare_status code;
    char message[2000];
    char frames[1000]; /* innermost first: "file.c:12 < caller.c:34", shown with -v */
};

#define ERR_PRINTF(F, A) __attribute__((format(printf, F, A)))

/* Set code and message (replacing an earlier message) and return code. */
tare_status err_set(struct err *e, tare_status code, const char *file, int line, const char *format, ...) ERR_PRINTF(5, 6);
/* Put "format: " in front of the existing message; return e->code. */
tare_status err_prefix(struct err *e, const char *format, ...) ERR_PRINTF(2, 3);
tare_status err_frame(struct err *e, tare_status code, const char *file, int line);
const char *err_name(tare_status code); /* "out of range", ... */
int err_exit_code(tare_status code);    /* 1 failed, 3 configuration, 130 cancelled */

/* Turn any error into a configuration error: something that the configuration names (a file, a
 * model, a plugin) cannot be used. */
tare_status err_as_config(tare_status status, struct err *e);

/* Used by checks that report every error: each error is reported when it is found, and the check
 * continues. */
struct faults {
    int64_t n;
    void (*report)(const struct err *e);
};
/* Report and count the error in e, and return TARE_OK. Without faults (NULL), and for errors that
 * say nothing about the checked item (out of memory, an interrupt), return status. */
tare_status err_note_fault(struct faults *f, tare_status status, struct err *e);

/* Declares an object together with the function that closes it, for objects that a function opens
 * and does not give to its caller. They are closed on every return path, in reverse order of
 * declaration, so that every step can be a TRY. This is the only way to clean up after an error.
 *     OWNED(str_free) struct str text = {0};
 *     OWNED(mem_free_at) float *x = NULL;       frees a pointer: NAME_at takes its address
 * The object starts empty, and closing an object that failed to open is allowed. An object that is
 * given to the caller is emptied first: text = (struct str){0}. */
#define OWNED(CLOSE) __attribute__((cleanup(CLOSE)))

#define FAIL(E, CODE, ...) return err_set((E), (CODE), __FILE__, __LINE__, __VA_ARGS__)
#define TRY(X)                                                                                                                     \
    do {                                                                                                                           \
        tare_status try_status_ = (X);                                                                                             \
        if (try_status_) return try_status_;                                                                                       \
    } while (0)

#endif
