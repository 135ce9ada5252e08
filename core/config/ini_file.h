/* Reads an INI file line by line and passes on each "key = value" with its file:line.
 *
 * libinih parses the lines, which come from our own reader, because libinih alone silently cuts
 * long lines and section names, treats an indented "key = value" as a continuation of the previous
 * line, and does not report line numbers. Here such a line is either read as written or refused.
 *
 * A value may be quoted: "..." with \" \\
 *  \t inside. Without quotes it ends at " ;" (a comment). A line that starts with # or ; is a
 * comment. */
#ifndef TARE_CORE_CONFIG_INI_FILE_H
#define TARE_CORE_CONFIG_INI_FILE_H

#include "base/str.h"

/* section is "" before the first one. where: "file:line". The texts are valid until the call
 * returns. */
typedef tare_status (*ini_entry)(void *ctx, const char *section, const char *key, const char *value, const char *where,
                                 struct err *e);

/* Calls entry for each key of the file, in order. Refuses a repeated key, except `repeatable` (may
 * be NULL) before the first section. May be called from within entry, for includes. faults:
 * collects the errors of lines and entries; NULL: the first one is returned. */
tare_status ini_read_file(const char *path, const char *repeatable, ini_entry entry, void *ctx, struct faults *faults,
                          struct err *e);
/* Appends value in a form that ini_read_file reads back unchanged. */
tare_status ini_quote(struct str *out, const char *value, struct err *e);

#endif
