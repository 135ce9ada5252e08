/* tare merge ADAPTER OUT: merges an adapter into its base model. */
#include "base/fs.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "engine/engine.h"
#include "model/adapter.h"
#include "model/merge.h"
#include "settle/settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char merge_usage[] =
    "usage: tare merge ADAPTER OUT [dtype=f32|bf16] [model.base=FOLDER]\n"
    "Writes the folder OUT: ADAPTER's base model, with each adapted weight W replaced by W + s B A, its config.json and its\n"
    "tokenizer. ADAPTER is the folder of an adapter (adapter_config.json), or of a run that was trained with [lora].\n"
    "  dtype=             precision of OUT (default: that of the base's files). bf16 rounds W + s B A\n"
    "  model.base=        folder of the base, if not the one that adapter_config.json names\n"
    "  model.rope_theta=  rope_theta that the adapter was trained with, if not the one in the base's config.json\n";

struct merge {
    struct config config;
    struct engine engine;
    enum merge_dtype dtype;
};

static tare_status set_option(struct merge *g, const char *argument, struct err *e)
{
    static const char *const MODEL_KEYS[] = {"base", "rope_theta"};
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(MODEL_KEYS[i]);
        const char *key = argument + 6;
        if (!strncmp(argument, "model.", 6) && !strncmp(key, MODEL_KEYS[i], n) && key[n] == '=')
            return config_set(&g->config, "model", MODEL_KEYS[i], key + n + 1, "command line", e);
    }
    if (!strcmp(argument, "dtype=f32"))
        g->dtype = MERGE_F32;
    else if (!strcmp(argument, "dtype=bf16"))
        g->dtype = MERGE_BF16;
    else
        FAIL(e, TARE_E_CONFIG,
             "%s: must be dtype=f32, dtype=bf16, model.base=FOLDER or model.rope_theta=NUMBER; see tare merge --help", argument);
    return TARE_OK;
}

/* Writes to a temporary folder and renames it, so that OUT is either complete or absent. */
static tare_status write_folder(struct merge *g, const char *adapter, const char *out, struct err *e)
{
    char temporary[FS_PATH], tokenizer[FS_PATH], parent[FS_PATH];
    if (snprintf(temporary, sizeof temporary, "%s.tmp-%ld", out, (long)getpid()) >= FS_PATH)
        FAIL(e, TARE_E_INVALID, "%s: the path is too long", out);
    TRY(adapter_tokenizer(adapter, &g->config.model, tokenizer, e));
    if (fs_exists(temporary)) FAIL(e, TARE_E_CONFIG, "%s: exists already; remove it", temporary);
    tare_status status = fs_mkdirs(temporary, e);
    if (!status) status = model_merge(g->engine.model, temporary, g->dtype, tokenizer, e);
    if (!status) status = checkpoint_write_sums(temporary, e);
    if (!status && rename(temporary, out))
        status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: cannot be renamed to %s: %s", temporary, out, strerror(errno));
    if (status) fs_remove_tree(temporary, NULL);
    TRY(status);
    fs_dirname(parent, out);
    return fs_sync_dir(parent, e);
}

static tare_status run_merge(struct merge *g, int argc, char **argv, struct err *e)
{
    char folder[FS_PATH], out[FS_PATH];
    TRY(settle_model(argv[1], folder, e));
    TRY(fs_join(out, argv[2], "", e));
    for (int i = 3; i < argc; i++) TRY(set_option(g, argv[i], e));
    if (!fs_is_dir(folder)) FAIL(e, TARE_E_NOT_FOUND, "%s: no such folder", folder);
    if (!adapter_is(folder)) FAIL(e, TARE_E_INVALID, "%s: adapter_config.json is missing, so this is not an adapter", folder);
    if (fs_exists(out)) FAIL(e, TARE_E_CONFIG, "%s: exists already; remove it or choose another folder", out);
    TRY(config_set(&g->config, "model", "path", folder, "command line", e));
    TRY(engine_open(&g->engine, ENGINE_MODEL, e));
    TRY(write_folder(g, folder, out, e));
    log_info("%s and its base %s are written to %s", folder, g->engine.model->folder, out);
    return TARE_OK;
}

int cmd_merge(int argc, char **argv)
{
    struct merge g = {.dtype = MERGE_AS_BASE};
    struct err e = {0};
    if (argc < 3) return cli_usage(merge_usage);
    tare_status status = config_load(&g.config, NULL, NULL, 0, &e);
    engine_init(&g.engine, &g.config, NULL);
    if (!status) status = run_merge(&g, argc, argv, &e);
    engine_close(&g.engine);
    config_free(&g.config);
    return cli_end(status, &e);
}
