/* Devices whose peaks are published, and quantities as people write them. */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Data sheets: memory as named, dense products in bf16 and in fp32, memory bandwidth, bytes a second that one device sends to its neighbours
 * (NVLink, one direction; PCIe where there is none); compute capability, 90 for 9.0. */
static const struct {
    const char *name;
    double memory, bf16, f32, bandwidth, link;
    int capability;
} DEVICES[] = {
    {"a100-40", 40e9, 312e12, 19.5e12, 1.555e12, 300e9, 80},
    {"a100", 80e9, 312e12, 19.5e12, 2.039e12, 300e9, 80},
    {"h100", 80e9, 989e12, 67e12, 3.35e12, 450e9, 90},
    {"h20", 96e9, 148e12, 44e12, 4.0e12, 450e9, 90},
    {"gh200", 96e9, 989e12, 67e12, 4.0e12, 450e9, 90},
    {"h200", 141e9, 989e12, 67e12, 4.8e12, 450e9, 90},
    {"b200", 180e9, 2250e12, 75e12, 7.7e12, 900e9, 100},
    {"l40s", 48e9, 362e12, 91.6e12, 0.864e12, 32e9, 89},
    {"rtx-pro-6000", 96e9, 503.8e12, 126e12, 1.792e12, 64e9, 120},
    {"rtx4090", 24e9, 165e12, 82.6e12, 1.008e12, 32e9, 89},
};
enum { N_DEVICES = sizeof DEVICES / sizeof *DEVICES };

tare_status plan_device(const char *name, bool bf16, struct plan_machine *out, struct err *e)
{
    OWNED(str_free) struct str known = {0};
    for (int i = 0; i < N_DEVICES; i++) {
        if (strcmp(name, DEVICES[i].name)) continue;
        *out = (struct plan_machine){.gpu = true,
                                     .memory = DEVICES[i].memory,
                                     .flops = bf16 ? DEVICES[i].bf16 : DEVICES[i].f32,
                                     .bandwidth = DEVICES[i].bandwidth,
                                     .link = DEVICES[i].link,
                                     .capability = DEVICES[i].capability};
        snprintf(out->name, sizeof out->name, "%s", name);
        return TARE_OK;
    }
    for (int i = 0; i < N_DEVICES; i++) TRY(str_addf(&known, e, " %s", DEVICES[i].name));
    return err_set(e, TARE_E_CONFIG, __FILE__, __LINE__,
                   "plan.device = %s is not known; known:%s; or give plan.memory, plan.flops, plan.bandwidth and plan.link", name,
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
    FAIL(e, TARE_E_CONFIG, "'%s' is not a quantity of at least 0, such as 80GB, 40GiB, 312T or 3.35e12", text);
}
