/* The table of all keys: name, place in struct config, allowed values and documentation. */
#ifndef TARE_CORE_CONFIG_KEYS_H
#define TARE_CORE_CONFIG_KEYS_H

#include "config/config.h"

#include <stddef.h>

enum key_type { KEY_BOOL, KEY_INT, KEY_FLOAT, KEY_TEXT, KEY_CHOICE };

enum {
    KEY_ABOVE_MIN = 1, /* min itself is not allowed */
    /* a path relative to the folder of the file that sets it; stored as an absolute path */
    KEY_FILE_RELATIVE = 2,
    KEY_OR_ZERO = 4, /* 0 is allowed as well */
    /* paths that count from run.paths_from: one that is read, one that is written, a list of files,
     * and plugins with names or files */
    KEY_PATH = 8,
    KEY_OUTPUT = 16,
    KEY_FILES = 32,
    KEY_PLUGINS = 64
};

struct config_key {
    const char *section, *key;
    enum key_type type;
    size_t offset;        /* offset in struct config of a bool, int64_t, double, const char * or enum */
    const char *fallback; /* default, as written in a file */
    double min, max;      /* for KEY_INT and KEY_FLOAT, inclusive */
    unsigned flags;
    /* for KEY_CHOICE: texts of its enum's constants (choices.h), NULL-terminated */
    const char *const *choices;
    const char *doc;
};

struct config_section {
    const char *name, *doc;
};

/* terminated by section NULL; keys of a section are adjacent */
extern const struct config_key CONFIG_KEYS[];
extern const struct config_section CONFIG_SECTIONS[];
int64_t config_n_keys(void);

#endif
