/* The reference values of one folder; its README describes each tensor. B sequences, padded on the
 * right to T tokens. */
#ifndef TARE_TESTS_GOLDENS_H
#define TARE_TESTS_GOLDENS_H

#include "check.h"

#include "base/json.h"
#include "model/model.h"
#include "model/pack.h"
#include "model/safetensors.h"

#include <math.h>
#include <string.h>

struct goldens {
    const char *folder;
    struct safetensors file;
    json_t *info;
    int64_t B, T;
    const struct st_tensor *ids, *mask, *completion;
    int64_t len[64], prompt_len[64];
    int32_t rows[64][4096]; /* token ids */
    struct pack_group groups[64];
    const int32_t *completions[64];
    int64_t completion_len[64], n_groups, n_tokens;
};

static inline int32_t st_i32(const struct st_tensor *t, int64_t i)
{
    int32_t v;
    memcpy(&v, t->data + 4 * i, 4);
    return v;
}

static inline float st_f32(const struct st_tensor *t, int64_t i)
{
    float v;
    memcpy(&v, t->data + 4 * i, 4);
    return v;
}

static inline const struct st_tensor *golden(const struct goldens *g, const char *name)
{
    const struct st_tensor *t = safetensors_find(&g->file, name);
    if (!t) fail_msg("%s/goldens.safetensors has no tensor %s", g->folder, name);
    return t;
}

/* Returns whether the goldens contain a value: the small ones of tests/data omit some, all others
 * are complete. */
static inline bool golden_is_there(const struct goldens *g, const char *name)
{
    return shared_is_whole(g->folder) || safetensors_find(&g->file, name);
}

/* Makes groups of consecutive sequences with the same prompt. */
static inline void goldens_group(struct goldens *g)
{
    for (int64_t b = 0; b < g->B; b++) {
        g->completions[b] = g->rows[b] + g->prompt_len[b];
        g->completion_len[b] = g->len[b] - g->prompt_len[b];
        g->n_tokens += g->completion_len[b];
        const bool same =
            b && g->prompt_len[b] == g->prompt_len[b - 1] && !memcmp(g->rows[b], g->rows[b - 1], 4 * (size_t)g->prompt_len[b]);
        if (same) {
            g->groups[g->n_groups - 1].n++;
            continue;
        }
        g->groups[g->n_groups++] =
            (struct pack_group){g->rows[b], g->prompt_len[b], 1, g->completions + b, g->completion_len + b, NULL};
    }
}

static inline void goldens_open(struct goldens *g, const char *folder)
{
    struct err e = {0};
    char path[FS_PATH];
    memset(g, 0, sizeof *g);
    g->folder = folder;
    assert_ok(fs_join(path, folder, "goldens.safetensors", &e), &e);
    assert_ok(safetensors_open(path, &g->file, &e), &e);
    assert_ok(fs_join(path, folder, "goldens.json", &e), &e);
    assert_ok(json_read_file(path, &g->info, &e), &e);
    g->ids = golden(g, "input_ids"), g->mask = golden(g, "attention_mask"), g->completion = golden(g, "completion_mask");
    g->B = g->ids->shape[0], g->T = g->ids->shape[1];
    assert_true(g->B <= 64 && g->T <= 4096);
    for (int64_t b = 0; b < g->B; b++) {
        for (int64_t t = 0; t < g->T; t++) {
            g->rows[b][t] = st_i32(g->ids, b * g->T + t);
            g->len[b] += st_i32(g->mask, b * g->T + t) != 0;
            if (!st_i32(g->completion, b * g->T + t) && g->prompt_len[b] == t) g->prompt_len[b]++;
        }
        assert_true(g->prompt_len[b] > 0 && g->prompt_len[b] < g->len[b]);
    }
    goldens_group(g);
}

static inline void goldens_close(struct goldens *g)
{
    safetensors_close(&g->file);
    json_decref(g->info);
}

static inline double goldens_number(const struct goldens *g, const char *a, const char *b)
{
    const json_t *v = json_object_get(json_object_get(g->info, a), b);
    if (!json_is_number(v)) fail_msg("%s/goldens.json has no number %s.%s", g->folder, a, b);
    return json_number_value(v);
}

/* Lists the folders below $TARE_GOLDENS (default $SHARED/models/tiny) that contain goldens; skips
 * if there are no such folders. */
static inline int64_t golden_folders(char folders[64][FS_PATH])
{
    const char *root = getenv("TARE_GOLDENS");
    char command[2 * FS_PATH + 128];
    if (!root || !*root) root = shared_or_skip("models/tiny");
    snprintf(command, sizeof command, "ls -d '%s'/*/goldens.safetensors '%s'/goldens.safetensors 2>/dev/null | sort", root, root);
    FILE *f = popen(command, "r");
    int64_t n = 0;
    while (f && n < 64 && fgets(folders[n], FS_PATH, f)) {
        char *slash = strrchr(folders[n], '/');
        if (slash) *slash = 0, n++;
    }
    if (f) pclose(f);
    if (!n) {
        SKIP("no folder with goldens.safetensors in %s", root);
    }
    return n;
}

#endif
