#include "config/exports.h"

#include <string.h>

const struct export_service EXPORT_SERVICES[EXPORTS] = {
    {"wandb", "wandb", "wandb"},       {"trackio", "trackio", "trackio"}, {"mlflow", "mlflow", "mlflow"},
    {"swanlab", "swanlab", "swanlab"}, {"comet", "comet_ml", "comet_ml"},
};

static const struct export_service *find_service(const char *name, size_t n)
{
    for (int i = 0; i < EXPORTS; i++)
        if (strlen(EXPORT_SERVICES[i].name) == n && !strncmp(EXPORT_SERVICES[i].name, name, n)) return &EXPORT_SERVICES[i];
    return NULL;
}

tare_status exports_read(const char *text, const struct export_service **out, int *n, struct err *e)
{
    *n = 0;
    for (const char *at = text + strspn(text, ", \t"); *at; at += strspn(at, ", \t")) {
        const size_t size = strcspn(at, ", \t");
        const struct export_service *s = find_service(at, size);
        bool again = false;
        if (!s)
            FAIL(e, TARE_E_CONFIG, "unknown service '%.*s'; allowed: wandb, trackio, mlflow, swanlab, comet, separated by commas",
                 (int)size, at);
        for (int i = 0; i < *n; i++) again |= out[i] == s;
        if (!again) out[(*n)++] = s;
        at += size;
    }
    return TARE_OK;
}
