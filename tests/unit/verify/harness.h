/* Loads a verifier plugin directly from its file, without the engine: its parameters from their
 * defaults and "key=value" strings. For tests, benches and fuzzing of the rule alone. */
#ifndef TARE_TESTS_VERIFY_HARNESS_H
#define TARE_TESTS_VERIFY_HARNESS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tare/sdk.h>

struct harness {
    const tare_verifier *f;
    void *self;
    tare_value values[64];
    tare_host host; /* only its struct_size is set */
};

static inline tare_value harness_value(const tare_param *p, const char *text)
{
    tare_value v = {0};
    if (p->type == TARE_PARAM_BOOL)
        v.i = !strcmp(text, "true");
    else if (p->type == TARE_PARAM_INT)
        v.i = strtoll(text, NULL, 10);
    else if (p->type == TARE_PARAM_FLOAT)
        v.f = strtod(text, NULL);
    else if (p->type == TARE_PARAM_CHOICE)
        while (p->choices[v.i] && strcmp(p->choices[v.i], text)) v.i++;
    else
        v.s = text;
    return v;
}

/* settings: "key=value" strings ending with NULL, or NULL. Returns 0, or prints the reason and
 * returns 1. */
static inline int harness_open(struct harness *h, const char *name, const char *const *settings)
{
    char path[4096];
    const char *root = getenv("TARE_PLUGIN_PATH");
    snprintf(path, sizeof path, "%s/verifiers/%s.so", root ? root : "plugins", name);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tare_plugin *(*entry)(const tare_host *, tare_error *) = NULL;
    if (so) *(void **)&entry = dlsym(so, "tare_plugin_v1");
    if (!entry) {
        printf("%s\n", dlerror());
        return 1;
    }
    tare_error error = {.struct_size = sizeof error};
    const tare_descriptor *d = entry(NULL, &error)->descriptors[0];
    h->f = d->functions;
    for (uint32_t i = 0; i < d->n_params; i++) {
        h->values[i] = harness_value(&d->params[i], d->params[i].fallback);
        const size_t n = strlen(d->params[i].key);
        for (const char *const *s = settings; s && *s; s++)
            if (!strncmp(*s, d->params[i].key, n) && (*s)[n] == '=') h->values[i] = harness_value(&d->params[i], *s + n + 1);
    }
    h->host.struct_size = sizeof h->host;
    const tare_setup setup = {.struct_size = sizeof setup, .host = &h->host, .values = h->values, .instance = name};
    if (h->f->create(&setup, &h->self, &error)) {
        printf("%s: %s\n", name, error.message);
        return 1;
    }
    return 0;
}

static inline void harness_close(struct harness *h)
{
    h->f->destroy(h->self);
}

/* Texts end with NUL. */
struct harness_verdict {
    tare_verdict v;
    char extracted[512], note[512];
};

static inline tare_status harness_write(void *ctx, const void *data, int64_t size)
{
    char *text = ctx;
    const size_t at = strlen(text), left = 511 - at, n = (size_t)size < left ? (size_t)size : left;
    if (n) memcpy(text + at, data, n);
    text[at + n] = 0;
    return TARE_OK;
}

static inline tare_status harness_run(struct harness *h, tare_text completion, tare_text answer, tare_text row,
                                      struct harness_verdict *out)
{
    const tare_completion a = {.struct_size = sizeof a, .text = completion, .answer = answer, .row = row};
    const tare_completion *pa = &a;
    const tare_stream extracted = {.struct_size = sizeof extracted, .ctx = out->extracted, .write = harness_write},
                      note = {.struct_size = sizeof note, .ctx = out->note, .write = harness_write};
    out->extracted[0] = out->note[0] = 0;
    out->v = (tare_verdict){.struct_size = sizeof out->v, .extracted = &extracted, .note = &note};
    tare_verdict *pv = &out->v;
    tare_error error = {.struct_size = sizeof error};
    const tare_status s = h->f->verify(h->self, &pa, &pv, 1, &error);
    if (s) printf("verify: %s\n", error.message);
    out->v.extracted = out->v.note = NULL;
    return s;
}

static inline const char *harness_code(int code)
{
    static const char *const names[] = {"unset", "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial"};
    return names[code >= 0 && code <= TARE_VERDICT_PARTIAL ? code : 0];
}

#endif
