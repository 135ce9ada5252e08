/* libFuzzer target: saved states of the built-in plugins that have one, passed to load through
 * the ABI, as `tare plugin check` passes damaged ones. The first byte chooses the plugin, the
 * second one a parameter with a value other than its default. If the third byte is even, the
 * rest is the state; if it is odd, the rest is a list of changes to the state of an instance in
 * use.
 *
 * An accepted state can be saved, and the saved state is accepted and saved again to the same
 * bytes. When a plugin refuses a state, the instance keeps its previous state. Either way the
 * instance stays valid: it describes itself as JSON, performs its task, and is destroyed without
 * a leak. */
#include "bytes.h"
#include "plugin/check/trial.h"

#include "base/json.h"
#include "base/log.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PROMPTS = 6, SIZE = 4, TEXTS = 4, MOST = 64, MOST_DIM = 1 << 14 };
#define COUNT(LIST) (sizeof(LIST) / sizeof *(LIST))

/* The inputs in the corpus contain these numbers, so new plugins come at the end. */
static const char *const NAMES[] = {"bv_beta", "bv_blend",     "eb_blend", "krpo",   "n_eff",  "naive",
                                    "rae",     "sigma_hist",   "spo",      "gfpo",   "mix",    "difficulty",
                                    "replay",  "spo_priority", "field",    "hashed", "prompt", "bv_state"};
static const struct plugin *stateful[COUNT(NAMES)];

/* ---- set up */

static tare_status take_plugin(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    (void)ctx, (void)path, (void)why;
    if (!p || !p->head->load) return TARE_OK;
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        if (strcmp(NAMES[i], p->desc.name) != 0) continue;
        stateful[i] = p;
        return TARE_OK;
    }
    fprintf(stderr, "%s %s has a state and is not in the list of fuzz_plugin_state.c\n", plugin_kind_name(p->desc.kind),
            p->desc.name);
    abort();
}

static void begin(void)
{
    if (!getenv("TARE_PLUGIN_PATH")) setenv("TARE_PLUGIN_PATH", FUZZ_PLUGINS, 1);
    log_set_level(LOG_NONE);
    if (plugin_list(NULL, take_plugin, NULL, NULL)) abort();
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        if (stateful[i]) continue;
        fprintf(stderr, "%s is in the list of fuzz_plugin_state.c, but no plugin of this build has this name and a state\n",
                NAMES[i]);
        abort();
    }
}

/* ---- parameters */

/* Chooses the defaults except for one parameter: the ends of its range if they are small, its
 * choices, yes and no. */
static void choose_values(struct check *c, int how)
{
    struct err e = {0};
    const struct plugin *p = c->plugin;
    const struct config_param *settings = NULL;
    const char *given = "field=subject";
    tare_value *values;
    if (!strcmp(p->desc.name, "field") && plugin_settings(p, (struct plugin_words){&given, 1}, NULL, &c->arena, &settings, &e))
        abort();
    if (plugin_params(p, settings, &c->arena, &c->values, &e)) abort();
    if (!how || !p->desc.n_params) return;
    const uint32_t k = (uint32_t)(how - 1) / 3 % p->desc.n_params;
    const tare_param *q = &p->params[k];
    const int end = (how - 1) % 3;
    const bool bounded = q->flags & TARE_PARAM_MIN && q->flags & TARE_PARAM_MAX && q->min < q->max;
    if (arena_new(&c->arena, &values, p->desc.n_params, &e)) abort();
    memcpy(values, c->values, p->desc.n_params * sizeof *values);
    int64_t n = 0;
    if (q->type == TARE_PARAM_BOOL) {
        values[k].i = !values[k].i;
    } else if (q->type == TARE_PARAM_CHOICE) {
        while (q->choices[n]) n++;
        values[k].i = (values[k].i + 1 + end) % n;
    } else if (q->type == TARE_PARAM_INT && bounded) {
        const int64_t low = (int64_t)q->min + (q->flags & TARE_PARAM_ABOVE_MIN ? 1 : 0),
                      high = q->max > MOST ? MOST : (int64_t)q->max;
        values[k].i = end == 0 ? low : end == 1 && high > low ? high : low + (high > low);
    } else if (q->type == TARE_PARAM_FLOAT && bounded && end < 2 &&
               !(q->flags & (end ? TARE_PARAM_BELOW_MAX : TARE_PARAM_ABOVE_MIN))) {
        values[k].f = end ? q->max : q->min;
    }
    c->values = values;
}

/* ---- the task of each kind */

static void use_estimator(struct check *c, struct plugin_instance *i)
{
    struct trial t = {0};
    struct err e = {0};
    if (trial_batch(c, TRIAL_MIXED, PROMPTS, &t.b, &e)) abort();
    /* A state of huge numbers may give results that are refused. */
    if (!trial_run(c, i, &t, &e)) (void)trial_apply(i, &t, &e);
}

/* The columns that a curriculum may want of groups. */
struct groups {
    int64_t row[PROMPTS], rollouts[PROMPTS], begin[PROMPTS + 1], turn[PROMPTS * SIZE + 1], length[PROMPTS * SIZE];
    int64_t token[PROMPTS * SIZE + 1];
    uint8_t sampled[PROMPTS * SIZE * 5];
    uint64_t uid[PROMPTS];
    double reward[PROMPTS * SIZE], field[PROMPTS];
    int32_t verdict[PROMPTS * SIZE];
    uint8_t finish[PROMPTS * SIZE], fate[PROMPTS * SIZE];
    tare_column column[TARE_LIMIT_WANTS];
};

static tare_batch show_groups(const struct plugin_instance *i, struct groups *g, int64_t step, bool late)
{
    const int64_t n = g->begin[PROMPTS];
    for (uint32_t k = 0; k < i->plugin->desc.n_wants; k++) {
        tare_column *c = &g->column[k];
        *c = (tare_column){.n = i->plugin->wants[k].axis == TARE_AXIS_GROUP ? PROMPTS : n, .width = 1};
        if (!i->wanted[k]) continue;
        switch (i->plugin->column[k]) {
        case COLUMN_ROW_INDEX:
            c->data = g->row;
            break;
        case COLUMN_ROW_FIELD:
            if (i->plugin->wants[k].axis == TARE_AXIS_GROUP) c->data = g->field;
            break;
        case COLUMN_GROUP_VERDICT:
            c->data = g->verdict;
            break;
        case COLUMN_GROUP_FINISH:
            c->data = g->finish;
            break;
        case COLUMN_FATE:
            c->data = late ? g->fate : NULL;
            break;
        }
    }
    return (tare_batch){.struct_size = sizeof(tare_batch),
                        .step = step,
                        .n_groups = PROMPTS,
                        .n_rollouts = n,
                        .n_turns = n,
                        .n_tokens = g->token[n],
                        .group_begin = g->begin,
                        .turn_begin = g->turn,
                        .token_begin = g->token,
                        .act_begin = g->token,
                        .act_end = g->token + 1,
                        .sampled = g->sampled,
                        .length = g->length,
                        .prompt_uid = g->uid,
                        .reward = g->reward,
                        .column = g->column};
}

static bool choose_rows(const struct plugin_instance *i, struct groups *g, int64_t step)
{
    int64_t ordered[PROMPTS], sum = 0;
    struct plugin_call call;
    struct err e = {0};
    const tare_curriculum *f = i->plugin->curriculum;
    for (int64_t k = 0; k < PROMPTS; k++) {
        ordered[k] = (step * PROMPTS + k) % CHECK_DATASET.n_rows;
        g->row[k] = f->next ? -1 : ordered[k];
        g->rollouts[k] = SIZE;
    }
    const tare_draw d = {.struct_size = sizeof d, .step = step, .n = PROMPTS, .cursor = step * PROMPTS, .ordered = ordered};
    tare_choice out = {.struct_size = sizeof out, .row = g->row, .n_rollouts = g->rollouts};
    if (f->next) plugin_enter(&call);
    if (f->next && plugin_leave(&call, i, "next", step, f->next(i->self, &d, &out, &call.error), &e)) return false;
    for (int64_t k = 0; k < PROMPTS; k++) {
        sum += g->rollouts[k];
        if (g->row[k] < 0 || g->row[k] >= CHECK_DATASET.n_rows || g->rollouts[k] < 1 || sum > PROMPTS * SIZE) abort();
        g->begin[k + 1] = sum;
        g->uid[k] = CHECK_DATASET.prompt_uid[g->row[k]];
        g->field[k] = (double)(g->row[k] % 5);
    }
    return true;
}

static void use_curriculum(struct plugin_instance *i, int64_t step)
{
    struct groups g = {0};
    struct plugin_call call;
    struct err e = {0};
    const tare_curriculum *f = i->plugin->curriculum;
    if (!choose_rows(i, &g, step)) return;
    for (int64_t k = 0; k < g.begin[PROMPTS]; k++) {
        g.reward[k] = (double)((k * 7 + step) % 3) / 2;
        g.verdict[k] = k % 11 == 5 ? TARE_VERDICT_TIMED_OUT : g.reward[k] > 0.75 ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        g.finish[k] = TARE_FINISH_STOP;
        g.length[k] = 1 + k % 5;
        g.turn[k + 1] = k + 1;
        g.token[k + 1] = g.token[k] + g.length[k];
        memset(g.sampled + g.token[k], 1, (size_t)g.length[k]);
    }
    tare_batch b = show_groups(i, &g, step, false);
    tare_kept kept = {.struct_size = sizeof kept, .fate = g.fate};
    if (f->keep) plugin_enter(&call);
    if (f->keep && plugin_leave(&call, i, "keep", step, f->keep(i->self, &b, &kept, &call.error), &e)) return;
    b = show_groups(i, &g, step, true);
    if (f->apply) plugin_enter(&call);
    if (f->apply) (void)plugin_leave(&call, i, "apply", step, f->apply(i->self, &b, &call.error), &e);
}

static const tare_text ROWS[TEXTS] = {{"{\"question\":\"a\",\"subject\":\"x\"}", 30},
                                      {"{\"question\":\"b\",\"subject\":\"y\"}", 30},
                                      {"{\"question\":\"c\"}", 16},
                                      {"{\"question\":\"a\",\"subject\":\"\\u0000\"}", 35}};

static void use_clusterer(struct plugin_instance *i)
{
    static float numbers[TEXTS * MOST_DIM], distance[TEXTS];
    int32_t cluster[TEXTS];
    struct err e = {0};
    const int64_t dim = i->sizes.dim;
    if (dim > MOST_DIM) return;
    if (i->plugin->desc.kind == TARE_KIND_ENCODER)
        (void)plugin_encode(i, ROWS, TEXTS, numbers, &e);
    else
        (void)plugin_assign(i, &(struct plugin_assignment){dim ? numbers : NULL, ROWS, TEXTS, cluster, distance}, &e);
}

static void use(struct check *c, struct plugin_instance *i, int64_t step)
{
    struct err e = {0};
    struct str text = {0};
    const struct plugin *p = i->plugin;
    json_t *state = NULL;
    if (p->head->describe && !plugin_describe_state(i, &text, &e)) {
        if (json_parse(text.data, text.size, "describe", &state, &e)) {
            fprintf(stderr, "%s describes itself as %s\n", p->desc.name, text.data);
            abort();
        }
        json_decref(state);
    }
    str_free(&text);
    if (p->desc.kind == TARE_KIND_ESTIMATOR)
        use_estimator(c, i);
    else if (p->desc.kind == TARE_KIND_CURRICULUM)
        use_curriculum(i, step);
    else
        use_clusterer(i);
}

/* ---- the state */

static struct plugin_instance *instance(struct check *c)
{
    struct plugin_instance *i = NULL;
    struct err e = {0};
    if (!check_instance(c, &i, &e)) return i;
    if (!*e.message) abort();
    return NULL; /* this value of the parameter is invalid with the others */
}

static void save(const struct plugin_instance *i, struct str *out)
{
    struct err e = {0};
    if (!plugin_save_raw(i, out, &e)) return;
    fprintf(stderr, "it cannot be saved: %s\n", e.message);
    abort();
}

/* Returns the state of an instance in use. */
static void good_state(struct check *c, int uses, struct str *out)
{
    struct plugin_instance *i = instance(c);
    struct err e = {0};
    if (!i) return;
    if (c->plugin->desc.kind == TARE_KIND_ENCODER || c->plugin->desc.kind == TARE_KIND_CODEBOOK)
        if (uses && plugin_fit(i, ROWS, TEXTS, &e)) abort();
    for (int step = 0; step < uses; step++) use(c, i, step);
    save(i, out);
    plugin_destroy(i);
}

static void change_state(struct str *s, struct bytes *b)
{
    static const double REALS[] = {0, 1, -1, 0.5, 1e308, -1e308, 5e-324, 1e-300, (double)INFINITY, (double)NAN, 3, -0.0};
    while (b->at < b->end) {
        const int what = byte(b) % 6;
        const int64_t at = s->size ? (byte(b) * 256 + byte(b)) % s->size : 0, word = at / 8 * 8;
        size_t n;
        const char *raw;
        int64_t x;
        if (what == 0) {
            s->size = at;
        } else if (what == 1 && s->size) {
            s->data[at] = (char)byte(b);
        } else if (what == 2) {
            x = bytes_number(b);
            if (word + 8 <= s->size) memcpy(s->data + word, &x, 8);
        } else if (what == 3) {
            const double *real = &REALS[(size_t)byte(b) % COUNT(REALS)];
            if (word + 8 <= s->size) memcpy(s->data + word, real, 8);
        } else if (what == 4) {
            raw = bytes_take(b, (size_t)byte(b) % 64, &n);
            if (n && str_add(s, raw, (int64_t)n, NULL)) abort();
        } else if (what == 5 && word + 32 <= s->size) { /* an entry a second time */
            memcpy(s->data + word + 16, s->data + word, 16);
        }
    }
}

/* Checks that saving, loading and saving again gives the same bytes. */
static void look_at_saved(struct check *c, const struct plugin_instance *i)
{
    struct str one = {0}, two = {0};
    struct err e = {0};
    struct plugin_instance *j = instance(c);
    save(i, &one);
    if (!j || plugin_load_raw(j, one.data ? one.data : "", one.size, "what was saved", &e)) {
        fprintf(stderr, "%s: %s\n", c->plugin->desc.name, e.message);
        abort();
    }
    save(j, &two);
    if (one.size != two.size || (one.size && memcmp(one.data, two.data, (size_t)one.size) != 0)) {
        fprintf(stderr, "%s: saved and loaded, the state differs\n", c->plugin->desc.name);
        abort();
    }
    plugin_destroy(j);
    str_free(&one);
    str_free(&two);
}

static void load(struct check *c, const struct str *state, bool used)
{
    struct err e = {0};
    struct str before = {0}, after = {0};
    struct plugin_instance *i = instance(c);
    if (!i) return;
    for (int step = 0; step < 2 && used; step++) use(c, i, step);
    save(i, &before);
    const tare_status status = plugin_load_raw(i, state->data ? state->data : "", state->size, "a state", &e);
    if (status && (e.code != status || !*e.message)) abort();
    /* The plugin accepted more than the host allows. */
    if (status && !strstr(e.message, "bytes of its state")) {
        save(i, &after);
        if (before.size != after.size || (after.size && memcmp(before.data, after.data, (size_t)after.size) != 0)) {
            fprintf(stderr, "%s: refused (%s), but the state has changed\n", c->plugin->desc.name, e.message);
            abort();
        }
    } else if (!status) {
        look_at_saved(c, i);
    }
    str_free(&before);
    str_free(&after);
    for (int step = 2; step < 4; step++) use(c, i, step);
    plugin_destroy(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool begun;
    const struct check_options options = {.seed = 1};
    struct str state = {0};
    if (!begun) begin();
    begun = true;
    if (size < 3) return 0;
    struct bytes b = {data + 3, data + size};
    struct check c = {.options = &options, .key = rng_key(1, RNG_PLUGIN), .plugin = stateful[data[0] % COUNT(NAMES)]};
    arena_init(&c.arena, "fuzz");
    choose_values(&c, data[1]);
    if (data[2] & 1) {
        good_state(&c, data[2] >> 1 & 3, &state);
        change_state(&state, &b);
    } else if (b.at < b.end && str_add(&state, (const char *)b.at, b.end - b.at, NULL)) {
        abort();
    }
    load(&c, &state, data[2] & 8);
    str_free(&state);
    arena_free(&c.arena);
    return 0;
}
