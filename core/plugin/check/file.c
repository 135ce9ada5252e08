/* Tests that apply to every kind of plugin: the file, loading, parameters, instances. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/fs.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the file */

static tare_status export_ok(void *ctx, const char *name, bool unique, struct err *e)
{
    (void)ctx;
    if (unique) FAIL(e, TARE_E_PLUGIN, "it exports the process-wide unique symbol %s; compile with -fno-gnu-unique", name);
    if (strncmp(name, "tare_plugin_v", 13))
        FAIL(e, TARE_E_PLUGIN,
             "it exports %s; only tare_plugin_v%d may be exported: compile with -fvisibility=hidden, or link with a version script",
             name, TARE_ABI_MAJOR);
    return TARE_OK;
}

static tare_status test_exports(struct check *c, struct err *e)
{
    return elf_exports(c->options->path, export_ok, NULL, e);
}

static tare_status test_linking(struct check *c, struct err *e)
{
    struct elf_link l;
    TRY(elf_linking(c->options->path, &l, e));
    if (l.code_relocations)
        FAIL(e, TARE_E_PLUGIN, "it has relocations in its code (DT_TEXTREL), which some systems do not load; compile with -fPIC");
    if (*l.folders && *l.folders != '$')
        FAIL(e, TARE_E_PLUGIN,
             "it searches libraries in %s (DT_RUNPATH), which another machine does not have; link without -rpath, or with $ORIGIN",
             l.folders);
    if (l.static_tls)
        return str_add(&c->note, "uses static TLS (DF_STATIC_TLS): a program with many libraries may have no room for it", -1, e);
    return TARE_OK;
}

static tare_status test_loads(struct check *c, struct err *e)
{
    const struct plugin_file *f;
    const double start = clock_seconds();
    TRY(plugin_file_open(c->options->path, &f, e));
    return str_addf(&c->note, e, "%.2f ms", 1e3 * (clock_seconds() - start));
}

typedef const tare_plugin *(*entry_function)(const tare_host *, tare_error *);

static tare_status leaves_the_process_alone(struct check *c, struct err *e)
{
    char path[FS_PATH];
    entry_function entry = NULL;
    tare_error error = {.struct_size = sizeof error};
    if (!realpath(c->options->path, path)) FAIL(e, TARE_E_IO, "%s: not there", c->options->path);
    uint64_t hash;
    TRY(elf_check(path, &hash, e));
    const struct surroundings before = surroundings_now();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct surroundings opened = surroundings_now();
    if (handle) *(void **)&entry = dlsym(handle, "tare_plugin_v1");
    if (!entry) FAIL(e, TARE_E_PLUGIN, "%s", dlerror());
    TRY(surroundings_same(&before, &opened, "loading it", e));
    const tare_plugin *first = entry(plugin_entry_host(), &error), *second = entry(plugin_entry_host(), &error);
    const struct surroundings called = surroundings_now();
    TRY(surroundings_same(&before, &called, "tare_plugin_v1", e));
    if (first != second)
        FAIL(e, TARE_E_PLUGIN, "tare_plugin_v1 returns another pointer when it is called again; return a static struct");
    return TARE_OK;
}

const struct check_test CHECK_FILE[] = {
    {"exports", "the file exports one symbol, which is not process-wide unique", 0, test_exports},
    {"linking", "the file needs no folder of this machine, and no relocations in its code", 0, test_linking},
    {"loads", "the file opens and its descriptors are valid", 0, test_loads},
    {"process", "loading does not change FP mode, locale, folder, signals, files or threads", 0, leaves_the_process_alone},
    {0}};

/* ---------------------------------------------------------------- parameters and instances */

static tare_status make_and_drop(struct check *c, const tare_value *values, const char *what, bool may_refuse, struct err *e)
{
    struct plugin_instance *i;
    struct plugin_env env;
    TRY(check_env(c, &env, e));
    const struct surroundings before = surroundings_now();
    const tare_status status =
        plugin_create(c->plugin, values, c->plugin->desc.kind == TARE_KIND_ESTIMATOR ? CHECK_CLUSTERS : 0, &env, &i, e);
    if (status && (!may_refuse || status == TARE_E_PLUGIN)) return err_prefix(e, "with %s", what);
    if (status && strstr(e->message, "and no message")) FAIL(e, TARE_E_PLUGIN, "create fails without a message for %s", what);
    plugin_destroy(status ? NULL : i);
    const struct surroundings after = surroundings_now();
    return surroundings_same(&before, &after, "create and destroy", e);
}

/* Gives value k of parameter q: at an end of its range, inside of it, or one of its choices.
 * Returns false after the last value. */
static bool param_value(struct check *c, const tare_param *q, int64_t k, tare_value *v)
{
    const bool least = q->flags & TARE_PARAM_MIN, most = q->flags & TARE_PARAM_MAX;
    const double low = least ? q->min : most ? q->max - 1e6 : -1e6, high = most ? q->max : least ? q->min + 1e6 : 1e6;
    double x = 0;
    if (q->type == TARE_PARAM_BOOL || q->type == TARE_PARAM_CHOICE) {
        v->i = k;
        return q->type == TARE_PARAM_BOOL ? k < 2 : q->choices[k] != NULL;
    }
    if ((q->type != TARE_PARAM_INT && q->type != TARE_PARAM_FLOAT) || k > 2) return false;
    if (k < 2) { /* the end is not allowed: the value next to it */
        const double inside = q->type == TARE_PARAM_INT ? 1 : fmin(high - low, 1) * 1e-9;
        x = k ? high - (q->flags & TARE_PARAM_BELOW_MAX ? inside : 0) : low + (q->flags & TARE_PARAM_ABOVE_MIN ? inside : 0);
    } else {
        x = low + (high - low) * check_uniform(c);
        if (q->flags & TARE_PARAM_LOG_SCALE) x = fmin(high, fmax(low, 1e-6) * exp(20 * check_uniform(c)));
    }
    if (q->type == TARE_PARAM_INT) /* serves as an upper end as well as a million, and takes less time */
        v->i = (int64_t)fmax(-1e4, fmin(1e4, floor(x)));
    else
        v->f = x;
    return true;
}

tare_status check_values(struct check *c, check_values_function each, struct err *e)
{
    const struct plugin *p = c->plugin;
    tare_value *v;
    TRY(arena_new(&c->arena, &v, p->desc.n_params + 1, e));
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        memcpy(v, c->values, p->desc.n_params * sizeof *v);
        for (int64_t k = 0; param_value(c, &p->params[j], k, &v[j]); k++) {
            struct str what = {0};
            tare_status status = str_addf(&what, e, "%s = ", p->params[j].key);
            if (!status) status = plugin_value_text(p, j, v[j], &what, e);
            if (!status) status = each(c, v, what.data, e);
            str_free(&what);
            TRY(status);
        }
    }
    return TARE_OK;
}

static tare_status make_with(struct check *c, const tare_value *values, const char *what, struct err *e)
{
    return make_and_drop(c, values, what, true, e);
}

/* Tests every parameter at its ends, inside its range and at its choices. A plugin may refuse a
 * combination, with a message. */
static tare_status test_parameters(struct check *c, struct err *e)
{
    /* an empty slice of Rust has a non-null address too, in the first page, where no table can be
     */
    if ((uintptr_t)c->plugin->desc.params >= 4096 && !c->plugin->desc.n_params)
        FAIL(
            e, TARE_E_PLUGIN,
            "the descriptor has a table of parameters but n_params is 0: set n_params to the number of rows; without it, the plugin reads parameters that do not exist");
    const tare_status status = make_and_drop(c, c->values, c->options->n_assignments ? "these values" : "the defaults", false, e);
    if (status == TARE_E_CONFIG) { /* the other tests would say the same */
        c->untested = true;
        return err_prefix(e, "nothing more was tested; add KEY=VALUE after the plugin's name, or accept the defaults");
    }
    TRY(status);
    return check_values(c, make_with, e);
}

static tare_status test_instances(struct check *c, struct err *e)
{
    struct plugin_instance *two[2];
    for (int64_t round = 0; round < check_rounds(c, 100); round++) {
        TRY(check_instance(c, &two[0], e));
        TRY(check_instance(c, &two[1], e));
        plugin_destroy(two[round % 2]);
        plugin_destroy(two[1 - round % 2]);
    }
    return TARE_OK;
}

const struct check_test CHECK_ANY[] = {
    {"parameters", "create accepts or refuses every parameter at its ends, inside its range and at its choices", -1,
     test_parameters},
    {"instances", "create and destroy work 100 times, and for two instances together", -1, test_instances},
    {"memory", "an allocation that fails is reported, and nothing leaks", -1, check_memory},
    {"oldest", "a host of the plugin's minor version gives the same results", -1, check_oldest},
    {"future", "a host with larger structs and unknown flags gives the same results", -1, check_future},
    {0}};
