/* Reads one INI file line by line and hands over each "key = value" with its file:line.
 *
 * libinih splits the lines. Our own reader gives them to it, because by itself libinih cuts long lines and long section names
 * silently, takes an indented "key = value" for more text of the line above, and does not tell the line number. Here such a line is
 * either read as it is or refused.
 *
 * A value may be quoted: "..." with \" \\ \n \t inside. Without quotes it ends at " ;" (a comment); # and ; at the start of a line
 * make a comment line.
 */
#ifndef TARE_CORE_CONFIG_INI_FILE_H
#define TARE_CORE_CONFIG_INI_FILE_H

#include "base/str.h"

/* section "" before the first one. where: "file:line". The texts die when the call returns. */
typedef tare_status (*ini_entry)(void *ctx, const char *section, const char *key, const char *value, const char *where,
                                 struct err *e);

/* Calls entry for each key of the file, in order; a key that is in the file twice is refused, except those named `repeatable`
 * (may be NULL) before the first section. May be called again from within entry (includes). With faults (else NULL) an error of a line or
 * of entry is told, and the next line is read. */
tare_status ini_read_file(const char *path, const char *repeatable, ini_entry entry, void *ctx, struct faults *faults,
                          struct err *e);
/* Appends value in the form that ini_read_file reads back as the same text. */
tare_status ini_quote(struct str *out, const char *value, struct err *e);

#endif
