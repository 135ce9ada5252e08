/* libFuzzer target: `tare train` as a whole on a tiny model for two steps, the second of which
 * continues from the first one's checkpoint. The input is a list of changes to an otherwise
 * valid configuration, data set and model folder. Each run must end without a signal:
 * successfully, with files whose checksums match, or with a one-line reason; without a leak, an
 * open descriptor or a thread. Keys that start programs, write outside of the folder or ask for
 * more work are not changed. */
#define _GNU_SOURCE
#include "base/log.h"
#include "bytes.h"
#include "config/keys.h"
#include "json_change.h"

#include "base/fs.h"
#include "lab/replay/replay.h"
#include "loop/train.h"
#include "plugin/plugin.h"
#include "preflight/preflight.h"
#include "sft/sft.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHANGES = 12, FILES = 12, PLUGINS = 160, OVERRIDES = 40, OVERRIDE = 500, ROWS = 6 };
#define COUNT(LIST) (sizeof(LIST) / sizeof *(LIST))

static const char CONFIG[] =
    "[run]\nname = fuzz\nseed = 1\nthreads = 2\n[model]\npath = model\n[data]\ntrain = rows.jsonl\neval = rows.jsonl\nprompt = "
    "plain\n"
    "[rollout]\nprompts = 2\ngroup_size = 2\nmax_new_tokens = 3\n[verifier]\nplugins = exact\nworkers = 1\n[codebook]\nplugin = "
    "field\n"
    "[codebook.field]\nfield = subject\n[estimator]\nplugin = bv_blend\n[train]\nminibatch = 4\nlr = 1e-3\n[eval]\nsamples = 1\n";
static const char MAKE_MODEL[] = "[run]\ndir = sft\nseed = 1\nthreads = 2\n[model]\npath = none\ninit = qwen2\nhidden_size = "
                                 "8\nlayers = 1\nheads = 2\nkv_heads = 1\n"
                                 "intermediate_size = 16\ncontext = 64\n[data]\ntrain = builtin:arithmetic/phase1?rows=8\nprompt = "
                                 "plain\n[sft]\nsteps = 1\nbatch = 4\nout = base\n";
static const char *const ROW[ROWS] = {
    "{\"question\":\"1+1=\",\"answer\":\"2\",\"subject\":\"add\"}",
    "{\"question\":\"7-2=\",\"answer\":\"5\",\"subject\":\"sub\",\"level\":3}",
    "{\"question\":\"2*3=\",\"answer\":6,\"subject\":\"mul\",\"solution\":\"6\"}",
    "{\"prompt\":\"9+9=\",\"answer\":\"18\",\"subject\":\"add\",\"completion\":\"18\",\"reward\":1}",
    "{\"id\":\"e\",\"messages\":[{\"role\":\"user\",\"content\":\"3+4=\"}],\"answer\":\"7\",\"subject\":\"add\"}",
    "{\"question\":\"which?\",\"choices\":[\"1\",\"2\",\"3\"],\"answer\":\"B\",\"subject\":\"pick\"}"};
/* Settings that make the run end soon and stay in its folder. */
static const char *const FIXED[] = {"run.dir=run",     "run.plugins=",     "train.steps=2",           "checkpoint.every=1",
                                    "log.export=",     "dist.ranks=0",     "verifier.isolate=thread", "model.warm_start=",
                                    "log.level=error", "log.progress=none"};
/* Amounts of work: they get small values only. */
static const char *const WORK[] = {"rollout.prompts",  "rollout.group_size",  "rollout.refill_rounds", "rollout.batch",
                                   "train.epochs",     "eval.samples",        "eval.bootstrap",        "run.threads",
                                   "verifier.workers", "dist.gradient_shards"};
static const char *const TEXTS[] = {"",
                                    "model",
                                    "gone",
                                    "rows.jsonl",
                                    "rows.jsonl:0.5,rows.jsonl:0.5",
                                    "builtin:arithmetic/train?rows=5",
                                    "0",
                                    "1,2",
                                    "subject",
                                    "all-linear",
                                    "q_proj,v_proj",
                                    "config.ini",
                                    "none",
                                    "%s",
                                    "\xc3\xa4 \"x\"",
                                    "1e-3",
                                    "run"};
static const char *const REALS[] = {"0", "1", "0.5", "-1", "1e-9", "1e9", "1e308", "nan", "inf", "0.999999", "2", "1e-320"};
static const char *const LINES[] = {"",
                                    "{}",
                                    "[]",
                                    "{\"question\":1}",
                                    "{\"question\":\"\",\"answer\":\"\"}",
                                    "{\"question\":\"\\u0000\",\"answer\":\"x\"}",
                                    "{\"question\":\"x\",\"answer\":null}",
                                    "{\"question\":\"\\ud800\"}",
                                    "{\"messages\":[]}",
                                    "{\"question\":\"q\",\"question\":\"q\"}"};
/* Keys that start programs, read a model elsewhere, or are not built on every machine, where the
 * same input would have another meaning. */
static const char *const LEFT_OUT[] = {"command", "python", "code", "minilm", "math"};

static char folder[FS_PATH];
static struct model_file {
    char name[64];
    struct str text;
} files[FILES];
static int n_files;
static struct {
    const struct plugin *at[PLUGINS];
    int n;
} plugins;

struct job {
    struct str file[FILES]; /* of the model's folder; data NULL: the file does not exist */
    struct str rows;
    char text[OVERRIDES][OVERRIDE];
    const char *override[OVERRIDES];
    int64_t n;
};

static void add(struct str *out, const char *text, int64_t n)
{
    if (str_add(out, text, n, NULL)) abort();
}

/* ---- set up */

static void remove_folder(void)
{
    if (!chdir("/")) fs_remove_tree(folder, NULL);
}

/* Checks that a user's message is one line without control characters. */
static void look_at_message(void *ctx, enum log_level level, const char *text)
{
    (void)ctx, (void)level;
    for (const char *p = text; *p; p++)
        if (iscntrl((unsigned char)*p)) abort();
}

static tare_status take_plugin(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    (void)ctx, (void)path, (void)why;
    if (!p) abort();
    for (size_t i = 0; i < COUNT(LEFT_OUT); i++)
        if (!strcmp(p->desc.name, LEFT_OUT[i])) return TARE_OK;
    if (plugins.n == PLUGINS) abort();
    plugins.at[plugins.n++] = p;
    return TARE_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct plugin *const *x = a, *const *y = b;
    const int order = strcmp((*x)->desc.name, (*y)->desc.name);
    return order ? order : (*x)->desc.kind - (*y)->desc.kind;
}

static int is_file(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static void base_model(void)
{
    struct config c;
    struct err e = {0};
    struct fs_list list;
    char path[FS_PATH];
    if (fs_write_atomic("sft.ini", MAKE_MODEL, sizeof MAKE_MODEL - 1, &e) || config_load(&c, "sft.ini", NULL, 0, &e) ||
        sft_run(&c, SFT_NEW, NULL, &e) || fs_list("base", is_file, &list, &e)) {
        fprintf(stderr, "the model cannot be made: %s\n", e.message);
        abort();
    }
    config_free(&c);
    for (n_files = 0; n_files < list.n && n_files < FILES; n_files++) {
        struct model_file *f = &files[n_files];
        snprintf(f->name, sizeof f->name, "%.60s", list.entry[n_files]->d_name);
        if (fs_join(path, "base", f->name, &e) || fs_read_all(path, &f->text, &e)) abort();
    }
    if (n_files < list.n) abort();
    fs_list_free(&list);
}

static bool begin(void)
{
    struct err e = {0};
    if (!getenv("TARE_PLUGIN_PATH")) setenv("TARE_PLUGIN_PATH", FUZZ_PLUGINS, 1);
    log_set_level(LOG_WARN);
    log_set_sink(look_at_message, NULL);
    if (fs_temporary(folder, "tare-fuzz", &e) || !mkdtemp(folder) || chdir(folder)) return false;
    atexit(remove_folder);
    if (plugin_list(NULL, take_plugin, NULL, &e) || !plugins.n) abort();
    /* The order in a folder is undefined. */
    qsort(plugins.at, (size_t)plugins.n, sizeof *plugins.at, by_name);
    base_model();
    return true;
}

/* ---- the changes */

static void add_override(struct job *j, const char *section, const char *key, const char *value)
{
    if (j->n + (int64_t)COUNT(FIXED) >= OVERRIDES) return;
    char *to = j->text[j->n];
    snprintf(to, OVERRIDE, "%.100s.%.60s=%.300s", section, key, value);
    j->override[j->n++] = to;
}

static bool is_work(const struct config_key *k)
{
    char name[120];
    snprintf(name, sizeof name, "%s.%s", k->section, k->key);
    for (size_t i = 0; i < COUNT(WORK); i++)
        if (!strcmp(name, WORK[i])) return true;
    return false;
}

static void change_key(struct job *j, struct bytes *b)
{
    const struct config_key *k = &CONFIG_KEYS[(byte(b) * 256 + byte(b)) % (int)config_n_keys()];
    char value[40];
    int n = 0;
    switch (k->type) {
    case KEY_BOOL:
        return add_override(j, k->section, k->key, byte(b) & 1 ? "true" : "false");
    case KEY_CHOICE:
        while (k->choices[n]) n++;
        return add_override(j, k->section, k->key, k->choices[byte(b) % n]);
    case KEY_INT:
        snprintf(value, sizeof value, "%lld", is_work(k) ? byte(b) % 6 - 1LL : (long long)bytes_number(b));
        return add_override(j, k->section, k->key, value);
    case KEY_FLOAT:
        return add_override(j, k->section, k->key, REALS[(size_t)byte(b) % COUNT(REALS)]);
    default:
        return add_override(j, k->section, k->key, TEXTS[(size_t)byte(b) % COUNT(TEXTS)]);
    }
}

static void change_parameter(struct job *j, const struct plugin *p, struct bytes *b)
{
    const tare_param *q = &p->params[(uint32_t)byte(b) % p->desc.n_params];
    char section[120], value[40];
    int n = 0;
    snprintf(section, sizeof section, "%s.%s", plugin_section_kind(p->desc.kind), p->desc.name);
    if (q->type == TARE_PARAM_CHOICE) {
        while (q->choices[n]) n++;
        add_override(j, section, q->key, q->choices[byte(b) % n]);
    } else if (q->type == TARE_PARAM_BOOL) {
        add_override(j, section, q->key, byte(b) & 1 ? "true" : "false");
    } else if (q->type == TARE_PARAM_INT) {
        snprintf(value, sizeof value, "%lld", (long long)bytes_number(b));
        add_override(j, section, q->key, value);
    } else if (q->type == TARE_PARAM_FLOAT) {
        add_override(j, section, q->key, REALS[(size_t)byte(b) % COUNT(REALS)]);
    } else {
        add_override(j, section, q->key, TEXTS[(size_t)byte(b) % COUNT(TEXTS)]);
    }
}

static void change_plugin(struct job *j, struct bytes *b)
{
    static const char *const KEYS[][3] = {
        [TARE_KIND_ESTIMATOR] = {"estimator", "plugin"}, [TARE_KIND_VERIFIER] = {"verifier", "plugins"},
        [TARE_KIND_ENCODER] = {"encoder", "plugin"},     [TARE_KIND_CODEBOOK] = {"codebook", "plugin"},
        [TARE_KIND_OBJECTIVE] = {"objective", "plugin"}, [TARE_KIND_CURRICULUM] = {"curriculum", "plugin"}};
    const struct plugin *p = plugins.at[byte(b) % plugins.n];
    add_override(j, KEYS[p->desc.kind][0], KEYS[p->desc.kind][1], p->desc.name);
    for (int i = byte(b) % 4; i > 0 && p->desc.n_params; i--) change_parameter(j, p, b);
}

/* Writes the JSON of text with one change. A text that is not JSON stays unchanged. */
static void change_json(struct str *text, struct bytes *b)
{
    json_t *root = NULL;
    struct err e = {0};
    if (!text->data || json_parse_wide(text->data, text->size, "fuzz", &root, &e)) return;
    json_change(root, b);
    str_clear(text);
    if (json_print(root, text, &e)) abort();
    json_decref(root);
}

/* Changes only the header and corrects the length before it; the rest of the file stays
 * unchanged. */
static void change_safetensors(struct str *text, struct bytes *b)
{
    uint64_t n;
    struct str header = {0}, whole = {0};
    if (text->size < 8) return;
    memcpy(&n, text->data, sizeof n);
    if (n > (uint64_t)text->size - 8) return;
    add(&header, text->data + 8, (int64_t)n);
    change_json(&header, b);
    const uint64_t now = (uint64_t)header.size;
    add(&whole, (const char *)&now, sizeof now);
    add(&whole, header.data, header.size);
    add(&whole, text->data + 8 + n, text->size - 8 - (int64_t)n);
    str_free(&header);
    str_free(text);
    *text = whole;
}

static void change_bytes(struct str *text, struct bytes *b)
{
    const int how = byte(b) % 4;
    const int64_t at = text->size ? (byte(b) * 65536 + byte(b) * 256 + byte(b)) % text->size : 0;
    size_t n;
    if (how == 0) {
        str_free(text);
    } else if (how == 1) {
        if (text->data) text->data[text->size = at] = 0;
    } else {
        const char *raw = bytes_take(b, how == 2 ? 1 : 8, &n);
        if (text->size >= at + (int64_t)n && n) memcpy(text->data + at, raw, n);
    }
}

static void change_model(struct job *j, struct bytes *b)
{
    const int i = byte(b) % n_files, how = byte(b) % 8;
    struct str *text = &j->file[i];
    if (!how)
        change_bytes(text, b);
    else if (str_ends_with(files[i].name, ".safetensors"))
        change_safetensors(text, b);
    else
        change_json(text, b);
}

static void change_rows(struct job *j, struct bytes *b)
{
    struct str row = {0};
    size_t n;
    const int how = byte(b) % 8;
    if (how < 5) {
        add(&row, ROW[byte(b) % ROWS], -1);
        change_json(&row, b);
    } else if (how == 5) {
        add(&row, LINES[(size_t)byte(b) % COUNT(LINES)], -1);
    } else if (how == 6) {
        const char *raw = bytes_take(b, (size_t)byte(b), &n);
        if (n) add(&row, raw, (int64_t)n);
    } else { /* a long question */
        const int times = 1 << byte(b) % 12;
        add(&row, "{\"answer\":\"1\",\"question\":\"", -1);
        for (int i = 0; i < times; i++) add(&row, "1+", -1);
        add(&row, "\"}", -1);
    }
    add(&j->rows, row.size ? row.data : "", row.size);
    add(&j->rows, "\n", 1);
    str_free(&row);
}

static void read_job(struct job *j, struct bytes *b)
{
    const int kept = byte(b); /* of the valid rows */
    for (int i = 0; i < n_files; i++) add(&j->file[i], files[i].text.data, files[i].text.size);
    for (int i = 0; i < ROWS; i++) {
        if (kept >> i & 1) continue;
        add(&j->rows, ROW[i], -1);
        add(&j->rows, "\n", 1);
    }
    for (int i = 0; i < CHANGES && b->at < b->end; i++) {
        switch (byte(b) % 8) {
        case 0:
        case 1:
        case 2:
            change_key(j, b);
            break;
        case 3:
        case 4:
            change_plugin(j, b);
            break;
        case 5:
        case 6:
            change_model(j, b);
            break;
        default:
            change_rows(j, b);
        }
    }
    for (size_t i = 0; i < COUNT(FIXED); i++) j->override[j->n++] = FIXED[i];
}

/* ---- the run */

static void write_file(const char *name, const struct str *text)
{
    FILE *f = text->data ? fopen(name, "w") : NULL;
    if (!text->data) return;
    if (!f || fwrite(text->data, 1, (size_t)text->size, f) != (size_t)text->size || fclose(f)) abort();
}

static void write_job(const struct job *j)
{
    char path[FS_PATH];
    const struct str config = {.data = (char *)(uintptr_t)CONFIG, .size = sizeof CONFIG - 1};
    if (mkdir("job", 0700) || chdir("job") || mkdir("model", 0700)) abort();
    write_file("config.ini", &config);
    write_file("rows.jsonl", &j->rows);
    for (int i = 0; i < n_files; i++) {
        if (fs_join(path, "model", files[i].name, NULL)) abort();
        write_file(path, &j->file[i]);
    }
}

/* Checks that a run's files have the checksums recorded when they were written, however it
 * ended. */
static void look_at_run(void)
{
    struct reproduce_result r = {0};
    struct err e = {0};
    if (!fs_exists("run/metrics.jsonl") || !fs_exists("run/chain.jsonl")) return;
    const tare_status status = reproduce_check_files("run", &r, &e);
    if (status || r.faults) {
        fprintf(stderr, "reproduce: %s\n%s", status ? e.message : "", r.text.data ? r.text.data : "");
        abort();
    }
    str_free(&r.text);
}

static tare_status train(struct config *c, const struct train_start *start, struct err *e)
{
    struct train *t;
    bool more = true;
    TRY(train_open(c, start, &t, e));
    tare_status status = TARE_OK;
    while (!status && more) status = train_step(t, &more, e);
    if (!status) status = train_end(t, e);
    train_close(t);
    return status;
}

static tare_status run(const struct job *j, bool resume)
{
    struct config c;
    struct err e = {0};
    const struct train_start start = {.resume = resume, .until = resume ? 0 : 1, .make = preflight_make};
    tare_status status = config_load(&c, "config.ini", j->override, j->n, &e);
    if (!status) {
        status = train(&c, &start, &e);
        config_free(&c);
    }
    if (status && (e.code != status || !*e.message)) abort();
    if (status) log_error(&e);
    if (status && getenv("FUZZ_SHOW")) fprintf(stderr, "%s\n", e.message);
    look_at_run();
    return status;
}

static int count(const char *path)
{
    struct fs_list list;
    if (fs_list(path, NULL, &list, NULL)) abort();
    const int n = list.n;
    fs_list_free(&list);
    return n;
}

/* A joined thread is still listed for a moment. */
static bool threads_above(int most)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 20000 && count("/proc/self/task") > most; i++) nanosleep(&moment, NULL);
    return count("/proc/self/task") > most;
}

/* Returns true if the work of both processes was done. */
static bool one(struct bytes b)
{
    static struct job j;
    struct err e = {0};
    j.n = 0;
    read_job(&j, &b);
    write_job(&j);
    const bool done = !run(&j, false) && !run(&j, true);
    if (done && !fs_exists("run/checkpoints/step-000002/complete.json")) abort();
    if (chdir("..") || fs_remove_tree("job", &e)) abort();
    for (int i = 0; i < n_files; i++) str_free(&j.file[i]);
    str_free(&j.rows);
    return done;
}

/* libFuzzer needs -print_funcs=0: the program that looks up names for it has descriptors, too. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* where is the folder in which the program was started. */
    static int descriptors, threads, where = -1;
    if (where < 0) {
        where = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (where < 0 || !begin()) abort();
        if (!one((struct bytes){0})) abort(); /* without a change it is a valid run */
        descriptors = count("/proc/self/fd");
        threads = count("/proc/self/task");
    }
    if (chdir(folder)) abort();
    one((struct bytes){data, data + size});
    if (count("/proc/self/fd") > descriptors || threads_above(threads)) {
        fprintf(stderr, "%d descriptors of %d, %d threads of %d\n", count("/proc/self/fd"), descriptors, count("/proc/self/task"),
                threads);
        abort();
    }
    if (fchdir(where)) abort();
    return 0;
}
