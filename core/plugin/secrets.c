/* Keeps the values of secret parameters out of what the host prints, records or stores. */
#define _GNU_SOURCE /* memmem */
#include "plugin/internal.h"

#include <string.h>

enum { LEAST_HIDDEN = 4, LEAST_REFUSED = 8 };

/* Returns the next secret of at least `least` bytes from parameter *at on, or NULL. */
static const char *next_secret(const struct plugin_instance *i, uint32_t *at, size_t least)
{
    while (i->given && *at < i->plugin->desc.n_params) {
        const uint32_t j = (*at)++;
        if (i->plugin->params[j].flags & TARE_PARAM_SECRET && i->given[j].s && strlen(i->given[j].s) >= least) return i->given[j].s;
    }
    return NULL;
}

void plugin_hide_secrets(const struct plugin_instance *i, char *text, int64_t n)
{
    const char *secret;
    for (uint32_t at = 0; (secret = next_secret(i, &at, LEAST_HIDDEN));) {
        const size_t size = strlen(secret);
        for (char *c = text; (c = memmem(c, (size_t)(text + n - c), secret, size)); c += size) memset(c, '*', size);
    }
}

tare_status plugin_refuse_secrets(const struct plugin_instance *i, const char *what, const char *data, int64_t n, struct err *e)
{
    const char *secret;
    for (uint32_t at = 0; n && (secret = next_secret(i, &at, LEAST_REFUSED));)
        if (memmem(data, (size_t)n, secret, strlen(secret)))
            FAIL(e, TARE_E_PLUGIN, "%s %s: %s wrote the value of the secret parameter %s; it must not be recorded or stored",
                 plugin_kind_name(i->plugin->desc.kind), i->name, what, i->plugin->params[at - 1].key);
    return TARE_OK;
}
