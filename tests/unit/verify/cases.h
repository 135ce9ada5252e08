/* Reads the labelled cases of shared/data/verify and judges them with a plugin loaded by
 * harness.h. */
#ifndef TARE_TESTS_VERIFY_CASES_H
#define TARE_TESTS_VERIFY_CASES_H

#include "harness.h"

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

struct one_case {
    json_t *object;
    tare_text gold, pred, row;
    char *row_text, *built; /* owned */
    bool truth, policy, math_verify;
    const char *id, *kind;
    const char *extracted; /* NULL: absent */
    bool has_extracted;
    int verdict;
    double us;
    char got[512];
    char reason[128];
};

struct case_file {
    struct one_case *c;
    int64_t n;
};

static inline char *case_build(const json_t *parts, int64_t *size)
{
    char *out = NULL;
    *size = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *piece = json_array_get(json_array_get(parts, i), 0);
        const int64_t count = json_integer_value(json_array_get(json_array_get(parts, i), 1)),
                      n = (int64_t)json_string_length(piece);
        out = realloc(out, (size_t)(*size + n * count + 1));
        for (int64_t k = 0; k < count; k++, *size += n) memcpy(out + *size, json_string_value(piece), (size_t)n);
    }
    return out;
}

static inline int cases_read(const char *path, struct case_file *f)
{
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    int64_t room = 0;
    *f = (struct case_file){0};
    if (!in) return printf("%s cannot be read\n", path), 1;
    while ((n = getline(&line, &capacity, in)) > 0) {
        json_t *o = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        if (!o) return printf("%s: a line that is not JSON\n", path), 1;
        if (f->n == room) {
            room = room ? 2 * room : 1024;
            f->c = realloc(f->c, (size_t)room * sizeof *f->c);
        }
        struct one_case *c = &f->c[f->n++];
        *c = (struct one_case){.object = o};
        const json_t *gold = json_object_get(o, "gold"), *pred = json_object_get(o, "pred"),
                     *parts = json_object_get(o, "pred_parts");
        c->gold = (tare_text){json_string_value(gold), (int64_t)json_string_length(gold)};
        if (pred)
            c->pred = (tare_text){json_string_value(pred), (int64_t)json_string_length(pred)};
        else
            c->pred.data = c->built = case_build(parts, &c->pred.size);
        const json_t *truth = json_object_get(o, "truth");
        c->truth = json_is_true(truth ? truth : json_object_get(o, "expected"));
        c->policy = json_is_true(json_object_get(o, "policy"));
        c->math_verify = json_is_true(json_object_get(o, "math_verify"));
        c->id = json_string_value(json_object_get(o, "id"));
        c->kind = json_string_value(json_object_get(o, "kind"));
        const json_t *extracted = json_object_get(o, "extracted");
        c->has_extracted = extracted != NULL;
        c->extracted = json_string_value(extracted);
        json_t *row = json_copy(o); /* without the labels, which a verifier must not see */
        static const char *const hidden[] = {"gold",      "pred", "pred_parts",  "expected",       "truth",
                                             "policy",    "note", "math_verify", "math_verify_ms", "math_verify_string_only",
                                             "extracted", "kind", "style",       "source",         "licence"};
        for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) json_object_del(row, hidden[i]);
        c->row_text = json_dumps(row, JSON_COMPACT);
        c->row = (tare_text){c->row_text, (int64_t)strlen(c->row_text)};
        json_decref(row);
    }
    free(line);
    fclose(in);
    return 0;
}

static inline void cases_free(struct case_file *f)
{
    for (int64_t i = 0; i < f->n; i++) json_decref(f->c[i].object), free(f->c[i].row_text), free(f->c[i].built);
    free(f->c);
}

static inline void cases_judge(struct harness *h, struct case_file *f)
{
    for (int64_t i = 0; i < f->n; i++) {
        struct one_case *c = &f->c[i];
        struct harness_verdict v;
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        c->verdict = harness_run(h, c->pred, c->gold, c->row, &v) ? 0 : v.v.code;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        c->us = (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) * 1e-3;
        snprintf(c->got, sizeof c->got, "%s", v.extracted);
        snprintf(c->reason, sizeof c->reason, "%.127s", v.note);
    }
}

#endif
