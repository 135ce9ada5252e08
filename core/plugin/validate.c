/* Checks that the plugin returned by an entry point is complete, valid, and for this program. Makes
 * the host's copies, which are zero where the plugin's build had no such member. A message names
 * the file, the plugin and the member. */
#include "base/log.h"
#include "plugin/tables.h"

#include <stdio.h>
#include <string.h>

/* The sizes that every plugin of major 1 has, as released with 1.0. Members that are added later
 * are optional: a smaller struct is copied and the rest stays zero; from a larger one, only the
 * part that this program knows is read. */
enum {
    MIN_PLUGIN = offsetof(tare_plugin, build) + sizeof(void *),
    MIN_DESCRIPTOR = offsetof(tare_descriptor, extension) + sizeof(void *)
};

static bool version_ok(const char *v)
{
    int major, minor, patch;
    char rest = 0;
    return v && strlen(v) < 32 && sscanf(v, "%d.%d.%d%c", &major, &minor, &patch, &rest) >= 3 && major >= 0 && minor >= 0 &&
           patch >= 0 && (!rest || rest == '-' || rest == '+');
}

static tare_status check_about(const struct plugin_subject *s, const tare_descriptor *d, struct err *e)
{
    for (int64_t i = 0; d->about && d->about[i]; i += 2) {
        if (i >= 2 * TARE_LIMIT_ABOUT)
            FAIL(e, TARE_E_PLUGIN, "%s: %s: about has more than %d pairs; is the NULL at the end missing?", s->path, s->name,
                 TARE_LIMIT_ABOUT);
        TRY(plugin_check_line(s, "a key of about", d->about[i], e));
        if (!d->about[i + 1]) FAIL(e, TARE_E_PLUGIN, "%s: %s: about has the key %s without a value", s->path, s->name, d->about[i]);
        TRY(plugin_check_line(s, d->about[i], d->about[i + 1], e));
    }
    return TARE_OK;
}

static tare_status check_descriptor(struct plugin_subject *s, const tare_descriptor *d, struct err *e)
{
    if (!plugin_name_ok(d->name) || strlen(d->name) > TARE_LIMIT_NAME)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid name %s%s%s: must be [a-z][a-z0-9_]*, at most 63 characters", s->path, s->name,
             d->name ? "'" : "", d->name ? d->name : "missing", d->name ? "'" : "");
    snprintf(s->name, sizeof s->name, "%s %s", plugin_kind_name(d->kind), d->name);
    if (!version_ok(d->version))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid version '%s': must be like 1.0.0", s->path, s->name,
             d->version ? d->version : "missing");
    if (!d->summary || !*d->summary) FAIL(e, TARE_E_PLUGIN, "%s: %s: it has no summary", s->path, s->name);
    if (!d->functions) FAIL(e, TARE_E_PLUGIN, "%s: %s: missing function table", s->path, s->name);
    if (d->calls > TARE_CALLS_CONCURRENT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: unknown number %u for calls; must be a TARE_CALLS_... constant, or update tare", s->path,
             s->name, d->calls);
    if (d->flags || d->reserved)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: its descriptor has the unknown flags 0x%x (reserved 0x%x); set both to 0, or update tare",
             s->path, s->name, d->flags, d->reserved);
    TRY(plugin_check_line(s, "version", d->version, e));
    TRY(plugin_check_line(s, "summary", d->summary, e));
    TRY(plugin_check_line(s, "license", d->license, e));
    return check_about(s, d, e);
}

/* Validates a descriptor as the plugin after the n that are complete. */
static tare_status validate_one(struct plugin_subject *s, const tare_plugin *raw, const tare_descriptor *d, struct plugin *all,
                                uint32_t n, struct err *e)
{
    struct plugin *p = &all[n];
    memcpy(&p->desc, d, d->struct_size < sizeof p->desc ? d->struct_size : sizeof p->desc);
    TRY(check_descriptor(s, &p->desc, e));
    for (uint32_t j = 0; j < n; j++)
        if (all[j].desc.kind == p->desc.kind && !strcmp(all[j].desc.name, p->desc.name))
            FAIL(e, TARE_E_PLUGIN, "%s: %s: the file has two plugins of that name", s->path, s->name);
    TRY(plugin_copy_functions(s, p, e));
    TRY(plugin_copy_params(s, p, e));
    TRY(plugin_copy_wants(s, p, e));
    p->minor_built = raw->minor_built;
    p->build = raw->build;
    return TARE_OK;
}

static void free_copies(const struct plugin *p)
{
    mem_free((void *)(uintptr_t)p->head);
    mem_free((void *)(uintptr_t)p->params);
    mem_free((void *)(uintptr_t)p->wants);
    mem_free((void *)(uintptr_t)p->column);
}

/* Checks a descriptor's size, which is what the other checks read. */
static tare_status check_size(struct plugin_subject *s, const tare_descriptor *d, uint32_t i, struct err *e)
{
    snprintf(s->name, sizeof s->name, "descriptor %u", i + 1);
    if (!d) FAIL(e, TARE_E_PLUGIN, "%s: %s is NULL", s->path, s->name);
    if (d->struct_size < MIN_DESCRIPTOR || d->struct_size > PLUGIN_MOST_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: struct_size is %u, needed %d; set it to sizeof the descriptor", s->path, s->name,
             d->struct_size, MIN_DESCRIPTOR);
    return TARE_OK;
}

/* True for a plugin that a later host has a use for, so that the file's others can be used. why:
 * what a file with only such plugins is refused with. */
static bool passed_over(const struct plugin_subject *s, const tare_descriptor *d, char *why, size_t size)
{
    if (d->kind < PLUGIN_FIRST_KIND || d->kind > PLUGIN_LAST_KIND)
        snprintf(why, size, "a plugin of the unknown kind %d", d->kind);
    else if (d->minor_needed > TARE_ABI_MINOR)
        snprintf(why, size, "%s %.64s, which needs plugin ABI %d.%u", plugin_kind_name(d->kind), d->name ? d->name : "?",
                 TARE_ABI_MAJOR, d->minor_needed);
    else
        return false;
    log_info("%s: %s is ignored; this program has plugin ABI %d.%d", s->path, why, TARE_ABI_MAJOR, TARE_ABI_MINOR);
    return true;
}

static tare_status check_plugin(const char *path, const tare_plugin *raw, struct err *e)
{
    if (raw->struct_size < MIN_PLUGIN || raw->struct_size > PLUGIN_MOST_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: invalid size %u of its tare_plugin, at least %d; set struct_size to sizeof(tare_plugin)", path,
             raw->struct_size, MIN_PLUGIN);
    if (raw->flags)
        FAIL(e, TARE_E_PLUGIN, "%s: its tare_plugin has the unknown flags 0x%x; set flags to 0, or update tare", path, raw->flags);
    if (!raw->n_descriptors || raw->n_descriptors > TARE_LIMIT_DESCRIPTORS || !raw->descriptors)
        FAIL(e, TARE_E_PLUGIN, "%s: contains %u descriptors; must be 1 to %d", path, raw->n_descriptors, TARE_LIMIT_DESCRIPTORS);
    const struct plugin_subject file = {.path = path, .name = "the file"};
    TRY(plugin_check_line(&file, "build", raw->build, e));
    return TARE_OK;
}

static tare_status validate_all(const char *path, const tare_plugin *raw, struct plugin *all, uint32_t *n, struct err *e)
{
    struct plugin_subject s = {.path = path};
    char why[160] = "";
    for (uint32_t i = 0; i < raw->n_descriptors; i++) {
        TRY(check_size(&s, raw->descriptors[i], i, e));
        if (passed_over(&s, raw->descriptors[i], why, sizeof why)) continue;
        const tare_status status = validate_one(&s, raw, raw->descriptors[i], all, *n, e);
        if (status) {
            free_copies(&all[*n]);
            return status;
        }
        ++*n;
    }
    if (!*n)
        FAIL(e, TARE_E_VERSION, "%s: contains only %s; this program has plugin ABI %d.%d: update tare", path, why, TARE_ABI_MAJOR,
             TARE_ABI_MINOR);
    return TARE_OK;
}

tare_status plugin_validate(const char *path, const tare_plugin *raw, struct plugin **out, uint32_t *n, struct err *e)
{
    struct plugin *all;
    *out = NULL;
    *n = 0;
    TRY(check_plugin(path, raw, e));
    TRY(mem_new((int64_t)raw->n_descriptors * (int64_t)sizeof *all, (void **)&all, e));
    const tare_status status = validate_all(path, raw, all, n, e);
    if (status) {
        for (uint32_t i = 0; i < *n; i++) free_copies(&all[i]);
        mem_free(all);
        *n = 0;
        return status;
    }
    *out = all;
    return TARE_OK;
}
