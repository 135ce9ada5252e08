/* Checks of a descriptor's tables: parameters and wants. Each makes the host's copy, which is zero
 * where the plugin's build had no such member. */
#ifndef TARE_CORE_PLUGIN_TABLES_H
#define TARE_CORE_PLUGIN_TABLES_H

#include "plugin/internal.h"

/* What is checked, for messages. */
struct plugin_subject {
    const char *path;
    char name[96]; /* "estimator grpo", or "descriptor 2" until the name is known */
};

enum { PLUGIN_MOST_STRUCT = 4096 };

/* Refuses a text that is not one line of UTF-8: it would break the INI sections, tables and messages
 * that show it. what: names it in the message. text NULL: nothing to check. */
tare_status plugin_check_line(const struct plugin_subject *s, const char *what, const char *text, struct err *e);
/* Fills p->params from p->desc. */
tare_status plugin_copy_params(const struct plugin_subject *s, struct plugin *p, struct err *e);
/* Fills p->wants and p->column from p->desc. */
tare_status plugin_copy_wants(const struct plugin_subject *s, struct plugin *p, struct err *e);
/* Checks a table of the kind and makes p->head from it. */
tare_status plugin_copy_functions(const struct plugin_subject *s, struct plugin *p, struct err *e);

#endif
