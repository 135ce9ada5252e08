/* tare data check FILE ...: prints a line for each row that cannot be trained on, and a summary;
 * write=OUT writes the other rows. tare data show CONFIG: prints prompts as the model reads them
 * (data_show.c). */
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "batch/verdict.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "cli/data_show.h"
#include "data/choices.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/overlap.h"
#include "data/prompt.h"
#include "data/tokenizer.h"
#include "settle/settle.h"
#include "verify/rows.h"
#include "verify/verify.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const char data_usage[] =
    "usage: tare data check FILE ... [verifier=NAME[,parameter=value...]] [model=FOLDER max_tokens=N max_prompt_tokens=N]\n"
    "                           [against=FILE ...] [write=OUT] [data.KEY=VALUE ...]\n"
    "       tare data show CONFIG [rows=N] [set=train|eval] [section.key=value ...]\n"
    "FILE may be a list with commas, a pattern ('part-?.jsonl') or a built-in data set (builtin:arithmetic/train), as in data.train.\n"
    "check writes {\"where\",\"id\",\"reason\"} for every invalid or duplicate row, then the number of rows for each reason. Options\n"
    "report more kinds of rows, or write the valid ones to a file:\n"
    "  verifier=NAME            rows with an answer that the verifier cannot read, or does not accept as a completion; for\n"
    "                           verifiers without an answer (ifeval, json, ...), rows with fields that they cannot read\n"
    "  model=FOLDER max_tokens=N   rows with a completion of more than N tokens, including the end-of-sequence token\n"
    "  model=FOLDER max_prompt_tokens=N   rows with a prompt of more than N tokens, as rollout.max_prompt_tokens counts them; data.prompt,\n"
    "                           data.system, data.suffix and data.chat_template are as in a configuration\n"
    "  against=FILE             rows with a question of that file: the first 80 letters and digits are equal in lower case\n"
    "  write=OUT                write the valid rows to OUT, unchanged\n"
    "Exit status: 1 if there are invalid rows, 0 if all rows are valid or write= is given.\n"
    "show writes {\"where\",\"id\",\"prompt\",\"tokens\",\"answer\"} for the first N rows (default 3) of data.train or data.eval.\n"
    "prompt is the text that the model reads, with chat template, system message and suffix. CONFIG may be the folder of a run.\n";

enum { REASONS = 32, ORDERED_SHOWN = 20 };

/* Number of rows for each reason; reasons after the first few are counted together. */
struct reasons {
    struct {
        char text[256], kind[256]; /* of the first row; without what differs between rows */
        int64_t n;
    } at[REASONS];
    int n;
    int64_t others;
};

struct checker {
    struct verify *verify; /* NULL: answers are not checked */
    const char *verifier;
    struct tokenizer *tokenizer;       /* NULL: lengths are not checked */
    struct prompts *prompts;           /* NULL: those of prompts are not */
    struct config config;              /* how prompts are written */
    int64_t max_tokens, prompt_tokens; /* 0: not checked */
    struct overlap overlap;
    struct token_ids ids;
    struct str kept; /* rows for write=OUT */
    bool keep;
    struct reasons reasons;
    int64_t ordered; /* rows whose options cannot all change places */
};

/* Removes numbers, and of duplicates the place of the first one, so that "the prompt has 3031
 * tokens" and "the prompt has 412 tokens" are one kind. */
static void kind_of(const char *reason, char kind[256])
{
    const char *end = !strncmp(reason, "duplicate ", 10) ? strstr(reason, ", first in ") : NULL;
    if (!strncmp(reason, "the question is in an evaluation set", 36)) end = reason + 36;
    size_t n = 0;
    for (const char *p = reason; *p && p != end; p++) {
        const bool digit = *p >= '0' && *p <= '9';
        if (!digit || !n || kind[n - 1] != '#') kind[n++] = (char)(digit ? '#' : *p);
    }
    kind[n] = 0;
}

static void count_reason(struct reasons *r, const char *reason)
{
    char kind[256];
    int i = 0;
    kind_of(reason, kind);
    while (i < r->n && strcmp(r->at[i].kind, kind) != 0) i++;
    if (i == REASONS) {
        r->others++;
        return;
    }
    if (i == r->n) {
        snprintf(r->at[i].text, sizeof r->at[i].text, "%s", reason);
        memcpy(r->at[r->n++].kind, kind, sizeof kind);
    }
    r->at[i].n++;
}

static tare_status report_row(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    struct checker *k = ctx;
    OWNED(json_decrefp) json_t *out = json_pack("{s:s, s:s, s:s}", "where", where, "id", id, "reason", reason);
    OWNED(str_free) struct str line = {0};
    if (!out) FAIL(e, TARE_E_INVALID, "%s: row cannot be reported: %s", where, reason);
    TRY(json_print(out, &line, e));
    count_reason(&k->reasons, reason);
    if (puts(line.data) < 0) FAIL(e, TARE_E_IO, "standard output cannot be written: %s", strerror(errno));
    return TARE_OK;
}

/* ---------------------------------------------------------------- the checks of one row */

/* Turns the error of an unreadable row into a reason; any other error ends the check. */
static tare_status as_reason(tare_status s, char *reason, struct err *e)
{
    if (s != TARE_E_CONFIG && s != TARE_E_INVALID) return s;
    const char *const place =
        /* the report contains the place */
        strncmp(e->message, "row ", 4) ? NULL : strstr(e->message, ", sample 0: ");
    snprintf(reason, 256, "%.255s", place ? place + strlen(", sample 0: ") : e->message);
    /* the limit may cut a character */
    const int64_t broken = str_utf8_error(reason, (int64_t)strlen(reason));
    if (broken) reason[broken - 1] = 0;
    *e = (struct err){0};
    return TARE_OK;
}

/* Verifies the answer as a completion: in \boxed{}, as prompts ask for it, and as it is. One of the
 * two must be correct. */
static tare_status try_answer(struct checker *k, const struct row *row, char *reason, struct err *e)
{
    OWNED(str_free) struct str boxed = {0};
    TRY(str_add(&boxed, "\\boxed{", -1, e));
    TRY(str_add(&boxed, row->answer.data, row->answer.size, e));
    TRY(str_add(&boxed, "}", 1, e));
    const tare_text forms[] = {{boxed.data, boxed.size}, row->answer};
    const char *verdict = NULL;
    for (int i = 0; i < 2; i++) {
        struct verify_item item = {.prompt = row->question,
                                   .completion = forms[i],
                                   .answer = row->answer,
                                   .row = row->json,
                                   .name = row->id,
                                   .uid = row->uid};
        TRY(verify_items(k->verify, &item, 1, (struct verify_parts){0}, e));
        if (item.verdict == TARE_VERDICT_CORRECT) return TARE_OK;
        verdict = verdict_name(item.verdict);
    }
    if (!strcmp(verdict, "unparsable") || !strcmp(verdict, "no_answer"))
        snprintf(reason, 256, "the verifier %s cannot read the answer (%s), so no completion can be correct", k->verifier, verdict);
    else
        snprintf(reason, 256, "the verifier %s rejects the answer itself as a completion (%s), with and without \\boxed{}",
                 k->verifier, verdict);
    return TARE_OK;
}

static tare_status check_answer(struct checker *k, const struct row *row, char *reason, struct err *e)
{
    const enum row_answer use = k->verify ? verify_row_answer(k->verify, 0) : ROW_ANSWER_COMPARED;
    if (use == ROW_ANSWER_COMPARED && !row->answer.size && !row->completion.data && !row->parts)
        snprintf(
            reason, 256, "\"answer\" is missing or empty%s",
            k->verify
                ? ", and the verifier compares with it"
                : "; verifier=NAME checks if that verifier needs one (tools/to_jsonl.py reads answers from fields of other names)");
    else if (k->verify && use == ROW_ANSWER_UNUSED)
        return as_reason(verify_try_row(k->verify, row, e), reason, e);
    else if (k->verify && row->answer.size)
        return use == ROW_ANSWER_UNKNOWN ? try_answer(k, row, reason, e) : as_reason(try_answer(k, row, reason, e), reason, e);
    return TARE_OK;
}

static tare_status check_length(struct checker *k, const struct row *row, char *reason, struct err *e)
{
    if (!k->max_tokens || !row->completion.data) return TARE_OK;
    k->ids.n = 0;
    TRY(tokenizer_encode(k->tokenizer, row->completion.data, row->completion.size, &k->ids, e));
    if (k->ids.n + 1 > k->max_tokens)
        snprintf(reason, 256, "the completion has %lld tokens; at most %lld are allowed", (long long)k->ids.n + 1,
                 (long long)k->max_tokens);
    return TARE_OK;
}

/* A row that the template refuses is a reason, too. */
static tare_status check_prompt(struct checker *k, const struct row *row, char *reason, struct err *e)
{
    if (!k->prompts) return TARE_OK;
    k->ids.n = 0;
    const tare_status status = prompts_encode(k->prompts, row, &k->ids, e);
    if (status) return as_reason(status, reason, e);
    if (k->ids.n > k->prompt_tokens)
        snprintf(reason, 256, "the prompt has %lld tokens; at most %lld are allowed", (long long)k->ids.n,
                 (long long)k->prompt_tokens);
    return TARE_OK;
}

static tare_status check_overlap(struct checker *k, const struct row *row, char *reason, struct err *e)
{
    const char *name;
    TRY(overlap_find(&k->overlap, row->question, &name, e));
    if (name) snprintf(reason, 256, "the question is in an evaluation set: %.200s", name);
    return TARE_OK;
}

/* Names the rows whose options data.permute_choices leaves in their places; they are valid. */
static void note_order(struct checker *k, const struct row *row)
{
    const char *why = NULL;
    if (!row->n_choices || row->messages.data || choices_movable(row, &why) == row->n_choices) return;
    if (k->ordered++ < ORDERED_SHOWN) log_info("%s: the options are not all permuted: %s", row->where, why);
}

static tare_status check_valid_row(void *ctx, const struct row *row, char *reason, struct err *e)
{
    struct checker *k = ctx;
    TRY(check_overlap(k, row, reason, e));
    if (!*reason) TRY(check_prompt(k, row, reason, e));
    if (!*reason) TRY(check_length(k, row, reason, e));
    if (!*reason) TRY(check_answer(k, row, reason, e));
    if (!*reason) note_order(k, row);
    if (*reason || !k->keep) return TARE_OK;
    TRY(str_add(&k->kept, row->json.data, row->json.size, e));
    return str_add(&k->kept, "\n", 1, e);
}

/* ---------------------------------------------------------------- command line */

struct arguments {
    struct str files; /* separated by commas */
    const char *verifier, *model, *max_tokens, *max_prompt_tokens, *write;
    const char *against[64], *keys[16];
    int n_against, n_keys;
};

static bool read_option(const char *argument, const char *key, const char **value)
{
    const size_t n = strlen(key);
    if (strncmp(argument, key, n) || argument[n] != '=') return false;
    *value = argument + n + 1;
    return true;
}

/* A built-in data set has keys of its own ("?rows=40"), and a file's name may hold any sign. */
static bool is_source(const char *argument)
{
    return !strncmp(argument, "builtin:", 8) || fs_exists(argument);
}

/* Returns false without an error in e if the arguments are invalid. */
static bool read_data_arguments(int argc, char **argv, struct arguments *a, struct err *e)
{
    *a = (struct arguments){0};
    for (int i = 2; i < argc; i++) {
        const char *against = NULL;
        if (read_option(argv[i], "verifier", &a->verifier) || read_option(argv[i], "model", &a->model) ||
            read_option(argv[i], "max_tokens", &a->max_tokens) || read_option(argv[i], "write", &a->write) ||
            read_option(argv[i], "max_prompt_tokens", &a->max_prompt_tokens))
            continue;
        if (read_option(argv[i], "against", &against)) {
            if (a->n_against == (int)(sizeof a->against / sizeof *a->against)) return false;
            a->against[a->n_against++] = against;
        } else if (!strncmp(argv[i], "data.", 5) && strchr(argv[i], '=')) {
            if (a->n_keys == (int)(sizeof a->keys / sizeof *a->keys)) return false;
            a->keys[a->n_keys++] = argv[i];
        } else if ((strchr(argv[i], '=') && !is_source(argv[i])) ||
                   str_addf(&a->files, e, "%s%s", a->files.size ? "," : "", argv[i])) {
            return false;
        }
    }
    if (a->n_keys && !a->max_prompt_tokens)
        return err_set(e, TARE_E_CONFIG, __FILE__, __LINE__, "%s has no effect without model=FOLDER max_prompt_tokens=N",
                       a->keys[0]),
               false;
    return a->files.size && !a->model == !(a->max_tokens || a->max_prompt_tokens);
}

/* Opens a verifier from its name and parameters: "math,timeout=1". */
static tare_status open_verifier(struct checker *k, const char *text, struct arena *arena, struct err *e)
{
    char *copy, *rest = NULL;
    const char *parameters[32];
    int64_t n = 0;
    TRY(arena_strdup(arena, text, -1, &copy, e));
    k->verifier = strtok_r(copy, ",", &rest);
    if (!k->verifier) FAIL(e, TARE_E_CONFIG, "verifier= must name a verifier, for example verifier=math");
    for (char *word; n < 32 && (word = strtok_r(NULL, ",", &rest));) parameters[n++] = word;
    const struct plugin *p;
    const struct config_param *settings = NULL;
    const struct verify_options options = {.workers = 1, .timeout = 10, .max_crash_share = 1};
    const struct plugin_env env = {0};
    TRY(plugin_open(k->verifier, TARE_KIND_VERIFIER, NULL, &p, e));
    if (n) TRY(plugin_settings(p, (struct plugin_words){parameters, n}, NULL, arena, &settings, e));
    TRY(verify_new(&options, &k->verify, e));
    return verify_add(k->verify, &(struct verify_use){.plugin = k->verifier, .weight = 1}, NULL, settings, &env, e);
}

static tare_status read_limit(const char *key, const char *text, int64_t *out, struct err *e)
{
    if (!text) return TARE_OK;
    if (str_to_int(text, out, NULL) || *out < 1) FAIL(e, TARE_E_CONFIG, "%s = %s: must be a whole number of at least 1", key, text);
    return TARE_OK;
}

/* Reads the tokenizer, and the chat template if prompts are counted. MODEL may be a run. */
static tare_status open_model(struct checker *k, const struct arguments *a, struct err *e)
{
    char folder[FS_PATH];
    TRY(settle_model(a->model, folder, e));
    TRY(checkpoint_check_texts(folder, e));
    TRY(tokenizer_load(folder, &k->tokenizer, e));
    if (!a->max_prompt_tokens) return TARE_OK;
    TRY(config_load(&k->config, NULL, a->keys, a->n_keys, e));
    return prompts_new(&k->config.data, folder, k->tokenizer, &k->prompts, e);
}

static tare_status open_checker(struct checker *k, const struct arguments *a, struct arena *arena, struct err *e)
{
    overlap_init(&k->overlap);
    k->keep = a->write != NULL;
    TRY(read_limit("max_tokens", a->max_tokens, &k->max_tokens, e));
    TRY(read_limit("max_prompt_tokens", a->max_prompt_tokens, &k->prompt_tokens, e));
    if (a->model) TRY(open_model(k, a, e));
    for (int i = 0; i < a->n_against; i++) TRY(overlap_add(&k->overlap, a->against[i], e));
    return a->verifier ? open_verifier(k, a->verifier, arena, e) : TARE_OK;
}

static void close_checker(struct checker *k)
{
    verify_close(k->verify);
    prompts_free(k->prompts);
    tokenizer_free(k->tokenizer);
    config_free(&k->config);
    overlap_free(&k->overlap);
    token_ids_free(&k->ids);
    str_free(&k->kept);
}

static void log_summary(const char *files, const struct dataset_check *c, struct checker *k, bool answers, const char *write)
{
    struct reasons *r = &k->reasons;
    const char *const unread = answers ? "" : "; the answers were not checked by a verifier (verifier=NAME)";
    for (int i = 0; i < r->n; i++) {
        const int64_t n = r->at[i].n;
        /* a duplicate's first row is another one for each */
        char *first = n > 1 && !strncmp(r->at[i].text, "duplicate ", 10) ? strstr(r->at[i].text, ", first in ") : NULL;
        if (first) *first = 0;
        log_info("%lld row%s: %s%s", (long long)n, n == 1 ? "" : "s", r->at[i].text,
                 n > 1 && strchr(r->at[i].kind, '#') ? " (the first of them)" : "");
    }
    if (r->others) log_info("%lld rows: other reasons", (long long)r->others);
    if (k->ordered > ORDERED_SHOWN)
        log_info("%lld rows: the options are not all permuted; the first %d are named above", (long long)k->ordered, ORDERED_SHOWN);
    if (c->bad)
        log_info("%s: %lld rows, %lld of them invalid, %lld valid%s", files, (long long)c->rows, (long long)c->bad,
                 (long long)(c->rows - c->bad), write ? "" : " (write=OUT writes those)");
    else
        log_info("%s: %lld row%s, no problems found%s", files, (long long)c->rows, c->rows == 1 ? "" : "s", unread);
    if (write) log_info("%s: %lld row%s written", write, (long long)(c->rows - c->bad), c->rows - c->bad == 1 ? "" : "s");
}

/* Refuses an output file that cannot be written, or that is one of the input files under any name.
 */
static tare_status check_write(const char *path, const char *list, struct arena *a, struct err *e)
{
    struct files files;
    struct stat to, from;
    if (fs_check_regular(path, false, e)) return err_prefix(e, "write");
    if (stat(path, &to) || !strncmp(list, "builtin:", 8)) return TARE_OK;
    TRY(files_of(list, a, &files, e));
    for (int64_t i = 0; i < files.n; i++)
        if (!stat(files.path[i], &from) && from.st_dev == to.st_dev && from.st_ino == to.st_ino)
            FAIL(e, TARE_E_CONFIG, "write=%s is the input file %s; name another file, otherwise the invalid rows would be lost",
                 path, files.path[i]);
    return TARE_OK;
}

static tare_status write_kept(const char *path, const struct str *kept, struct err *e)
{
    if (!kept->size) FAIL(e, TARE_E_INVALID, "%s: not written, because no row is valid", path);
    return fs_write_atomic(path, kept->data, kept->size, e);
}

static void arguments_free(struct arguments *a)
{
    str_free(&a->files);
}

static int check_data_files(int argc, char **argv)
{
    OWNED(arguments_free) struct arguments a = {0};
    struct err e = {0};
    if (!read_data_arguments(argc, argv, &a, &e)) return e.code ? cli_end(e.code, &e) : cli_usage(data_usage);
    OWNED(arena_free) struct arena arena = {0};
    OWNED(close_checker) struct checker k = {0};
    arena_init(&arena, "checker");
    struct dataset_check check = {.ctx = &k, .check = check_valid_row, .report = report_row};
    tare_status status = open_checker(&k, &a, &arena, &e);
    if (!status && a.write) status = check_write(a.write, a.files.data, &arena, &e);
    if (!status) status = dataset_check(a.files.data, &check, &e);
    if (!status) status = cli_flush(&e);
    if (!status && a.write) status = write_kept(a.write, &k.kept, &e);
    if (status)
        log_error(&e);
    else
        log_summary(a.files.data, &check, &k, a.verifier != NULL, a.write);
    if (status) return err_exit_code(status);
    return check.bad && !a.write ? 1 : 0;
}

static int show_rows(int argc, char **argv)
{
    struct err e = {0};
    const tare_status status = data_show(argc - 2, argv + 2, &e);
    if (status && !e.message[0]) return cli_usage(data_usage);
    return cli_end(status, &e);
}

int cmd_data(int argc, char **argv)
{
    if (argc >= 3 && !strcmp(argv[1], "check")) return check_data_files(argc, argv);
    if (argc >= 3 && !strcmp(argv[1], "show")) return show_rows(argc, argv);
    return cli_usage(data_usage);
}
