/* Checks that the plugin returned by an entry point is complete, valid, and for this program. Makes
 * the host's copies, which are zero where the plugin's build had no such member. A message names
 * the file, the plugin and the member. */
#include "base/log.h"
#include "plugin/internal.h"

#include <stdio.h>

#include <string.h>

enum { MAX_DESCRIPTORS = 64, MAX_PARAMS = 256, MAX_STRUCT = 4096 };

/* The sizes that every plugin of major 1 has, as released with 1.0. Members that are added later
 * are optional: a smaller struct is copied and the rest stays zero; from a larger one, only the
 * part that this program knows is read. */
enum {
    MIN_PLUGIN = offsetof(tare_plugin, descriptors) + sizeof(void *),
    MIN_DESCRIPTOR = offsetof(tare_descriptor, functions) + sizeof(void *),
    MIN_PARAM = offsetof(tare_param, flags) + sizeof(uint32_t)
};

struct subject {
    const char *path;
    char name[96]; /* "estimator grpo", or "descriptor 2" until the name is known */
};

/* One member of a function table. */
struct member {
    const char *name;
    uint32_t offset;
    bool required;
    const char *with; /* this member needs another one; "a|b": one of the two */
};

#define MEMBER(T, F, R, W)                                                                                                         \
    {                                                                                                                              \
#F, offsetof(T, F), R, W                                                                                                   \
    }
static const struct member ESTIMATOR[] = {MEMBER(tare_estimator, create, true, NULL),
                                          MEMBER(tare_estimator, destroy, true, NULL),
                                          MEMBER(tare_estimator, save, false, "load"),
                                          MEMBER(tare_estimator, load, false, "save"),
                                          MEMBER(tare_estimator, prepare_size, false, "prepare"),
                                          MEMBER(tare_estimator, collect_size, false, "collect"),
                                          MEMBER(tare_estimator, prepare, false, "prepare_size"),
                                          MEMBER(tare_estimator, compute, true, NULL),
                                          MEMBER(tare_estimator, collect, false, "apply|apply_records"),
                                          MEMBER(tare_estimator, apply, false, "save"),
                                          MEMBER(tare_estimator, describe, false, NULL),
                                          MEMBER(tare_estimator, record_size, false, "record"),
                                          MEMBER(tare_estimator, record, false, "apply_records"),
                                          MEMBER(tare_estimator, apply_records, false, "record_size"),
                                          MEMBER(tare_estimator, apply_records, false, "save"),
                                          MEMBER(tare_estimator, columns, false, NULL),
                                          {0}};
static const struct member VERIFIER[] = {MEMBER(tare_verifier, create, true, NULL),
                                         MEMBER(tare_verifier, destroy, true, NULL),
                                         MEMBER(tare_verifier, verify, true, NULL),
                                         MEMBER(tare_verifier, explain, false, NULL),
                                         MEMBER(tare_verifier, submit, false, "poll"),
                                         MEMBER(tare_verifier, poll, false, "cancel"),
                                         MEMBER(tare_verifier, cancel, false, "submit"),
                                         MEMBER(tare_verifier, uses, false, NULL),
                                         {0}};
static const struct member ENCODER[] = {MEMBER(tare_encoder, create, true, NULL),
                                        MEMBER(tare_encoder, destroy, true, NULL),
                                        MEMBER(tare_encoder, dim, true, NULL),
                                        MEMBER(tare_encoder, encode, true, NULL),
                                        MEMBER(tare_encoder, fit, false, "save"),
                                        MEMBER(tare_encoder, save, false, "load"),
                                        MEMBER(tare_encoder, load, false, "fit"),
                                        MEMBER(tare_encoder, identity, false, NULL),
                                        {0}};
static const struct member CODEBOOK[] = {MEMBER(tare_codebook, create, true, NULL),
                                         MEMBER(tare_codebook, destroy, true, NULL),
                                         MEMBER(tare_codebook, size, true, NULL),
                                         MEMBER(tare_codebook, dim, true, NULL),
                                         MEMBER(tare_codebook, assign, true, NULL),
                                         MEMBER(tare_codebook, fit, false, "save"),
                                         MEMBER(tare_codebook, save, false, "load"),
                                         MEMBER(tare_codebook, load, false, "fit"),
                                         MEMBER(tare_codebook, encoder_identity, false, NULL),
                                         MEMBER(tare_codebook, encoder_state, false, NULL),
                                         MEMBER(tare_codebook, cluster_name, false, NULL),
                                         {0}};

static const struct member OBJECTIVE[] = {MEMBER(tare_objective, create, true, NULL),
                                          MEMBER(tare_objective, destroy, true, NULL),
                                          MEMBER(tare_objective, save, false, "load"),
                                          MEMBER(tare_objective, load, false, "save"),
                                          MEMBER(tare_objective, prepare_size, false, "prepare"),
                                          MEMBER(tare_objective, collect_size, false, "collect"),
                                          MEMBER(tare_objective, prepare, false, "prepare_size"),
                                          MEMBER(tare_objective, compute, true, NULL),
                                          MEMBER(tare_objective, collect, false, "collect_size"),
                                          MEMBER(tare_objective, collect, false, "apply"),
                                          MEMBER(tare_objective, apply, false, "save"),
                                          {0}};

static const struct member CURRICULUM[] = {MEMBER(tare_curriculum, create, true, NULL),
                                           MEMBER(tare_curriculum, destroy, true, NULL),
                                           MEMBER(tare_curriculum, save, false, "load"),
                                           MEMBER(tare_curriculum, load, false, "save"),
                                           MEMBER(tare_curriculum, next, false, NULL),
                                           MEMBER(tare_curriculum, keep, false, NULL),
                                           MEMBER(tare_curriculum, apply, false, "save"),
                                           MEMBER(tare_curriculum, describe, false, NULL),
                                           {0}};

/* The bits of `flags` that a kind's header names. */
enum {
    FLAGS_ESTIMATOR = 0,
    FLAGS_VERIFIER = TARE_JUDGES_TOGETHER | TARE_GIVES_SEGMENTS,
    FLAGS_ENCODER = 0,
    FLAGS_CODEBOOK = 0,
    FLAGS_OBJECTIVE = TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP,
    FLAGS_CURRICULUM = 0
};

#define KIND(CONSTANT, NAME, ...) [TARE_##CONSTANT] = {.members = CONSTANT, .size = sizeof(tare_##NAME), .flags = FLAGS_##CONSTANT},
static const struct kind {
    const struct member *members;
    uint32_t size, flags;
} KINDS[] = {PLUGIN_KINDS(KIND)};
#undef KIND

static bool is_set(const void *table, const struct member *m)
{
    void (*f)(void);
    memcpy(&f, (const char *)table + m->offset, sizeof f);
    return f != NULL;
}

/* True if the table has the named member, or one of several separated by a bar. */
static bool any_is_set(const void *table, const struct member *list, const char *names)
{
    for (; list->name; list++) {
        const char *at = strstr(names, list->name);
        const size_t n = strlen(list->name);
        const bool named = at && (at == names || at[-1] == '|') && (!at[n] || at[n] == '|');
        if (named && is_set(table, list)) return true;
    }
    return false;
}

static size_t smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Copies the plugin's function table, which may have another size, into the host's, and checks its
 * members. */
static tare_status copy_table(const struct subject *s, const struct kind *k, const void *table, void *copy, struct err *e)
{
    uint32_t size, flags;
    memcpy(&size, table, sizeof size);
    if (size < 8 || size > MAX_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid size %u of its function table; set struct_size to sizeof the table", s->path,
             s->name, size);
    memcpy(copy, table, smaller_size(size, k->size));
    memcpy(copy, &size, sizeof size);
    memcpy(&flags, (const char *)table + sizeof size, sizeof flags);
    if (flags & ~k->flags)
        FAIL(e, TARE_E_PLUGIN,
             "%s: %s: unknown flags 0x%x in its function table (this program knows 0x%x); set flags to 0, or update tare", s->path,
             s->name, flags, k->flags);
    for (const struct member *m = k->members; m->name; m++) {
        if (m->required && size < m->offset + sizeof(void *))
            FAIL(e, TARE_E_PLUGIN,
                 "%s: %s: its function table ends before %s (struct_size %u, needed %u); rebuild it against this program's SDK",
                 s->path, s->name, m->name, size, m->offset + (uint32_t)sizeof(void *));
        if (m->required && !is_set(copy, m))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: the function %s is missing (NULL)", s->path, s->name, m->name);
        if (m->with && is_set(copy, m) && !any_is_set(copy, k->members, m->with))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: it has the function %s but is missing %s, which is required with it", s->path, s->name,
                 m->name, m->with);
    }
    return TARE_OK;
}

static tare_status check_param(const struct subject *s, const tare_param *params, uint32_t i, struct err *e)
{
    const tare_param *p = &params[i];
    if (!plugin_name_ok(p->key))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid key of parameter %u: must be [a-z][a-z0-9_]*", s->path, s->name, i + 1);
    for (uint32_t j = 0; j < i; j++)
        if (!strcmp(params[j].key, p->key)) FAIL(e, TARE_E_PLUGIN, "%s: %s: two parameters are named %s", s->path, s->name, p->key);
    if (p->type < TARE_BOOL || p->type > TARE_PATH)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has the unknown type %d", s->path, s->name, p->key, p->type);
    if (!p->doc || !*p->doc) FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has no documentation", s->path, s->name, p->key);
    if (p->type == TARE_CHOICE && (!p->choices || !p->choices[0]))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s is a choice without choices", s->path, s->name, p->key);
    if (!(p->min <= p->max))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has the range %g to %g", s->path, s->name, p->key, p->min, p->max);
    if (!p->fallback != !!(p->flags & TARE_REQUIRED))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s %s", s->path, s->name, p->key,
             p->fallback ? "is required and has a default" : "has no default and is not marked TARE_REQUIRED");
    if (!p->fallback) return TARE_OK;
    tare_value value;
    char what[400];
    snprintf(what, sizeof what, "%s: %s: the default of parameter %s", s->path, s->name, p->key);
    if (param_parse(p, p->fallback, what, &value, e)) return err_frame(e, TARE_E_PLUGIN, __FILE__, __LINE__);
    return TARE_OK;
}

static tare_status copy_params(const struct subject *s, const tare_descriptor *d, tare_param **out, struct err *e)
{
    *out = NULL;
    if (!d->n_params) return TARE_OK;
    if (d->n_params > MAX_PARAMS)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: %u parameters; at most %d", s->path, s->name, d->n_params, MAX_PARAMS);
    if (!d->params) FAIL(e, TARE_E_PLUGIN, "%s: %s: %u parameters and no table", s->path, s->name, d->n_params);
    if (d->param_size < MIN_PARAM || d->param_size > MAX_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: param_size is %u; set it to sizeof(tare_param)", s->path, s->name, d->param_size);
    TRY(mem_new((int64_t)d->n_params * (int64_t)sizeof(tare_param), (void **)out, e));
    for (uint32_t i = 0; i < d->n_params; i++) {
        memcpy(&(*out)[i], (const char *)d->params + (size_t)i * d->param_size, smaller_size(d->param_size, sizeof(tare_param)));
        TRY(check_param(s, *out, i, e));
    }
    return TARE_OK;
}

static bool version_ok(const char *v)
{
    int major, minor, patch;
    char rest = 0;
    return v && strlen(v) < 32 && sscanf(v, "%d.%d.%d%c", &major, &minor, &patch, &rest) >= 3 && major >= 0 && minor >= 0 &&
           patch >= 0 && (!rest || rest == '-' || rest == '+');
}

static tare_status check_descriptor(struct subject *s, const tare_descriptor *d, uint32_t i, struct plugin *p, struct err *e)
{
    snprintf(s->name, sizeof s->name, "descriptor %u", i + 1);
    if (!d) FAIL(e, TARE_E_PLUGIN, "%s: %s is NULL", s->path, s->name);
    if (d->struct_size < MIN_DESCRIPTOR || d->struct_size > MAX_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: struct_size is %u, needed %d; set it to sizeof the descriptor", s->path, s->name,
             d->struct_size, MIN_DESCRIPTOR);
    if (!plugin_name_ok(d->name) || strlen(d->name) > 63)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid name %s%s%s: must be [a-z][a-z0-9_]*, at most 63 characters", s->path, s->name,
             d->name ? "'" : "", d->name ? d->name : "missing", d->name ? "'" : "");
    snprintf(s->name, sizeof s->name, "%s %s", plugin_kind_name(d->kind), d->name);
    if (!version_ok(d->version))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid version '%s': must be like 1.0.0", s->path, s->name,
             d->version ? d->version : "missing");
    if (!d->summary || !*d->summary) FAIL(e, TARE_E_PLUGIN, "%s: %s: it has no summary", s->path, s->name);
    if (!d->functions) FAIL(e, TARE_E_PLUGIN, "%s: %s: missing function table", s->path, s->name);
    if (d->threading > TARE_REENTRANT) FAIL(e, TARE_E_PLUGIN, "%s: %s: unknown threading %u", s->path, s->name, d->threading);
    memcpy(&p->desc, d, smaller_size(d->struct_size, sizeof p->desc));
    return TARE_OK;
}

static tare_status check_waiting(const struct subject *s, const struct plugin *p, struct err *e)
{
    if (p->desc.kind == TARE_VERIFIER && p->verifier->submit && (p->verifier->flags & TARE_JUDGES_TOGETHER))
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it has submit, which takes one answer at a time, and the flag TARE_JUDGES_TOGETHER, which asks for all answers together; remove one of the two",
            s->path, s->name);
    return TARE_OK;
}

/* Checks that a plugin which uses members of a later minor version declares it. An older host would
 * load it otherwise, and ignore those members. */
static tare_status check_needed(const struct subject *s, const tare_plugin *raw, const struct plugin *p, struct err *e)
{
    if (p->desc.kind == TARE_ESTIMATOR && p->estimator->apply_records && raw->abi_minor_needed < 1)
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it has records, which need plugin ABI 1.1, but it declares 1.%u; set abi_minor_needed to 1 (TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 1))",
            s->path, s->name, raw->abi_minor_needed);
    const uint32_t second = TARE_NEED_FINISH | TARE_NEED_ROW | TARE_NEED_COMPLETION | TARE_NEED_TOKEN_ID | TARE_NEED_VERDICTS |
                            TARE_NEED_OFF_POLICY | TARE_NEED_POLICY_VERSION | TARE_NEED_SEGMENTS;
    if (p->desc.kind == TARE_ESTIMATOR && p->estimator->columns && raw->abi_minor_needed < 2)
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it has the function columns, which needs plugin ABI 1.2, but it declares 1.%u; set abi_minor_needed to 2 (TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2))",
            s->path, s->name, raw->abi_minor_needed);
    if (p->desc.kind == TARE_ESTIMATOR && (p->desc.needs & second) && raw->abi_minor_needed < 2)
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it needs columns of plugin ABI 1.2 (needs 0x%x), but it declares 1.%u; set abi_minor_needed to 2 (TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2))",
            s->path, s->name, p->desc.needs, raw->abi_minor_needed);
    return TARE_OK;
}

/* Validates descriptor i of the file, as the plugin after the n that are complete. */
static tare_status validate_one(struct subject *s, const tare_plugin *raw, uint32_t i, struct plugin *all, uint32_t n,
                                struct err *e)
{
    struct plugin *p = &all[n];
    void *table;
    TRY(check_descriptor(s, raw->descriptors[i], i, p, e));
    for (uint32_t j = 0; j < n; j++)
        if (all[j].desc.kind == p->desc.kind && !strcmp(all[j].desc.name, p->desc.name))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: the file has two plugins of that name", s->path, s->name);
    const struct kind *k = &KINDS[p->desc.kind];
    TRY(mem_new(k->size, &table, e));
    p->estimator = table; /* the union's members are all pointers */
    TRY(copy_table(s, k, p->desc.functions, table, e));
    TRY(check_needed(s, raw, p, e));
    TRY(check_waiting(s, p, e));
    tare_param *params;
    const tare_status status = copy_params(s, &p->desc, &params, e);
    p->params = params;
    p->minor_built = raw->abi_minor_built;
    return status;
}

/* Logs and skips a kind of a later minor version, so that the file's other plugins can be used. */
static bool known_kind(const struct subject *s, const tare_descriptor *d)
{
    if (!d || d->struct_size < MIN_DESCRIPTOR || (d->kind >= PLUGIN_FIRST_KIND && d->kind <= PLUGIN_LAST_KIND)) return true;
    log_info("%s: a plugin of the unknown kind %d is ignored; this program has plugin ABI %d.%d", s->path, d->kind, TARE_ABI_MAJOR,
             TARE_ABI_MINOR);
    return false;
}

static tare_status check_plugin(const char *path, const tare_plugin *raw, struct err *e)
{
    if (raw->struct_size < MIN_PLUGIN || raw->struct_size > MAX_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: invalid size %u of its tare_plugin, at least %d; set struct_size to sizeof(tare_plugin)", path,
             raw->struct_size, MIN_PLUGIN);
    if (raw->abi_minor_needed > TARE_ABI_MINOR)
        FAIL(e, TARE_E_VERSION,
             "%s: needs plugin ABI %d.%u, but this program has %d.%d; update tare or rebuild the plugin against its SDK", path,
             TARE_ABI_MAJOR, raw->abi_minor_needed, TARE_ABI_MAJOR, TARE_ABI_MINOR);
    if (!raw->n_descriptors || raw->n_descriptors > MAX_DESCRIPTORS || !raw->descriptors)
        FAIL(e, TARE_E_PLUGIN, "%s: contains %u descriptors; must be 1 to %d", path, raw->n_descriptors, MAX_DESCRIPTORS);
    return TARE_OK;
}

tare_status plugin_validate(const char *path, const tare_plugin *raw, struct plugin **out, uint32_t *n, struct err *e)
{
    struct subject s = {.path = path};
    struct plugin *all;
    *out = NULL;
    *n = 0;
    TRY(check_plugin(path, raw, e));
    TRY(mem_new((int64_t)raw->n_descriptors * (int64_t)sizeof *all, (void **)&all, e));
    tare_status status = TARE_OK;
    for (uint32_t i = 0; i < raw->n_descriptors && !status; i++) {
        if (!known_kind(&s, raw->descriptors[i])) continue;
        status = validate_one(&s, raw, i, all, *n, e);
        if (!status) ++*n;
    }
    if (!status && !*n)
        status = err_set(e, TARE_E_PLUGIN, __FILE__, __LINE__,
                         "%s: contains only plugins of unknown kinds (%d); it needs a newer tare", path, raw->descriptors[0]->kind);
    if (status) {
        for (uint32_t i = 0; i < raw->n_descriptors; i++) {
            mem_free((void *)(uintptr_t)all[i].estimator);
            mem_free((void *)(uintptr_t)all[i].params);
        }
        mem_free(all);
        return status;
    }
    *out = all;
    return TARE_OK;
}
