/* Which CPU table runs: the fastest this CPU has, unless a name or TARE_CPU asks for another. */
#include "kernels_cpu.h"

#include <stdlib.h>
#include <string.h>

struct choice {
    const char *name, *needs;
    const struct kernels *table;
    int runs, automatic;
};

static int choices(struct choice out[6])
{
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#ifdef TARE_CPU_SIMD
    const int wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    out[n++] = (struct choice){"avx512", "AVX-512 F, BW, DQ and VL", &kernels_avx512, wide, 1};
    out[n++] = (struct choice){"avx2", "AVX2 and FMA", &kernels_avx2, fma, 1};
#ifdef TARE_CPU_EMU512
    out[n++] = (struct choice){"emu512", "AVX2 and FMA", &kernels_emu512, fma, 0};
#endif
#endif
    out[n++] = (struct choice){"ref", "AVX2 and FMA", &kernels_ref_fma, fma, 1};
#endif
    out[n++] = (struct choice){"ref", "nothing", &kernels_ref_any, 1, 1};
    return n;
}

tare_status kernels_cpu(const char *name, const struct kernels **out, struct err *e)
{
    const char *asked = name ? name : getenv("TARE_CPU");
    struct choice list[6];
    const int n = choices(list);
    const struct choice *known = NULL;
    *out = NULL;
    if (asked && !*asked) asked = NULL;
    for (int i = 0; i < n; i++) {
        if (asked ? strcmp(asked, list[i].name) != 0 : !list[i].automatic) continue;
        known = &list[i];
        if (!known->runs) continue;
        *out = known->table;
        return TARE_OK;
    }
    if (known)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: this CPU lacks %s; leave %s unset for the fastest it can run", asked, known->needs,
             name ? "the name" : "TARE_CPU");
    FAIL(e, TARE_E_INVALID, "%s \"%s\" is not known; one of ref, avx2, avx512", name ? "CPU kernels" : "TARE_CPU", asked);
}
