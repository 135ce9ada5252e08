/* Supervised training on rows with a completion: the warm start, and the SFT baseline. The batch of
 * an optimizer step is a training batch in which every row is a group of one rollout, so packing,
 * head and optimizer are those of the update. On several ranks every rank builds the whole batch
 * and the micro-batches are distributed, so the model has the same bits for any number of ranks. */
#include "sft/internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/signals.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/training.h"
#include "engine/same_ranks.h"
#include "update/supervised.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Marks the ids since the last mark: learnt, or context. */
static tare_status mark_ids(struct sft *s, bool learnt, struct err *e)
{
    const int64_t begin = s->sampled.size;
    TRY(str_reserve(&s->sampled, s->ids.n - begin, e));
    memset(s->sampled.data + begin, learnt, (size_t)(s->ids.n - begin));
    s->sampled.size = s->ids.n;
    return TARE_OK;
}

/* Appends a text that is learnt, with EOS, or context. */
static tare_status append_text(struct sft *s, tare_text text, bool learnt, struct err *e)
{
    int32_t end;
    TRY(tokenizer_encode(s->engine.tokenizer, text.data, text.size, &s->ids, e));
    TRY(engine_end_id(&s->engine, &end, e));
    if (learnt) TRY(token_ids_add(&s->ids, end, e));
    return mark_ids(s, learnt, e);
}

/* Appends completion and EOS of row m to the batch, or its parts. With train_on_prompt the prompt
 * except its first token comes before them. */
static tare_status append_row(struct sft *s, struct batch *b, int64_t m, struct err *e)
{
    const struct row *row = b->row[m];
    if (!row->completion.data && !row->parts)
        FAIL(e, TARE_E_INVALID, "%s: \"completion\" is missing; supervised training needs one in every row", row->where);
    b->token_begin[m] = s->ids.n;
    if (s->config->sft.train_on_prompt)
        for (int64_t i = b->prompt_begin[m] + 1; i < b->prompt_begin[m + 1]; i++) TRY(token_ids_add(&s->ids, b->prompt_ids[i], e));
    TRY(mark_ids(s, true, e));
    if (row->completion.data) TRY(append_text(s, row->completion, true, e));
    for (int64_t k = 0; k < row->n_parts; k++) TRY(append_text(s, row->parts[k].text, row->parts[k].loss, e));
    b->token_begin[m + 1] = s->ids.n;
    const int64_t length = b->prompt_begin[m + 1] - b->prompt_begin[m] + b->token_begin[m + 1] - b->token_begin[m];
    if (length > s->engine.model->shape.max_position)
        FAIL(e, TARE_E_RANGE,
             "%s: %lld tokens, but the model's context is %lld; shorten the row or set model.max_position_embeddings", row->where,
             (long long)length, (long long)s->engine.model->shape.max_position);
    return TARE_OK;
}

/* With train_on_prompt only the first token counts as prompt. */
static void keep_first_prompt_tokens(struct batch *b)
{
    for (int64_t m = 0; m < b->n_groups; m++) b->prompt_ids[m] = b->prompt_ids[b->prompt_begin[m]];
    for (int64_t m = 0; m <= b->n_groups; m++) b->prompt_begin[m] = m;
    b->n_prompt_tokens = b->n_groups;
}

static tare_status next_batch(struct sft *s, struct batch *b, struct err *e)
{
    const int64_t n = s->config->sft.batch;
    int64_t *rows;
    bool parts = false;
    struct arena *a = &s->arena;
    arena_reset(a);
    s->ids.n = s->sampled.size = 0;
    TRY(arena_new(a, &rows, n, e));
    TRY(order_next(&s->engine.order, &s->cursor, n, rows, NULL, e));
    TRY(rollout_prompts(s->engine.prompts, &(struct chosen_rows){&s->engine.train, rows, NULL, n}, &s->prompt_ids, b, a, e));
    TRY(arena_new(a, &b->group_begin, n + 1, e));
    TRY(arena_new(a, &b->token_begin, n + 1, e));
    for (int64_t m = 0; m < n; m++) {
        b->group_begin[m + 1] = m + 1;
        TRY(append_row(s, b, m, e));
        parts = parts || b->row[m]->parts;
    }
    b->sampled = parts ? (uint8_t *)s->sampled.data : NULL;
    if (s->config->sft.train_on_prompt) keep_first_prompt_tokens(b);
    b->ids = s->ids.data;
    b->n_rollouts = n;
    b->n_tokens = s->ids.n;
    return TARE_OK;
}

/* Builds the path of a temporary folder inside that of the checkpoints, which only this process
 * uses. */
static tare_status own_folder(const struct sft *s, const char *name, char *out, struct err *e)
{
    return fs_join(out, s->folder, name, e);
}

/* Makes the tokenizer of a new model in a folder that rank 0 creates and removes. */
static tare_status new_tokenizer(struct sft *s, struct err *e)
{
    char folder[FS_PATH];
    const bool first = !s->comm.rank;
    TRY(own_folder(s, "tokenizer.tmp", folder, e));
    tare_status status = comm_agree(&s->comm, first ? tokenizer_write_bytes(folder, e) : TARE_OK, e);
    if (!status) status = comm_agree(&s->comm, tokenizer_load(folder, &s->engine.tokenizer, e), e);
    if (first) fs_remove_tree(folder, NULL);
    return status;
}

/* Makes a new policy of the shape that model.init asks for, and its tokenizer. */
static tare_status new_model(struct sft *s, struct err *e)
{
    const struct config *c = s->config;
    struct engine *g = &s->engine;
    if (c->lora.rank)
        FAIL(e, TARE_E_CONFIG, "%s: lora.rank = %lld needs a base model, but model.path = %s does not exist",
             config_where(c, "lora", "rank"), (long long)c->lora.rank, c->model.path);
    if (c->model.init == INIT_NONE) return config_no_model(c, "give a Hugging Face folder, or set model.init for a new model", e);
    TRY(new_tokenizer(s, e));
    const struct model_source source = {.config = &c->model,
                                        .kernels = g->kernels,
                                        .pool = g->pool,
                                        .comm = g->comm,
                                        .shard = c->dist.shard,
                                        .seed = (uint64_t)c->run.seed};
    const int32_t eos = tokenizer_role_id(g->tokenizer, TOKEN_EOS);
    TRY(model_new(&source, tokenizer_size(g->tokenizer), &eos, 1, &g->model, e));
    model_set_deterministic(g->model, c->run.deterministic);
    return TARE_OK;
}

/* On rank 0, before anything is opened: locks the folder, counts its checkpoints, and makes a
 * missing model by its warm start. */
static tare_status prepare_start(struct sft *s, enum sft_start start, struct err *e)
{
    if (s->comm.rank) return TARE_OK;
    TRY(sft_take_folder(s, start, e));
    TRY(checkpoint_count(s->folder, &s->checkpoints, e));
    return s->ended ? TARE_OK : warm_start(s->config, e);
}

/* Parts are joined as they are, without a chat template. */
static tare_status check_parts(const struct config *c, const struct dataset *d, struct err *e)
{
    for (int64_t i = 0; c->data.prompt == PROMPT_CHAT && i < d->n; i++)
        if (d->rows[i].parts)
            FAIL(e, TARE_E_CONFIG, "%s: the row has \"parts\", which are joined as they are; set data.prompt = plain",
                 d->rows[i].where);
    return TARE_OK;
}

static tare_status check_keys(const struct config *c, struct err *e)
{
    if (c->train.on_nonfinite == NONFINITE_ROLLBACK)
        FAIL(e, TARE_E_CONFIG,
             "%s: train.on_nonfinite = rollback works only with `tare train`; supervised training can stop or skip",
             config_where(c, "train", "on_nonfinite"));
    return TARE_OK;
}

static tare_status sft_open(struct sft *s, enum sft_start start, struct err *e)
{
    const struct config *c = s->config;
    struct engine *g = &s->engine;
    TRY(same_ranks_program(&s->comm, c, e));
    TRY(check_keys(c, e));
    TRY(comm_agree(&s->comm, sft_find_folders(s, start, e), e));
    TRY(engine_open(g, ENGINE_KERNELS | ENGINE_TRAIN, e));
    if (g->train.weight)
        FAIL(e, TARE_E_CONFIG,
             "%s: data.train gives the files weights, but supervised training takes every row once per epoch; remove the weights",
             config_where(c, "data", "train"));
    TRY(check_parts(c, &g->train, e));
    s->steps = c->sft.steps ? c->sft.steps : c->sft.epochs * ((g->train.n + c->sft.batch - 1) / c->sft.batch);
    TRY(comm_agree(&s->comm, prepare_start(s, start, e), e));
    TRY(s->comm.broadcast(&s->comm, &s->ended, sizeof s->ended, 0, e));
    if (s->ended) return TARE_OK;
    TRY(s->comm.broadcast(&s->comm, &s->checkpoints, sizeof s->checkpoints, 0, e));
    g->resumed = s->checkpoints > 0;
    if (!fs_is_dir(c->model.path)) TRY(new_model(s, e));
    TRY(engine_open(g, ENGINE_MODEL | ENGINE_TRAINS | ENGINE_PROMPTS, e));
    /* One shard: the way a run adds its gradients does not change its warm start. */
    TRY(engine_open_trainer(g, 1, s->steps, e));
    return sft_restore(s, start, e);
}

static void sft_close(struct sft *s)
{
    engine_close(&s->engine);
    token_ids_free(&s->prompt_ids);
    token_ids_free(&s->ids);
    str_free(&s->sampled);
    arena_free(&s->arena);
    if (s->comm.free) s->comm.free(&s->comm);
}

/* Writes the result to a temporary folder and renames it, so it is either complete or absent. */
static tare_status save_result(struct sft *s, struct err *e)
{
    char temporary[FS_PATH], parent[FS_PATH];
    const bool first = !s->comm.rank;
    const struct model *m = s->engine.model;
    const char *tokenizer = m->folder[0] ? m->folder : NULL;
    TRY(own_folder(s, "model.tmp", temporary, e));
    tare_status status = first ? fs_remove_tree(temporary, e) : TARE_OK;
    if (!status && first) status = fs_mkdirs(temporary, e);
    if (!status && first && !tokenizer) status = tokenizer_write_bytes(temporary, e);
    status = comm_agree(&s->comm, status, e);
    if (!status)
        status = comm_agree(&s->comm, model_save(s->engine.model, temporary, training_saved_dtype(s->config, m), tokenizer, e), e);
    if (!status && first) status = checkpoint_write_sums(temporary, e);
    if (status && first) fs_remove_tree(temporary, NULL);
    if (status || !first) return status;
    TRY(sft_mark_ended(s, e));
    TRY(fault_point(0, "result", 0, e));
    if (rename(temporary, s->out)) FAIL(e, TARE_E_IO, "%s: cannot be renamed to %s: %s", temporary, s->out, strerror(errno));
    fs_dirname(parent, s->out);
    TRY(fs_sync_dir(parent, e));
    return fault_point(0, "result", 1, e);
}

static tare_status save_interrupted(struct sft *s, enum sft_start start, struct err *e)
{
    if (s->saved != s->step) TRY(sft_save(s, e));
    FAIL(e, TARE_E_CANCELLED, "interrupted after step %lld of %lld%s", (long long)s->step, (long long)s->steps,
         start == SFT_GO_ON ? "; continue with the same command" : "");
}

/* Logs when ranks will be idle. Micro-batches depend only on their tokens, so that the model does
 * not depend on the number of ranks. */
static void report_idle_ranks(const struct sft *s, int64_t tokens)
{
    const int64_t micro = s->config->train.micro_tokens;
    if (s->comm.size > 1 && tokens <= (s->comm.size - 1) * micro)
        log_info(
            "a batch of %lld tokens has at most %lld micro-batches of train.micro_tokens = %lld, fewer than the %d ranks, so the others wait; lower train.micro_tokens or raise sft.batch (both change the bits, the number of ranks does not)",
            (long long)tokens, (long long)((tokens + micro - 1) / micro), (long long)micro, s->comm.size);
}

static tare_status sft_loop(struct sft *s, enum sft_start start, struct err *e)
{
    const int64_t every = s->config->checkpoint.every;
    const double began = clock_seconds();
    double shown = began;
    int64_t tokens = 0;
    while (s->step < s->steps) {
        struct batch b = {.step = s->step};
        struct supervised_report done;
        TRY(comm_stage(&s->comm, "data", s->step + 1, e));
        TRY(next_batch(s, &b, e));
        TRY(comm_stage(&s->comm, "update", s->step + 1, e));
        TRY(supervised_step(s->engine.trainer, &b, 0, &done, e));
        s->step++;
        if (!tokens) report_idle_ranks(s, b.n_tokens + b.prompt_begin[b.n_groups]);
        tokens += b.n_tokens + b.prompt_begin[b.n_groups];
        const bool last = s->step == s->steps;
        if (every && s->step % every == 0 && !last) TRY(sft_save(s, e));
        const tare_status stop = comm_agree(&s->comm, *signals_flag() && !last ? TARE_E_CANCELLED : TARE_OK, e);
        if (stop == TARE_E_CANCELLED) return save_interrupted(s, start, e);
        TRY(stop);
        const double now = clock_seconds();
        if (now - shown < 5 && !last) continue;
        shown = now;
        log_info("sft step %lld/%lld  loss %.4f  grad_norm %.3f  lr %.2e  %.0f tokens/s", (long long)s->step, (long long)s->steps,
                 done.loss, done.grad_norm, done.lr, (double)tokens / (now - began));
    }
    return TARE_OK;
}

tare_status sft_run(const struct config *c, enum sft_start start, struct comm *comm, struct err *e)
{
    OWNED(sft_close) struct sft s = {.config = c, .lock = -1, .saved = -1};
    if (comm)
        s.comm = *comm;
    else
        TRY(comm_self(&s.comm, e));
    engine_init(&s.engine, c, &s.comm);
    arena_init(&s.arena, "supervised step");
    signals_catch();
    tare_status status = sft_open(&s, start, e);
    if (!status && !s.ended) status = sft_loop(&s, start, e);
    if (!status && !s.ended) status = comm_agree(&s.comm, save_result(&s, e), e);
    if (!status) log_info(s.ended ? "%s is complete: the training had ended" : "model written to %s", s.out);
    const tare_status left = sft_leave_folder(&s, !status, status ? NULL : e);
    return status ? status : left;
}
