/* Loads a verifier plugin directly from its file, without the engine: its parameters from their
 * defaults and "key=value" strings. For tests, benches and fuzzing of the rule alone. */
#ifndef TARE_TESTS_VERIFY_HARNESS_H
#define TARE_TESTS_VERIFY_HARNESS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tare/plugin.h>

struct harness {
    const tare_verifier *f;
    void *self;
    tare_value values[64];
};

static inline tare_value harness_value(const tare_param *p, const char *text)
{
    tare_value v = {0};
    if (p->type == TARE_BOOL)
        v.i = !strcmp(text, "true");
    else if (p->type == TARE_INT)
        v.i = strtoll(text, NULL, 10);
    else if (p->type == TARE_FLOAT)
        v.f = strtod(text, NULL);
    else if (p->type == TARE_CHOICE)
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
    if (h->f->create(NULL, h->values, &h->self, &error)) {
        printf("%s: %s\n", name, error.message);
        return 1;
    }
    return 0;
}

static inline void harness_close(struct harness *h)
{
    h->f->destroy(h->self);
}

struct harness_verdict {
    tare_verdict v;
    char extracted[512];
};

static inline tare_status harness_run(struct harness *h, tare_text completion, tare_text answer, tare_text row,
                                      struct harness_verdict *out)
{
    const tare_answer a = {.struct_size = sizeof a, .completion = completion, .answer = answer, .row = row};
    const tare_answer *pa = &a;
    out->v = (tare_verdict){.struct_size = sizeof out->v, .extracted = out->extracted, .capacity = sizeof out->extracted - 1};
    tare_verdict *pv = &out->v;
    tare_error error = {.struct_size = sizeof error};
    const tare_status s = h->f->verify(h->self, &pa, &pv, 1, &error);
    if (s) printf("verify: %s\n", error.message);
    out->extracted[out->v.size] = 0;
    return s;
}

static inline const char *harness_code(int code)
{
    static const char *const names[] = {"unset", "correct", "wrong", "no_answer", "unparsable", "timeout", "crashed", "partial"};
    return names[code >= 0 && code <= TARE_PARTIAL ? code : 0];
}

#endif
