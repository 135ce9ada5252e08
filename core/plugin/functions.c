/* Checks a plugin's function table: its size, its flags, and the functions that belong together. */
#include "plugin/tables.h"

#include <string.h>

/* One member of a function table. */
struct member {
    const char *name;
    uint32_t offset;
    bool required;
    const char *with; /* this member needs another one */
};

#define MEMBER(T, F, R, W)                                                                                                         \
    {                                                                                                                              \
#F, offsetof(T, F), R, W                                                                                                   \
    }
#define HEAD(T)                                                                                                                    \
    MEMBER(T, create, true, NULL), MEMBER(T, destroy, true, NULL), MEMBER(T, save, false, "load"), MEMBER(T, load, false, "save")

static const struct member ESTIMATOR[] = {HEAD(tare_estimator),
                                          MEMBER(tare_estimator, prepare, false, "sizes"),
                                          MEMBER(tare_estimator, compute, true, NULL),
                                          MEMBER(tare_estimator, collect, false, "sizes"),
                                          MEMBER(tare_estimator, collect, false, "apply"),
                                          MEMBER(tare_estimator, record, false, "sizes"),
                                          MEMBER(tare_estimator, record, false, "apply"),
                                          MEMBER(tare_estimator, apply, false, "save"),
                                          {0}};
static const struct member VERIFIER[] = {HEAD(tare_verifier),
                                         MEMBER(tare_verifier, verify, true, NULL),
                                         MEMBER(tare_verifier, submit, false, "poll"),
                                         MEMBER(tare_verifier, poll, false, "take"),
                                         MEMBER(tare_verifier, take, false, "cancel"),
                                         MEMBER(tare_verifier, cancel, false, "submit"),
                                         {0}};
static const struct member ENCODER[] = {HEAD(tare_encoder),
                                        MEMBER(tare_encoder, sizes, true, NULL),
                                        MEMBER(tare_encoder, encode, true, NULL),
                                        MEMBER(tare_encoder, fit, false, "save"),
                                        {0}};
static const struct member CODEBOOK[] = {HEAD(tare_codebook),
                                         MEMBER(tare_codebook, sizes, true, NULL),
                                         MEMBER(tare_codebook, assign, true, NULL),
                                         MEMBER(tare_codebook, fit, false, "save"),
                                         {0}};
static const struct member OBJECTIVE[] = {HEAD(tare_objective),
                                          MEMBER(tare_objective, annotate, false, "sizes"),
                                          MEMBER(tare_objective, compute, true, NULL),
                                          MEMBER(tare_objective, collect, false, "sizes"),
                                          MEMBER(tare_objective, collect, false, "apply"),
                                          MEMBER(tare_objective, apply, false, "save"),
                                          {0}};
static const struct member CURRICULUM[] = {HEAD(tare_curriculum), MEMBER(tare_curriculum, apply, false, "save"), {0}};
static const struct member ENVIRONMENT[] = {HEAD(tare_environment),
                                            MEMBER(tare_environment, open, true, NULL),
                                            MEMBER(tare_environment, close, true, NULL),
                                            MEMBER(tare_environment, reset, true, NULL),
                                            MEMBER(tare_environment, step, true, NULL),
                                            MEMBER(tare_environment, save_session, false, "load_session"),
                                            MEMBER(tare_environment, load_session, false, "save_session"),
                                            {0}};

/* The bits of `flags` that a kind's header names. */
enum {
    FLAGS_ESTIMATOR = TARE_ESTIMATOR_GIVES_TOKENS,
    FLAGS_VERIFIER = TARE_VERIFIER_TOGETHER | TARE_VERIFIER_GIVES_SEGMENTS | TARE_VERIFIER_REPEATS,
    FLAGS_ENCODER = 0,
    FLAGS_CODEBOOK = 0,
    FLAGS_OBJECTIVE = TARE_OBJECTIVE_OWN_CLIP | TARE_OBJECTIVE_OWN_DUAL_CLIP | TARE_OBJECTIVE_LOOKS_AHEAD |
                      TARE_OBJECTIVE_TREATS_OFF_POLICY | TARE_OBJECTIVE_GIVES_DKL | TARE_OBJECTIVE_ZERO_AT_ZERO,
    FLAGS_CURRICULUM = TARE_CURRICULUM_READS_WEIGHTS,
    FLAGS_ENVIRONMENT = TARE_ENVIRONMENT_TOGETHER | TARE_ENVIRONMENT_REPEATS
};

#define KIND(CONSTANT, NAME, ...)                                                                                                  \
    [TARE_KIND_##CONSTANT] = {.members = CONSTANT, .size = sizeof(tare_##NAME), .flags = FLAGS_##CONSTANT},
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

/* True if the table has the function NAME. "sizes" is not in the lists where it is optional. */
static bool has_function(const struct plugin *p, const struct kind *k, const char *name)
{
    if (!strcmp(name, "sizes"))
        return p->desc.kind == TARE_KIND_ESTIMATOR ? p->estimator->sizes != NULL : p->objective->sizes != NULL;
    for (const struct member *m = k->members; m->name; m++)
        if (!strcmp(m->name, name)) return is_set(p->head, m);
    return false;
}

static tare_status check_members(const struct plugin_subject *s, const struct plugin *p, const struct kind *k, struct err *e)
{
    const uint32_t size = p->head->struct_size;
    for (const struct member *m = k->members; m->name; m++) {
        if (m->required && size < m->offset + sizeof(void *))
            FAIL(e, TARE_E_PLUGIN,
                 "%s: %s: its function table ends before %s (struct_size %u, needed %u); rebuild it against this program's SDK",
                 s->path, s->name, m->name, size, m->offset + (uint32_t)sizeof(void *));
        if (m->required && !is_set(p->head, m))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: the function %s is missing (NULL)", s->path, s->name, m->name);
        if (m->with && is_set(p->head, m) && !has_function(p, k, m->with))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: it has the function %s but is missing %s, which is required with it", s->path, s->name,
                 m->name, m->with);
    }
    return TARE_OK;
}

tare_status plugin_copy_functions(const struct plugin_subject *s, struct plugin *p, struct err *e)
{
    const struct kind *k = &KINDS[p->desc.kind];
    uint32_t size;
    void *copy;
    memcpy(&size, p->desc.functions, sizeof size);
    if (size < 8 || size > PLUGIN_MOST_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid size %u of its function table; set struct_size to sizeof the table", s->path,
             s->name, size);
    TRY(mem_new(k->size, &copy, e));
    memcpy(copy, p->desc.functions, size < k->size ? size : k->size);
    p->head = copy;
    if (p->head->flags & ~k->flags)
        FAIL(e, TARE_E_PLUGIN,
             "%s: %s: its function table has the unknown flags 0x%x (this program knows 0x%x); clear them, or update tare", s->path,
             s->name, p->head->flags & ~k->flags, k->flags);
    TRY(check_members(s, p, k, e));
    if (p->desc.kind == TARE_KIND_VERIFIER && p->verifier->submit && (p->verifier->flags & TARE_VERIFIER_TOGETHER))
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it has submit, which takes one completion at a time, and the flag TARE_VERIFIER_TOGETHER, which asks for all of them together; remove one of the two",
            s->path, s->name);
    if (p->head->save && (!p->desc.state_version || !p->desc.state_oldest || p->desc.state_oldest > p->desc.state_version))
        FAIL(
            e, TARE_E_PLUGIN,
            "%s: %s: it has the function save, but state_version is %u and state_oldest is %u; set state_version to the number of the state's format, from 1, and state_oldest to the oldest one that load reads",
            s->path, s->name, p->desc.state_version, p->desc.state_oldest);
    return TARE_OK;
}
