#define _GNU_SOURCE /* memmem */
#include "episodes/episodes.h"

#include "base/fs.h"
#include "base/log.h"
#include "data/dataset.h"
#include "plugin/episode.h"
#include "rollout/texts.h"

#include <string.h>

enum { MOST_TEXT = 1 << 16 }; /* bytes of one observation */

/* An episode and what it has of each turn: the reward, and the state before it (-1: none). */
struct played {
    struct plugin_episode episode;
    const struct row *row;
    double *reward;
    int64_t *state;
    int64_t n, capacity;
};

struct episodes {
    struct plugin_instance *instance;
    const struct environment_config *config;
    const struct prompts *prompts;
    const struct tokenizer *tokenizer;
    const struct model *model;
    struct plugin_episode opening; /* for prompts */
    struct played *played;         /* [n] of the batch; [n_open] have a session */
    int64_t n, n_open, capacity;
    bool warned;        /* of tools */
    tare_text *special; /* [n_special] texts of the tokenizer's special tokens */
    int64_t n_special;
    struct token_ids ids; /* of the last observation */
    struct arena arena, text;
};

/* ---------------------------------------------------------------- life */

static const char *const ROLES[] = {[TARE_ROLE_SYSTEM] = "system", [TARE_ROLE_USER] = "user", [TARE_ROLE_TOOL] = "tool"};

static tare_status find_special(struct episodes *x, struct err *e)
{
    const int64_t size = tokenizer_size(x->tokenizer);
    TRY(arena_new(&x->arena, &x->special, size, e));
    for (int32_t id = 0; id < size; id++)
        if (tokenizer_is_special(x->tokenizer, id) && tokenizer_bytes(x->tokenizer, id).size)
            x->special[x->n_special++] = tokenizer_bytes(x->tokenizer, id);
    return TARE_OK;
}

static tare_status open_plugin(struct episodes *x, const struct episodes_options *o, struct err *e)
{
    const char *name = o->config->plugin;
    struct plugin_env env = o->env;
    TRY(find_special(x, e));
    if (prompts_are_chat(x->prompts)) {
        OWNED(str_free) struct str unused = {0}; /* is the template one for episodes? */
        TRY(prompts_after_answer(x->prompts, NULL, (struct prompt_message){"user", {"x", 1}}, &unused, e));
    }
    TRY(plugin_new(&(struct plugin_wanted){name, TARE_KIND_ENVIRONMENT, o->search, o->settings, 0, &env}, &x->instance, e));
    if (o->ranks > 1 && !(x->instance->plugin->environment->flags & TARE_ENVIRONMENT_REPEATS))
        FAIL(
            e, TARE_E_CONFIG,
            "environment.plugin = %s: its episodes need not repeat themselves (TARE_ENVIRONMENT_REPEATS is not set), but every one of %d ranks begins them; use one rank",
            name, o->ranks);
    return plugin_episode_open(x->instance, &x->opening, e);
}

tare_status episodes_open(const struct episodes_options *o, struct episodes **out, struct err *e)
{
    struct episodes *x;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *x, (void **)&x, e));
    *x = (struct episodes){.config = o->config, .prompts = o->prompts, .tokenizer = o->tokenizer, .model = o->model};
    arena_init(&x->arena, "episodes");
    arena_init(&x->text, "a turn's text");
    const tare_status status = open_plugin(x, o, e);
    if (status)
        episodes_close(x);
    else
        *out = x;
    return status;
}

void episodes_close(struct episodes *x)
{
    if (!x) return;
    for (int64_t i = 0; i < x->n_open; i++) {
        plugin_episode_close(&x->played[i].episode);
        mem_free(x->played[i].reward);
        mem_free(x->played[i].state);
    }
    plugin_episode_close(&x->opening);
    plugin_destroy(x->instance);
    token_ids_free(&x->ids);
    arena_free(&x->arena);
    arena_free(&x->text);
    mem_free(x->played);
    mem_free(x);
}

const struct plugin_instance *episodes_instance(const struct episodes *x)
{
    return x->instance;
}

/* ---------------------------------------------------------------- beginnings */

static void draw_words(struct rng_key key, uint64_t counter, uint64_t out[2])
{
    uint32_t word[4];
    rng_block(key, counter, 0, word);
    for (int k = 0; k < 2; k++) out[k] = (uint64_t)word[2 * k] << 32 | word[2 * k + 1];
}

/* A rollout of a batch. */
struct place {
    const struct batch *b;
    struct rng_key key; /* of the batch's draws */
    int64_t group, index;
};

/* Begins the episode of a rollout. */
static tare_status begin_episode(struct episodes *x, struct plugin_episode *at, struct place p, struct err *e)
{
    const struct batch *b = p.b;
    const int64_t group = p.group, index = p.index;
    const struct row *row = b->row[group];
    const struct rng_key own = rng_derive(rng_derive(p.key, b->prompt_uid[group]), (uint64_t)b->occurrence[group]);
    tare_episode episode = {.struct_size = sizeof episode,
                            .row = row->json,
                            .messages = row->messages,
                            .prompt_uid = b->prompt_uid[group],
                            .group = group,
                            .index = index,
                            .max_turns = x->config->max_turns};
    draw_words(rng_derive(own, 0), 0, episode.seed);
    draw_words(rng_derive(own, 1), (uint64_t)index, episode.noise);
    if (plugin_episode_reset(at, &episode, e)) return err_prefix(e, "%s", row->where);
    if (at->end)
        FAIL(e, TARE_E_PLUGIN, "%s: environment %s: the episode has ended before its first turn", row->where,
             x->instance->plugin->desc.name);
    if (at->tools.size && !x->warned) {
        x->warned = true;
        log_warn(
            "%s: environment %s offers tools, but this version does not show them to the model and parses no calls: its acts are texts",
            row->where, x->instance->plugin->desc.name);
    }
    return TARE_OK;
}

/* Returns where the first text of a special token begins, or n. */
static int64_t special_begin(const struct episodes *x, const char *text, int64_t n)
{
    int64_t first = n;
    for (int64_t k = 0; k < x->n_special; k++) {
        const char *at = memmem(text, (size_t)n, x->special[k].data, (size_t)x->special[k].size);
        if (at && at - text < first) first = at - text;
    }
    return first;
}

/* Appends the ids of what the environment said. A special token's text is encoded in two parts, as
 * any other text: it ends no turn and opens no role. */
static tare_status encode_said(const struct episodes *x, const struct str *said, struct token_ids *ids, struct err *e)
{
    const char *at = said->data;
    for (int64_t n = said->size; n;) {
        int64_t part = special_begin(x, at, n);
        if (part < n)
            for (part++; part < n && ((unsigned char)at[part] & 0xc0) == 0x80;) part++; /* with its first character */
        TRY(tokenizer_encode(x->tokenizer, at, part, ids, e));
        at += part;
        n -= part;
    }
    return TARE_OK;
}

/* What is rendered in place of a text that must not be read as special tokens. */
static const char MARK[] = "qzSAIDqz";

static bool has_special(const struct episodes *x, const struct str *said)
{
    return said->size && special_begin(x, said->data, said->size) < said->size;
}

/* The message of an observation, for the template. */
static tare_status message_of(const struct episodes *x, const struct plugin_episode *at, struct prompt_message *out, struct err *e)
{
    if (at->role <= 0)
        FAIL(e, TARE_E_PLUGIN, "environment %s: an observation %s; in a chat it must be messages of one role",
             x->instance->plugin->desc.name, at->role ? "has messages of several roles" : "without a message");
    *out = (struct prompt_message){ROLES[at->role], {at->said.data ? at->said.data : "", at->said.size}};
    if (has_special(x, &at->said)) out->text = (tare_text){MARK, sizeof MARK - 1};
    return TARE_OK;
}

/* Appends the ids of a rendered text, whose mark, if any, stands for what was said. */
static tare_status encode_rendered(const struct episodes *x, tare_text text, const struct str *said, struct token_ids *ids,
                                   struct err *e)
{
    const char *mark = has_special(x, said) ? memmem(text.data, (size_t)text.size, MARK, sizeof MARK - 1) : NULL;
    const char *end = text.data + text.size, *rest = mark ? mark + sizeof MARK - 1 : end;
    TRY(tokenizer_encode(x->tokenizer, text.data, (mark ? mark : end) - text.data, ids, e));
    if (!mark) return TARE_OK;
    TRY(encode_said(x, said, ids, e));
    return tokenizer_encode(x->tokenizer, rest, end - rest, ids, e);
}

/* Appends the ids of what follows an act, whose last token is `stop`. */
static tare_status encode_observation(const struct episodes *x, const struct played *p, int32_t stop, struct token_ids *ids,
                                      struct err *e)
{
    const struct plugin_episode *at = &p->episode;
    OWNED(str_free) struct str text = {0};
    struct prompt_message m;
    if (!prompts_are_chat(x->prompts)) return encode_said(x, &at->said, ids, e);
    TRY(message_of(x, at, &m, e));
    TRY(prompts_after_answer(x->prompts, p->row, m, &text, e));
    /* the act ended with the template's token, or with another one */
    const tare_text end = tokenizer_bytes(x->tokenizer, stop);
    const int64_t drawn = end.size <= text.size && !memcmp(text.data, end.data, (size_t)end.size) ? end.size : 0;
    return encode_rendered(x, (tare_text){text.data + drawn, text.size - drawn}, &at->said, ids, e);
}

/* Appends the ids of a group's prompt, and its text. */
static tare_status encode_opening(const struct episodes *x, const struct row *row, struct token_ids *ids, struct str *text,
                                  struct err *e)
{
    const struct plugin_episode *at = &x->opening;
    struct prompt_message m;
    if (at->role && prompts_are_chat(x->prompts)) {
        TRY(message_of(x, at, &m, e));
        TRY(prompts_text_with(x->prompts, row, x->config->question, m, text, e));
        return encode_rendered(x, (tare_text){text->data, text->size}, &at->said, ids, e);
    }
    if (!at->role || x->config->question) {
        TRY(prompts_encode(x->prompts, row, ids, e));
        TRY(prompts_text(x->prompts, row, text, e));
    }
    if (!at->said.size) return TARE_OK;
    TRY(str_add(text, at->said.data, at->said.size, e));
    return encode_said(x, &at->said, ids, e);
}

static tare_status check_text_size(const struct episodes *x, const struct plugin_episode *at, struct err *e)
{
    if (at->said.size <= MOST_TEXT) return TARE_OK;
    FAIL(e, TARE_E_RANGE, "environment %s: an observation of %lld bytes: at most %d are allowed", x->instance->plugin->desc.name,
         (long long)at->said.size, MOST_TEXT);
}

tare_status episodes_prompts(struct episodes *x, struct rng_key key, struct batch *b, struct arena *a, struct err *e)
{
    struct token_ids *ids = &x->ids;
    int64_t *new_begin;
    ids->n = 0;
    TRY(arena_new(a, &new_begin, b->n_groups + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        TRY(begin_episode(x, &x->opening, (struct place){b, key, m, 0}, e));
        TRY(check_text_size(x, &x->opening, e));
        OWNED(str_free) struct str text = {0};
        TRY(encode_opening(x, b->row[m], ids, &text, e));
        new_begin[m + 1] = ids->n;
        if (ids->n == new_begin[m])
            FAIL(e, TARE_E_INVALID,
                 "%s: the prompt has no token: environment %s says nothing at the beginning; set environment.question = true",
                 b->row[m]->where, x->instance->plugin->desc.name);
        if (b->prompt_text) {
            char *copy;
            TRY(arena_strdup(a, text.data ? text.data : "", text.size, &copy, e));
            b->prompt_text[m] = (tare_text){copy, text.size};
        }
    }
    b->prompt_begin = new_begin;
    b->n_prompt_tokens = ids->n;
    TRY(arena_new_raw(a, &b->prompt_ids, ids->n, e));
    memcpy(b->prompt_ids, ids->data, (size_t)ids->n * sizeof *ids->data);
    return TARE_OK;
}

static tare_status need_sessions(struct episodes *x, int64_t n, struct err *e)
{
    if (n > x->capacity) TRY(mem_grow((void **)&x->played, &x->capacity, n, (int64_t)sizeof *x->played, e));
    for (; x->n_open < n; x->n_open++) {
        struct played *p = &x->played[x->n_open];
        *p = (struct played){0};
        TRY(plugin_episode_open(x->instance, &p->episode, e));
    }
    x->n = n;
    return TARE_OK;
}

/* Notes the state before the episode's next turn, and that the turn has no reward yet. */
static tare_status begin_turn(struct played *p, struct err *e)
{
    const struct str *key = &p->episode.key;
    if (p->n == p->capacity) {
        int64_t capacity = p->capacity;
        TRY(mem_grow((void **)&p->reward, &capacity, p->n + 1, (int64_t)sizeof *p->reward, e));
        TRY(mem_grow((void **)&p->state, &p->capacity, p->n + 1, (int64_t)sizeof *p->state, e));
    }
    p->reward[p->n] = 0;
    p->state[p->n++] = key->size ? (int64_t)(fs_hash(key->data, key->size, 0) >> 1) : -1;
    return TARE_OK;
}

static bool same_said(const struct str *a, const struct str *b)
{
    return a->size == b->size && (!a->size || !memcmp(a->data, b->data, (size_t)a->size));
}

static tare_status next_text(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *e);

tare_status episodes_reset(struct episodes *x, struct rng_key key, const struct batch *own, int64_t group_size,
                           struct sample_episodes *out, struct err *e)
{
    int64_t n = 0;
    *out = (struct sample_episodes){.next_text = next_text, .ctx = x, .max_tokens = x->config->max_tokens};
    for (int64_t m = 0; m < own->n_groups; m++) n += own->samples && own->samples[m] ? own->samples[m] : group_size;
    TRY(need_sessions(x, n, e));
    for (int64_t m = 0, i = 0; m < own->n_groups; m++) {
        const int64_t size = own->samples && own->samples[m] ? own->samples[m] : group_size, first = i;
        for (; i < first + size; i++) {
            struct played *p = &x->played[i];
            TRY(begin_episode(x, &p->episode, (struct place){own, key, m, i - first}, e));
            if (!same_said(&p->episode.said, &x->played[first].episode.said))
                FAIL(
                    e, TARE_E_PLUGIN,
                    "%s: environment %s begins rollouts of one group differently; what reset says must depend on the row and the seed alone",
                    own->row[m]->where, x->instance->plugin->desc.name);
            p->row = own->row[m];
            p->n = 0;
            TRY(begin_turn(p, e));
        }
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- turns */

static tare_status take_turn(struct episodes *x, struct played *p, const struct episode_act *act, struct err *e)
{
    const struct decoding d = {x->tokenizer, x->model, &x->text};
    const int64_t n = act->n - act->begin;
    tare_text text;
    arena_reset(&x->text);
    TRY(rollout_completion_text(&d, (struct completion_ids){act->ids + act->begin, n, FINISH_STOP}, &text, e));
    TRY(plugin_episode_step(&p->episode, text, e));
    p->reward[act->turn] = p->episode.reward;
    return check_text_size(x, &p->episode, e);
}

/* The sampler's question after a turn (rollout.h). */
static tare_status next_text(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *e)
{
    struct episodes *x = ctx;
    struct played *p = &x->played[act->at];
    if (take_turn(x, p, act, e))
        return err_prefix(e, "%s, sample %lld, turn %lld", p->row->where, (long long)act->sample, (long long)act->turn + 1);
    out->what = EPISODE_END;
    if (p->episode.end || (x->config->max_turns && act->turn + 1 >= x->config->max_turns)) return TARE_OK;
    TRY(begin_turn(p, e));
    x->ids.n = 0;
    if (encode_observation(x, p, act->ids[act->n - 1], &x->ids, e))
        return err_prefix(e, "%s, sample %lld, turn %lld", p->row->where, (long long)act->sample, (long long)act->turn + 1);
    *out = (struct episode_answer){.what = EPISODE_TEXT, .ids = x->ids.data, .n = x->ids.n};
    return TARE_OK;
}

tare_status episodes_columns(struct episodes *x, struct batch *own, struct arena *a, struct err *e)
{
    TRY(arena_new(a, &own->turn_reward, own->n_turns, e));
    TRY(arena_new(a, &own->turn_state, own->n_turns, e));
    TRY(arena_new(a, &own->episode_verdict, own->n_rollouts, e));
    for (int64_t i = 0; i < own->n_rollouts; i++) {
        const struct played *p = &x->played[i];
        const int64_t first = own->turn_begin[i], n = own->turn_begin[i + 1] - first;
        for (int64_t u = 0; u < n; u++) {
            own->turn_reward[first + u] = u < p->n ? p->reward[u] : 0;
            own->turn_state[first + u] = u < p->n ? p->state[u] : -1;
        }
        own->episode_verdict[i] = p->episode.end ? p->episode.verdict : 0;
    }
    return TARE_OK;
}
