#include "engine/same_ranks.h"

#include "base/fs.h"
#include "observe/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024, HEAD = 1 << 20 };

struct facts {
    struct comm_fact fact[MOST];
    int64_t n;
    struct arena arena;
};

static tare_status add_fact(struct facts *f, const char *name, const char *value, struct err *e)
{
    char *copy[2];
    if (f->n == MOST) FAIL(e, TARE_E_RANGE, "cannot compare more than %d facts between ranks", MOST);
    TRY(arena_strdup(&f->arena, name, (int64_t)strlen(name), &copy[0], e));
    TRY(arena_strdup(&f->arena, value, (int64_t)strlen(value), &copy[1], e));
    for (int i = 0; i < 2; i++)
        for (char *p = copy[i]; *p; p++)
            if (*p == '\n') *p = ' ';
    f->fact[f->n++] = (struct comm_fact){copy[0], copy[1]};
    return TARE_OK;
}

static tare_status add_hash(struct facts *f, const char *name, uint64_t hash, struct err *e)
{
    char text[40];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return add_fact(f, name, text, e);
}

/* Splits "[section]" and "key = value" into section.key. */
static tare_status add_config(struct facts *f, char *text, struct err *e)
{
    static const char *const own[] = {"run.threads", "log.level", "log.progress"};
    char section[200] = "", name[500];
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));) {
        char *value = strstr(line, " = ");
        if (*line == '[') snprintf(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
        if (*line == '[' || *line == '#' || *line == ';' || !value) continue;
        snprintf(name, sizeof name, "%s.%.*s", section, (int)(value - line), line);
        bool skip = false;
        for (size_t i = 0; i < sizeof own / sizeof *own; i++) skip |= !strcmp(name, own[i]);
        if (!skip) TRY(add_fact(f, name, value + 3, e));
    }
    return TARE_OK;
}

static tare_status same_program(struct comm *comm, struct facts *f, struct err *e)
{
    uint64_t hash = 0;
    char version[200];
    snprintf(version, sizeof version, "%s %s", TARE_VERSION, manifest_commit());
    tare_status status = fs_hash_file("/proc/self/exe", &hash, e);
    if (!status) status = add_fact(f, "its version", version, e);
    if (!status) status = add_hash(f, "the file's hash", hash, e);
    TRY(comm_agree(comm, status, e));
    return comm_same(comm, "the program", f->fact, f->n, e);
}

tare_status same_ranks_program(struct comm *comm, const struct config *c, struct err *e)
{
    struct facts *f;
    OWNED(str_free) struct str text = {0};
    if (comm->size == 1) return TARE_OK;
    TRY(mem_new((int64_t)sizeof *f, (void **)&f, e));
    arena_init(&f->arena, "hello");
    tare_status status = same_program(comm, f, e);
    if (!status) {
        f->n = 0;
        status = config_dump(c, &text, e);
        if (!status) status = add_config(f, text.data, e);
        status = comm_agree(comm, status, e);
        if (!status) status = comm_same(comm, "the configuration", f->fact, f->n, e);
    }
    arena_free(&f->arena);
    mem_free(f);
    return status;
}

static tare_status add_plugin(struct facts *f, const struct plugin *p, struct err *e)
{
    char name[300], value[300];
    if (!p) return TARE_OK;
    const char *file = strrchr(p->path, '/');
    snprintf(name, sizeof name, "%s %s", plugin_kind_name(p->desc.kind), p->desc.name);
    snprintf(value, sizeof value, "version %s, %s with hash %016" PRIx64, p->desc.version, file ? file + 1 : p->path, p->hash);
    return add_fact(f, name, value, e);
}

static tare_status add_file_fact(struct facts *f, const char *folder, const char *file, struct err *e)
{
    char path[FS_PATH], value[100];
    OWNED(fs_unmap) struct fs_map map = {0};
    TRY(fs_join(path, folder, file, e));
    TRY(fs_map(path, &map, e));
    const int64_t n = strstr(file, ".safetensors") && map.size > HEAD ? HEAD : map.size;
    snprintf(value, sizeof value, "%lld bytes, hash %016" PRIx64, (long long)map.size, fs_hash(map.data, n, 0));
    return add_fact(f, file, value, e);
}

static int is_model_file(const struct dirent *d)
{
    return !strcmp(d->d_name, "config.json") || !strcmp(d->d_name, "tokenizer.json") || str_ends_with(d->d_name, ".safetensors");
}

static tare_status add_model(struct facts *f, const char *folder, struct err *e)
{
    OWNED(fs_list_free) struct fs_list files = {0};
    const tare_status status = fs_list(folder, is_model_file, &files, e);
    if (status == TARE_E_NOT_FOUND) return TARE_OK;
    TRY(status);
    for (int i = 0; i < files.n; i++) TRY(add_file_fact(f, folder, files.entry[i]->d_name, e));
    return TARE_OK;
}

static tare_status add_parts(const struct engine *g, const struct plugin *const *plugins, int64_t n, int64_t step, struct facts *f,
                             struct err *e)
{
    char text[40];
    snprintf(text, sizeof text, "%lld", (long long)step);
    TRY(add_fact(f, "the step of the checkpoint to resume from", text, e));
    for (int64_t k = 0; k < n; k++) TRY(add_plugin(f, plugins[k], e));
    for (int64_t k = 0; g->verify && k < verify_n_components(g->verify); k++) TRY(add_plugin(f, verify_plugin(g->verify, k), e));
    TRY(add_hash(f, "data.train (its rows)", g->train.hash, e));
    TRY(add_hash(f, "data.eval (its rows)", g->eval.hash, e));
    return add_model(f, g->config->model.path, e);
}
tare_status same_ranks_parts(const struct engine *g, const struct plugin *const *plugins, int64_t n, int64_t step, struct err *e)
{
    struct facts *f;
    if (!g->comm || g->comm->size == 1) return TARE_OK;
    TRY(mem_new((int64_t)sizeof *f, (void **)&f, e));
    arena_init(&f->arena, "hello");
    tare_status status = comm_agree(g->comm, add_parts(g, plugins, n, step, f, e), e);
    if (!status) status = comm_same(g->comm, "the run's parts", f->fact, f->n, e);
    arena_free(&f->arena);
    mem_free(f);
    return status;
}
