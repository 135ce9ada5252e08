#define _GNU_SOURCE
#include "observe/manifest.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/limits.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <tare/plugin.h>
#include <time.h>
#include <unistd.h>

#if __has_include("commit.h")
#include "commit.h"
#endif
#ifndef TARE_COMMIT
#define TARE_COMMIT ""
#endif

const char *manifest_commit(void)
{
    return TARE_COMMIT;
}

/* Reads the text after "key : " in a file of /proc. */
static bool proc_value(const char *file, const char *key, char *out, size_t n)
{
    FILE *f = fopen(file, "r");
    if (!f) return false;
    char line[1024];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key))) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = true;
    }
    fclose(f);
    return found;
}

void manifest_machine(struct machine *out)
{
    *out = (struct machine){0};
    struct utsname u;
    char text[64];
    if (!proc_value("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu)) snprintf(out->cpu, sizeof out->cpu, "unknown");
    if (!uname(&u)) {
        snprintf(out->host, sizeof out->host, "%s", u.nodename);
        snprintf(out->system, sizeof out->system, "%.60s %.60s %.60s", u.sysname, u.release, u.machine);
    }
    out->cores = sysconf(_SC_NPROCESSORS_ONLN);
    out->usable_cores = limits_cores();
    out->memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    long long kib;
    if (proc_value("/proc/meminfo", "MemAvailable", text, sizeof text) && sscanf(text, "%lld", &kib) == 1)
        out->memory_free = kib * 1024;
    const struct memory_limit limit = limits_memory();
    if (limit.most && limit.most < out->memory) out->memory = limit.most;
    if (limit.most && limit.left < out->memory_free) out->memory_free = limit.left;
}

static json_t *hex_json(uint64_t x)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)x);
    return json_string(text);
}

static json_t *machine_json(void)
{
    struct machine m;
    manifest_machine(&m);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "cpu", m.cpu, "host", m.host, "system", m.system, "cores",
                     (json_int_t)m.cores, "usable_cores", (json_int_t)m.usable_cores, "memory", (json_int_t)m.memory);
}

static json_t *plugins_json(const struct manifest *m)
{
    json_t *all = json_array();
    bool bad = !all;
    for (int64_t i = 0; i < m->n_plugins; i++) {
        const struct manifest_plugin *p = &m->plugins[i];
        json_add(all, &bad,
                 json_pack("{s:s, s:s, s:s, s:s, s:o, s:s*}", "kind", p->kind, "name", p->name, "version", p->version, "path",
                           p->path, "xxh3", hex_json(p->hash), "identity", p->identity));
    }
    return json_unless(bad, all);
}

/* Returns this process's command line from the system, which separates arguments with NUL. */
static json_t *command_json(void)
{
    json_t *all = json_array();
    OWNED(str_free) struct str text = {0};
    const tare_status status = fs_read_all("/proc/self/cmdline", &text, NULL);
    bool bad = !all || status == TARE_E_NOMEM;
    for (int64_t at = 0; !status && at < text.size; at += (int64_t)strlen(text.data + at) + 1)
        json_add(all, &bad, json_readable(text.data + at));
    return json_unless(bad, all);
}

static json_t *now_json(void)
{
    char text[40];
    const time_t now = time(NULL);
    struct tm t;
    gmtime_r(&now, &t);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return json_string(text);
}

/* Describes one process: the first, or one that resumed the run. */
static json_t *process_json(const struct manifest *m, uint64_t program)
{
    char abi[32];
    snprintf(abi, sizeof abi, "%d.%d", TARE_ABI_MAJOR, TARE_ABI_MINOR);
    return json_pack("{s:s, s:s, s:o, s:s, s:o, s:o, s:o, s:s, s:I, s:I, s:o, s:s, s:{s:o, s:I, s:o, s:I}, s:{s:s, s:s, s:s}}",
                     "tare", TARE_VERSION, "commit", manifest_commit(), "program_xxh3", hex_json(program), "abi", abi, "started",
                     now_json(), "command", command_json(), "machine", machine_json(), "kernels", m->kernels ? m->kernels : "",
                     "threads", (json_int_t)m->threads, "ranks", (json_int_t)m->ranks, "plugins", plugins_json(m), "model",
                     m->model ? m->model : "", "data", "train_xxh3", hex_json(m->data_hash), "train_rows", (json_int_t)m->data_rows,
                     "eval_xxh3", hex_json(m->eval_hash), "eval_rows", (json_int_t)m->eval_rows, "libraries", "jansson",
                     jansson_version_str(), "sqlite", sqlite3_libversion(), "compiler", __VERSION__);
}

static tare_status print_manifest(const json_t *root, struct str *out, struct err *e)
{
    TRY(json_print_lines(root, out, e));
    return str_add(out, "\n", 1, e);
}

tare_status manifest_print(const struct manifest *m, const char *previous, int64_t step, struct str *out, struct err *e)
{
    uint64_t program;
    bool bad = false;
    TRY(fs_hash_file("/proc/self/exe", &program, e));
    OWNED(json_decrefp) json_t *now = process_json(m, program), *root = NULL;
    if (!now) FAIL(e, TARE_E_INVALID, "cannot print the manifest: out of memory, or a path or a plugin's name is not valid UTF-8");
    if (m->models) json_put(now, &bad, "models", json_incref((json_t *)(uintptr_t)m->models));
    if (m->files) json_put(now, &bad, "files", json_incref((json_t *)(uintptr_t)m->files));
    if (previous && json_parse(previous, (int64_t)strlen(previous), "manifest.json", &root, e) == TARE_E_NOMEM) return e->code;
    if (json_is_object(root)) {
        json_t *list = json_object_get(root, "resumed");
        if (!json_is_array(list)) json_put(root, &bad, "resumed", list = json_array());
        json_put(now, &bad, "step", json_integer(step));
        json_add(bad ? NULL : list, &bad, json_incref(now)); /* without memory the list is NULL */
        json_t *rollbacks = json_object_get(root, "rollbacks");
        while ((int64_t)json_array_size(rollbacks) > m->rollbacks) json_array_remove(rollbacks, json_array_size(rollbacks) - 1);
    } else { /* the first process, or an unreadable manifest, which is not worth ending a run */
        json_decref(root);
        root = json_incref(now);
    }
    if (bad) FAIL(e, TARE_E_NOMEM, "out of memory for the manifest");
    return print_manifest(root, out, e);
}

tare_status manifest_add_rollback(const char *run_dir, const struct manifest_rollback *b, struct str *out, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(fs_join(path, run_dir, "manifest.json", e));
    TRY(json_read_file(path, &root, e));
    json_t *list = json_object_get(root, "rollbacks");
    if (!json_is_array(list) && !json_object_set_new(root, "rollbacks", json_array())) list = json_object_get(root, "rollbacks");
    json_t *one = json_pack("{s:I, s:I, s:o}", "step", (json_int_t)b->step, "to", (json_int_t)b->to, "why",
                            /* it may contain a file name that is not UTF-8 */
                            json_readable(b->why));
    if (!one || json_array_append_new(list, one)) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    return print_manifest(root, out, e);
}

tare_status manifest_continue(const char *run_dir, const struct manifest *m, bool resume, int64_t step, struct str *text,
                              struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str before = {0};
    TRY(fs_join(path, run_dir, "manifest.json", e));
    if (resume && fs_exists(path)) TRY(fs_read_all(path, &before, e));
    return manifest_print(m, before.data, step, text, e);
}

/* Compares the name and the file name: either may change when the file is replaced. */
static bool is_same_plugin(const json_t *then, const struct manifest_plugin *p)
{
    return !strcmp(json_text_or(then, "kind", ""), p->kind) &&
           (!strcmp(json_text_or(then, "name", ""), p->name) || !strcmp(json_text_or(then, "path", ""), p->path));
}

tare_status manifest_changed_plugins(const char *run_dir, const struct manifest *m, struct str *changed, struct err *e)
{
    char path[FS_PATH], hash[17];
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(fs_join(path, run_dir, "manifest.json", e));
    if (json_read_file(path, &root, NULL) == TARE_E_NOMEM) FAIL(e, TARE_E_NOMEM, "%s: out of memory", path);
    const json_t *list = json_object_get(root, "resumed");
    const json_t *last = json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : root;
    for (int64_t i = 0; i < m->n_plugins; i++) {
        const struct manifest_plugin *p = &m->plugins[i];
        bool had = false, same = false, identical = false;
        json_t *then;
        size_t k;
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)p->hash);
        json_array_foreach(json_object_get(last, "plugins"), k, then)
        {
            if (!is_same_plugin(then, p)) continue;
            had = true;
            same |= !strcmp(json_text_or(then, "xxh3", ""), hash);
            identical |= !strcmp(json_text_or(then, "identity", ""), p->identity ? p->identity : "");
        }
        if (had && !identical)
            TRY(str_addf(changed, e, "%s%s %s: what its results depend on has changed, now %s", changed->size ? "; " : "", p->kind,
                         p->name, p->identity ? p->identity : "nothing more"));
        else if (had && !same)
            TRY(str_addf(changed, e, "%s%s %s: %s", changed->size ? "; " : "", p->kind, p->name, p->path));
    }
    return TARE_OK;
}
