/* The table of every key: what it is called, where its value lies in struct config, what is allowed, and what it means. */
#ifndef TARE_CORE_CONFIG_KEYS_H
#define TARE_CORE_CONFIG_KEYS_H

#include "config/config.h"

#include <stddef.h>

enum key_type { KEY_BOOL, KEY_INT, KEY_FLOAT, KEY_TEXT, KEY_CHOICE };

enum {
    KEY_ABOVE_MIN = 1,    /* min itself is refused */
    KEY_FILE_RELATIVE = 2 /* a path relative to the folder of the file that sets it; kept absolute */
};

struct config_key {
    const char *section, *key;
    enum key_type type;
    size_t offset;        /* in struct config: bool, int64_t, double, const char *, or an enum */
    const char *fallback; /* the default, as it would stand in a file */
    double min, max;      /* of KEY_INT and KEY_FLOAT, inclusive */
    unsigned flags;
    const char *const *choices; /* of KEY_CHOICE: the texts of its enum's constants (choices.h), NULL at the end */
    const char *doc;
};

struct config_section {
    const char *name, *doc;
};

extern const struct config_key CONFIG_KEYS[]; /* ended by section NULL; the keys of a section stand together */
extern const struct config_section CONFIG_SECTIONS[];
int64_t config_n_keys(void);

#endif
