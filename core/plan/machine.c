/* Devices with published memory sizes, and quantities with units. */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes according to the data sheets. */
static const struct {
    const char *name;
    double memory;
} DEVICES[] = {
    {"a100-40", 40e9}, {"a100", 80e9},  {"h100", 80e9}, {"h20", 96e9},          {"gh200", 96e9},
    {"h200", 141e9},   {"b200", 180e9}, {"l40s", 48e9}, {"rtx-pro-6000", 96e9}, {"rtx4090", 24e9},
};
enum { N_DEVICES = sizeof DEVICES / sizeof *DEVICES };

tare_status plan_device(const char *name, struct plan_machine *out, struct err *e)
{
    OWNED(str_free) struct str known = {0};
    for (int i = 0; i < N_DEVICES; i++) {
        if (strcmp(name, DEVICES[i].name)) continue;
        *out = (struct plan_machine){.gpu = true, .memory = DEVICES[i].memory};
        snprintf(out->name, sizeof out->name, "%s", name);
        return TARE_OK;
    }
    for (int i = 0; i < N_DEVICES; i++) TRY(str_addf(&known, e, " %s", DEVICES[i].name));
    return err_set(e, TARE_E_CONFIG, __FILE__, __LINE__, "plan.device = %s: unknown device; known:%s; or give plan.memory", name,
                   known.data);
}

tare_status plan_quantity(const char *text, double *out, struct err *e)
{
    static const struct {
        const char *ending;
        double factor;
    } ENDINGS[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
                   {"TB", 1e12},    {"K", 1e3},      {"M", 1e6},      {"G", 1e9},      {"T", 1e12}, {"P", 1e15}, {"", 1}};
    const size_t n = strlen(text);
    for (size_t i = 0; i < sizeof ENDINGS / sizeof *ENDINGS; i++) {
        const size_t m = strlen(ENDINGS[i].ending);
        char number[64];
        if (n < m || n - m >= sizeof number || strcmp(text + n - m, ENDINGS[i].ending)) continue;
        memcpy(number, text, n - m);
        number[n - m] = 0;
        if (str_to_double(number, out, e) || !isfinite(*out) || *out < 0) break;
        *out *= ENDINGS[i].factor;
        return TARE_OK;
    }
    FAIL(e, TARE_E_CONFIG, "invalid quantity '%s': must be at least 0, such as 80GB, 40GiB or 8e10", text);
}
