/* tare env: lists, describes and checks environments, plays them in the terminal, and writes rows that
 * teach a model legal play. */
#include "base/json.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "episodes/calls.h"
#include "plugin/episode.h"
#include "plugin/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char env_usage[] =
    "usage: tare env list\n"
    "       tare env describe NAME [parameter=value ...]\n"
    "       tare env play NAME [--seed S] [parameter=value ...]\n"
    "       tare env demo NAME [--rows N] [--seed S] [--question TEXT] [parameter=value ...]\n"
    "       tare env check NAME [parameter=value ...]\n"
    "play: you are the policy. Each line of standard input is an act; end of input ends it. A tool is called by\n"
    "      <tool_call>{\"name\": NAME, \"arguments\": {...}}</tool_call>.\n"
    "demo writes rows for `tare sft`: episodes of legal acts drawn without regard to their worth, in \"parts\" of which only the\n"
    "acts are learnt. Such a model knows the format and not the game. --question: of every row (#).\n"
    "check is `tare plugin check`, with its options. NAME is a plugin on the search path, or a file.\n";

/* An episode still running after this many acts is an error of the environment. */
enum { MOST_ACTS = 100000 };

struct env_arguments {
    const char *name, *question;
    int64_t seed, rows;
    struct plugin_words words; /* parameters; compacted in argv */
};

/* An opened environment, in the middle of an episode. */
struct player {
    struct arena arena;
    struct plugin_instance *instance;
    struct plugin_episode episode;
};

static void player_close(struct player *p)
{
    plugin_episode_close(&p->episode);
    plugin_destroy(p->instance);
    arena_free(&p->arena);
}

static tare_status player_values(struct player *p, const struct env_arguments *a, const struct plugin **plugin,
                                 const tare_value **values, struct err *e)
{
    const struct config_param *settings;
    arena_init(&p->arena, "environment");
    TRY(plugin_open(a->name, TARE_KIND_ENVIRONMENT, NULL, plugin, e));
    TRY(plugin_settings(*plugin, a->words, NULL, &p->arena, &settings, e));
    return plugin_params(*plugin, settings, &p->arena, values, e);
}

static tare_status player_open(struct player *p, const struct env_arguments *a, struct err *e)
{
    const struct plugin *plugin;
    const tare_value *values;
    const struct plugin_env env = {.seed = (uint64_t)a->seed};
    TRY(player_values(p, a, &plugin, &values, e));
    TRY(plugin_create(plugin, values, 0, &env, &p->instance, e));
    return plugin_episode_open(p->instance, &p->episode, e);
}

static void two_words(struct rng_key key, uint64_t counter, uint64_t out[2])
{
    uint32_t word[4];
    rng_block(key, counter, 0, word);
    for (int k = 0; k < 2; k++) out[k] = (uint64_t)word[2 * k] << 32 | word[2 * k + 1];
}

/* Begins episode `row` of a seed. Its random words are those of counters 0 (task), 1 (noise) and, for
 * suggestions, 2 + turn. */
static tare_status player_reset(struct player *p, struct rng_key key, int64_t row, struct err *e)
{
    tare_episode episode = {.struct_size = sizeof episode, .prompt_uid = (uint64_t)row, .group = row};
    two_words(key, 0, episode.seed);
    two_words(key, 1, episode.noise);
    return plugin_episode_reset(&p->episode, &episode, e);
}

static struct rng_key episode_key(const struct env_arguments *a, int64_t row)
{
    return rng_derive(rng_key((uint64_t)a->seed, RNG_DATA), (uint64_t)row);
}

/* ---------------------------------------------------------------- list, describe */

static tare_status list_environment(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    struct err e = {0};
    (void)path, (void)why;
    if (!p || p->desc.kind != TARE_KIND_ENVIRONMENT) return TARE_OK;
    return str_addf(ctx, &e, "%-14s %s\n", p->desc.name, p->desc.summary);
}

static tare_status list_environments(struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(plugin_list(NULL, list_environment, &text, e));
    if (!text.size) log_warn("no environment found; set TARE_PLUGIN_PATH");
    return cli_show(&text, e);
}

static tare_status add_card(const struct plugin *p, const tare_value *values, struct str *out, struct err *e)
{
    OWNED(str_free) struct str card = {0};
    OWNED(json_decrefp) json_t *j = NULL;
    struct plugin_stream from = {.out = &card};
    const tare_stream stream = plugin_stream(&from);
    tare_error error = {.struct_size = sizeof error};
    const char *key;
    json_t *v;
    if (!p->environment->card) return TARE_OK;
    if (p->environment->card(values, &stream, &error))
        FAIL(e, TARE_E_PLUGIN, "environment %s: card: %s", p->desc.name, error.message);
    TRY(json_parse(card.data ? card.data : "", card.size, "card", &j, e));
    json_object_foreach(j, key, v)
    {
        if (json_is_string(v)) {
            TRY(str_addf(out, e, "  %s: %s\n", key, json_string_value(v)));
            continue;
        }
        TRY(str_addf(out, e, "  %s: ", key));
        TRY(json_print(v, out, e));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}

static tare_status describe_environment(const struct env_arguments *a, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    OWNED(player_close) struct player p = {0};
    const struct plugin *plugin;
    const tare_value *values;
    TRY(player_values(&p, a, &plugin, &values, e));
    TRY(plugin_describe(plugin, PLUGIN_TEXT, &text, e));
    TRY(add_card(plugin, values, &text, e));
    return cli_show(&text, e);
}

/* ---------------------------------------------------------------- play */

static tare_status show_line(const char *who, const struct str *said, struct err *e)
{
    OWNED(str_free) struct str line = {0};
    TRY(str_addf(&line, e, "%-13s", who));
    TRY(str_add(&line, said->data ? said->data : "", said->size, e));
    TRY(str_add(&line, "\n", 1, e));
    return cli_show(&line, e);
}

/* Reads an act, a line. In a terminal a prompt asks for it; elsewhere the act is repeated, so that the
 * output is the whole episode. *more: false at the end of input. */
static tare_status read_act(struct str *act, bool terminal, bool *more, struct err *e)
{
    OWNED(str_free) struct str ask = {0};
    int c = 0;
    str_clear(act);
    if (terminal) {
        TRY(str_addf(&ask, e, "%-13s", "act"));
        TRY(cli_show(&ask, e));
    }
    while ((c = getchar()) != EOF && c != '\n') TRY(str_add(act, &(char){(char)c}, 1, e));
    *more = c != EOF || act->size;
    if (ferror(stdin)) FAIL(e, TARE_E_IO, "standard input cannot be read");
    while (act->size && act->data[act->size - 1] == '\r') act->data[--act->size] = 0;
    return terminal || !*more ? TARE_OK : show_line("act", act, e);
}

static tare_status show_end(const struct plugin_episode *x, const char *how, struct err *e)
{
    OWNED(str_free) struct str line = {0};
    TRY(str_addf(&line, e, "%-13s%s after %lld act%s, reward %g%s", "end", how, (long long)x->turn, x->turn == 1 ? "" : "s",
                 x->total, x->note.size ? ": " : ""));
    TRY(str_add(&line, x->note.data ? x->note.data : "", x->note.size, e));
    TRY(str_add(&line, "\n", 1, e));
    return cli_show(&line, e);
}

/* Takes an act, whose tool calls are in the syntax of Hermes. */
static tare_status take_act(struct plugin_episode *x, tare_text text, struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    struct calls calls = {0};
    arena_init(&arena, "an act's calls");
    if (x->tool_list) TRY(calls_read((struct call_reader){CALLS_HERMES, false, x->tool_list}, text, &arena, &calls, e));
    return plugin_episode_step(x, (struct episode_text){text, calls.call, calls.n, calls.n_unparsed}, e);
}

static tare_status play_episode(struct player *p, struct err *e)
{
    OWNED(str_free) struct str act = {0};
    struct plugin_episode *x = &p->episode;
    const bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (x->tools.size) TRY(show_line("tools", &x->tools, e));
    for (bool more = true;;) {
        if (x->said.size) TRY(show_line("environment", &x->said, e));
        if (x->turn && !x->end && x->reward != 0) {
            OWNED(str_free) struct str line = {0};
            TRY(str_addf(&line, e, "%-13s%g\n", "reward", x->reward));
            TRY(cli_show(&line, e));
        }
        if (x->end) return show_end(x, x->end == TARE_EPISODE_DONE ? "done" : "cut short", e);
        TRY(read_act(&act, terminal, &more, e));
        if (!more) {
            if (terminal) puts("");
            return show_end(x, "no further act", e);
        }
        TRY(take_act(x, (tare_text){act.data ? act.data : "", act.size}, e));
    }
}

static tare_status play_environment(const struct env_arguments *a, struct err *e)
{
    OWNED(player_close) struct player p = {0};
    TRY(player_open(&p, a, e));
    TRY(player_reset(&p, episode_key(a, 0), 0, e));
    return play_episode(&p, e);
}

/* ---------------------------------------------------------------- demo */

/* Adds a part; an empty one that is not learnt is left out. */
static void add_part(json_t *parts, bool *bad, const struct str *text, bool loss)
{
    if (!text->size && !loss) return;
    json_add(parts, bad, json_pack("{s:s%, s:b}", "text", text->data ? text->data : "", (size_t)text->size, "loss", (int)loss));
}

/* Plays an episode of suggested acts. */
static tare_status play_suggestions(struct player *p, struct rng_key key, int64_t row, json_t *parts, bool *bad, struct err *e)
{
    OWNED(str_free) struct str act = {0};
    struct plugin_episode *x = &p->episode;
    TRY(player_reset(p, key, row, e));
    while (!x->end) {
        uint64_t draw[2];
        if (x->turn == MOST_ACTS)
            FAIL(e, TARE_E_PLUGIN, "environment %s: the episode has not ended after %d acts", p->instance->plugin->desc.name,
                 MOST_ACTS);
        add_part(parts, bad, &x->said, false);
        str_clear(&act);
        two_words(key, 2 + (uint64_t)x->turn, draw);
        TRY(plugin_episode_suggest(x, draw, &act, e));
        add_part(parts, bad, &act, true);
        TRY(plugin_episode_step(x, (struct episode_text){.text = {act.data ? act.data : "", act.size}}, e));
    }
    return TARE_OK;
}

static tare_status write_row(struct player *p, const struct env_arguments *a, int64_t row, struct str *line, struct err *e)
{
    char id[300];
    bool bad = false;
    OWNED(json_decrefp) json_t *parts = json_array(), *object = NULL;
    if (!parts) FAIL(e, TARE_E_NOMEM, "no memory for a row");
    TRY(play_suggestions(p, episode_key(a, row), row, parts, &bad, e));
    snprintf(id, sizeof id, "%.200s-%lld-%lld", p->instance->plugin->desc.name, (long long)a->seed, (long long)row + 1);
    if (!bad) object = json_pack("{s:s, s:s, s:O}", "id", id, "question", a->question, "parts", parts);
    if (!object) FAIL(e, TARE_E_NOMEM, "no memory for a row, or a text of it is not valid UTF-8");
    str_clear(line);
    TRY(json_print(object, line, e));
    TRY(str_add(line, "\n", 1, e));
    cli_add(line);
    return TARE_OK;
}

static tare_status write_demo(const struct env_arguments *a, struct err *e)
{
    OWNED(player_close) struct player p = {0};
    OWNED(str_free) struct str line = {0};
    TRY(player_open(&p, a, e));
    for (int64_t row = 0; row < a->rows; row++) TRY(write_row(&p, a, row, &line, e));
    return cli_flush(e);
}

/* ---------------------------------------------------------------- the verb */

/* `tare plugin check` of an environment. A name of another kind's plugin is refused. */
static int check_environment(int argc, char **argv)
{
    char found[4096];
    struct err e = {0};
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] == '-' || strpbrk(argv[i], "=/.")) continue;
        if (plugin_find(argv[i], TARE_KIND_ENVIRONMENT, NULL, found, &e)) return cli_end(e.code, &e);
        break;
    }
    return plugin_check_verb(argc, argv);
}

/* Reads the value of --rows and --seed. */
static bool take_number(const char *option, const char *text, int64_t least, int64_t *out)
{
    struct err e = {0};
    if (!str_to_int(text, out, &e) && *out >= least) return true;
    log_message(LOG_ERROR, "%s %s: must be a whole number of at least %lld", option, text, (long long)least);
    return false;
}

static bool parse_arguments(int argc, char **argv, struct env_arguments *a)
{
    const char **words = (const char **)(uintptr_t)argv;
    const bool demo = !strcmp(argv[1], "demo"), seeded = demo || !strcmp(argv[1], "play");
    for (int i = 2; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--seed") && seeded && next) {
            if (!take_number("--seed", argv[++i], 0, &a->seed)) return false;
        } else if (!strcmp(argv[i], "--rows") && demo && next) {
            if (!take_number("--rows", argv[++i], 1, &a->rows)) return false;
        } else if (!strcmp(argv[i], "--question") && demo && next) {
            a->question = argv[++i];
        } else if (argv[i][0] == '-' || (a->name && !strchr(argv[i], '='))) {
            cli_unexpected(argv[i], env_usage);
            return false;
        } else if (!a->name && !strchr(argv[i], '=')) {
            a->name = argv[i];
        } else {
            words[a->words.n++] = argv[i];
        }
    }
    a->words.at = words;
    if (a->name && *a->question) return true;
    if (a->name)
        log_message(LOG_ERROR, "--question: must not be empty");
    else
        cli_usage(env_usage);
    return false;
}

int cmd_env(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    struct env_arguments a = {.question = "#", .seed = 1, .rows = 1000};
    struct err e = {0};
    static const struct {
        const char *name;
        tare_status (*run)(const struct env_arguments *a, struct err *e);
    } VERBS_OF[] = {{"describe", describe_environment}, {"play", play_environment}, {"demo", write_demo}};
    if (!strcmp(what, "check")) return check_environment(argc, argv);
    if (!strcmp(what, "list") && argc == 2) return cli_end(list_environments(&e), &e);
    for (size_t k = 0; k < sizeof VERBS_OF / sizeof *VERBS_OF; k++) {
        if (strcmp(what, VERBS_OF[k].name)) continue;
        if (!parse_arguments(argc, argv, &a)) return 2;
        return cli_end(VERBS_OF[k].run(&a, &e), &e);
    }
    return cli_usage(env_usage);
}
