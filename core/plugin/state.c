/* Saved state. The frame, little-endian:
 *
 *   "tarestat"  8 bytes
 *   u32         version of the frame: 1
 *   u32 x 5     kind; bytes of the name, of the vendor (tare_descriptor.about; 0: none), of the
 *               plugin's version, of the locked parameters ("key=value\n" each)
 *   u32         version of the plugin's format (tare_descriptor.state_version)
 *   u32         K of the run's codebook, for an estimator; else 0
 *   u64         bytes of the plugin's own state
 *   u64         XXH3 of everything before this word, xor XXH3 of everything after it
 *   name, vendor, version, locked parameters, state
 */
#include "base/fs.h"
#include "plugin/internal.h"

#include <stddef.h>
#include <string.h>

static const char MAGIC[8] = {'t', 'a', 'r', 'e', 's', 't', 'a', 't'};
enum { FRAME_VERSION = 1, VERSION_CAPACITY = 64 };

struct frame {
    char magic[8];
    uint32_t version, kind, name, vendor, plugin_version, locked;
    uint32_t state_version, clusters;
    uint64_t body, hash;
};

/* ---------------------------------------------------------------- streams */

/* Keeps the first bytes of a text for people, up to the end of a character. */
static tare_status keep_text(struct plugin_stream *s, const char *text, int64_t size)
{
    const int64_t room = s->keep - s->at;
    s->at = size > INT64_MAX - s->at ? INT64_MAX : s->at + size;
    if (room <= 0) return TARE_OK;
    for (int64_t i = room; size > room && i > 0; i--)
        if (((unsigned char)text[i] & 0xC0) != 0x80) {
            size = i;
            break;
        }
    return size == 0 ? TARE_OK : str_add(s->out, text, size < room ? size : room, NULL);
}

static tare_status write_bytes(struct plugin_stream *s, const void *data, int64_t size)
{
    if (size < 0 || (size && !data)) return TARE_E_INVALID;
    if (s->keep) return keep_text(s, data, size);
    s->full = s->full || size > PLUGIN_MOST_STATE - s->at;
    if (s->full) return TARE_E_RANGE;
    s->at += size;
    return size == 0 ? TARE_OK : str_add(s->out, data, size, NULL);
}

static tare_status read_bytes(struct plugin_stream *s, void *data, int64_t size)
{
    if (size < 0 || (size && !data)) return TARE_E_INVALID;
    if (size > s->size - s->at) return TARE_E_CORRUPT;
    if (size) memcpy(data, s->data + s->at, (size_t)size);
    s->at += size;
    return TARE_OK;
}

static tare_status stream_write(void *ctx, const void *data, int64_t size)
{
    struct plugin_stream *s = ctx;
    const tare_status status = write_bytes(s, data, size);
    if (!s->failed) s->failed = status;
    return status;
}

static tare_status stream_read(void *ctx, void *data, int64_t size)
{
    struct plugin_stream *s = ctx;
    const tare_status status = read_bytes(s, data, size);
    if (!s->failed) s->failed = status;
    return status;
}

tare_stream plugin_stream(struct plugin_stream *s)
{
    return (tare_stream){.struct_size = sizeof(tare_stream),
                         .ctx = s,
                         .write = s->out ? stream_write : NULL,
                         .read = s->out ? NULL : stream_read,
                         .size = s->out ? 0 : s->size,
                         .state_version = s->state_version};
}

tare_status plugin_stream_end(const struct plugin_stream *s, const struct plugin_instance *i, const char *phase, struct err *e)
{
    const char *kind = plugin_kind_name(i->plugin->desc.kind);
    if (s->full) FAIL(e, TARE_E_PLUGIN, "%s %s: %s wrote more than %lld GiB", kind, i->name, phase, PLUGIN_MOST_STATE >> 30);
    if (s->failed)
        FAIL(e, s->failed == TARE_E_INVALID ? TARE_E_PLUGIN : s->failed, "%s %s: %s goes on after its stream failed (%s): %s", kind,
             i->name, phase, err_name(s->failed), s->out ? "what it wrote is incomplete" : "it read bytes that are not there");
    return TARE_OK;
}

/* ---------------------------------------------------------------- the plugin's own bytes */

tare_status plugin_save_raw(const struct plugin_instance *i, struct str *out, struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.out = out};
    const tare_stream stream = plugin_stream(&s);
    const tare_head *head = i->plugin->head;
    if (!head->save) return TARE_OK;
    plugin_enter(&c);
    const int64_t start = out->size;
    const tare_status status = plugin_leave(&c, i, "save", -1, head->save(i->self, &stream, &c.error), e);
    if (s.full || !status) TRY(plugin_stream_end(&s, i, "save", e));
    TRY(status);
    return plugin_refuse_secrets(i, "save", out->data ? out->data + start : NULL, out->size - start, e);
}

/* version: the format's, of the plugin that wrote the bytes; 0: unknown */
static tare_status load_bytes(struct plugin_instance *i, const void *data, int64_t n, uint32_t version, const char *where,
                              struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.data = data, .size = n, .state_version = version};
    const tare_stream stream = plugin_stream(&s);
    const tare_head *head = i->plugin->head;
    const char *kind = plugin_kind_name(i->plugin->desc.kind), *name = i->plugin->desc.name;
    if (!head->load && n)
        FAIL(e, TARE_E_CORRUPT, "%s: unexpected %lld bytes of state: %s %s has no state", where, (long long)n, kind, name);
    if (!head->load) return TARE_OK;
    plugin_enter(&c);
    if (plugin_leave(&c, i, "load", -1, head->load(i->self, &stream, &c.error), e)) return err_prefix(e, "%s", where);
    if (plugin_stream_end(&s, i, "load", e)) return err_prefix(e, "%s", where);
    if (s.at != n)
        FAIL(e, TARE_E_CORRUPT, "%s: %s %s read %lld of %lld bytes of its state", where, kind, name, (long long)s.at, (long long)n);
    return plugin_resize(i, "load", e);
}

tare_status plugin_load_raw(struct plugin_instance *i, const void *data, int64_t n, const char *where, struct err *e)
{
    return load_bytes(i, data, n, 0, where, e);
}

/* ---------------------------------------------------------------- the frame */

/* Returns the author's name, which keeps the states of two authors' plugins of one name apart; "": none. */
static const char *vendor_of(const struct plugin *p)
{
    const char *vendor = plugin_about(p, "vendor");
    return vendor ? vendor : "";
}

/* Writes a parameter's value without the newline that ends it in the frame: "\\n" for a newline and
 * "\\\\" for a backslash. */
static tare_status locked_text(const struct plugin_instance *i, uint32_t param, tare_value value, struct str *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(plugin_value_text(i->plugin, param, value, &text, e));
    for (int64_t k = 0; k < text.size; k++) {
        const char c = text.data[k];
        TRY(c == '\n' ? str_add(out, "\\n", 2, e) : c == '\\' ? str_add(out, "\\\\", 2, e) : str_add(out, &c, 1, e));
    }
    return TARE_OK;
}

/* Returns the checksum of a frame. rest: the n bytes that follow the header. */
static uint64_t frame_hash(const struct frame *f, const void *rest, int64_t n)
{
    return fs_hash(f, (int64_t)offsetof(struct frame, hash), 0) ^ fs_hash(rest, n, 0);
}

static tare_status locked_params(const struct plugin_instance *i, struct str *out, struct err *e)
{
    for (uint32_t j = 0; j < i->plugin->desc.n_params; j++) {
        if (!(i->plugin->params[j].flags & TARE_PARAM_LOCKED_ON_RESUME)) continue;
        TRY(str_addf(out, e, "%s=", i->plugin->params[j].key));
        TRY(locked_text(i, j, i->values[j], out, e));
        TRY(str_add(out, "\n", 1, e));
    }
    return TARE_OK;
}

tare_status plugin_save(const struct plugin_instance *i, struct str *out, struct err *e)
{
    const struct plugin *p = i->plugin;
    const char *vendor = vendor_of(p);
    OWNED(str_free) struct str body = {0}, locked = {0};
    const int64_t start = out->size;
    struct frame f = {.version = FRAME_VERSION,
                      .kind = (uint32_t)p->desc.kind,
                      .name = (uint32_t)strlen(p->desc.name),
                      .vendor = (uint32_t)strlen(vendor),
                      .plugin_version = (uint32_t)strlen(p->desc.version),
                      .state_version = p->desc.state_version};
    memcpy(f.magic, MAGIC, sizeof MAGIC);
    f.clusters = (uint32_t)i->n_clusters;
    TRY(plugin_save_raw(i, &body, e));
    TRY(locked_params(i, &locked, e));
    f.locked = (uint32_t)locked.size;
    f.body = (uint64_t)body.size;
    TRY(str_add(out, (const char *)&f, sizeof f, e));
    TRY(str_add(out, p->desc.name, f.name, e));
    TRY(str_add(out, vendor, f.vendor, e));
    TRY(str_add(out, p->desc.version, f.plugin_version, e));
    if (locked.size) TRY(str_add(out, locked.data, locked.size, e));
    if (body.size) TRY(str_add(out, body.data, body.size, e));
    f.hash = frame_hash(&f, out->data + start + sizeof f, out->size - start - (int64_t)sizeof f);
    memcpy(out->data + start, &f, sizeof f);
    return TARE_OK;
}

/* Returns the value of a key in "key=value" lines, with its length in *n, or NULL if no line has
 * the key. */
static const char *locked_value(const char *lines, int64_t size, const char *key, int *n)
{
    const size_t length = strlen(key);
    for (const char *line = lines, *end = lines + size; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        if ((size_t)(stop - line) > length && !strncmp(line, key, length) && line[length] == '=') {
            *n = (int)(stop - line - (ptrdiff_t)length - 1);
            return line + length + 1;
        }
        line = stop + 1;
    }
    return NULL;
}

/* Returns a parameter's saved value, which an older plugin wrote with an earlier key. */
static const char *saved_value(const tare_param *param, const char *lines, int64_t size, int *n)
{
    const char *value = locked_value(lines, size, param->key, n);
    for (const char *const *old = param->old_keys; !value && old && *old; old++) value = locked_value(lines, size, *old, n);
    return value;
}

/* Checks that a locked parameter has the value that the state was saved with. A parameter that the
 * state does not name is newer than the state: the plugin that wrote it worked as with the default
 * (tare_param in sdk/include/tare/base.h). */
static tare_status check_locked_param(const struct plugin_instance *i, uint32_t param, const char *saved, int64_t n,
                                      const char *where, struct err *e)
{
    const struct plugin *p = i->plugin;
    const tare_param *row = &p->params[param];
    const char *kind = plugin_kind_name(p->desc.kind);
    OWNED(str_free) struct str now = {0}, fallback = {0};
    int then_size = 0;
    const char *then = saved_value(row, saved, n, &then_size);
    TRY(locked_text(i, param, i->values[param], &now, e));
    if (!then && row->fallback) {
        tare_value value;
        TRY(param_parse(row, row->fallback, "a default", &value, e));
        TRY(locked_text(i, param, value, &fallback, e));
        if (now.size != fallback.size || memcmp(now.data, fallback.data, (size_t)now.size))
            FAIL(
                e, TARE_E_CONFIG,
                "%s: saved before %s %s had the parameter %s, which is fixed for a run; the state can continue only with the default %s, but the configuration has %.*s",
                where, kind, p->desc.name, row->key, row->fallback, (int)now.size, now.data);
    } else if (!then) {
        FAIL(e, TARE_E_CONFIG, "%s: saved before %s %s had the parameter %s, which has no default", where, kind, p->desc.name,
             row->key);
    } else if ((now.size != then_size || (then_size && memcmp(now.data, then, (size_t)then_size)))) {
        FAIL(e, TARE_E_CONFIG,
             "%s: saved with %s=%.*s, but the configuration has %s=%.*s; this parameter of %s %s is fixed for a run", where,
             row->key, then_size, then, row->key, (int)now.size, now.size ? now.data : "", kind, p->desc.name);
    }
    return TARE_OK;
}

static bool param_has_name(const char *name, const char *key, size_t n)
{
    return strlen(name) == n && !memcmp(name, key, n);
}

static bool is_locked_param(const struct plugin *p, const char *key, size_t n)
{
    for (uint32_t j = 0; j < p->desc.n_params; j++) {
        if (!(p->params[j].flags & TARE_PARAM_LOCKED_ON_RESUME)) continue;
        if (param_has_name(p->params[j].key, key, n)) return true;
        for (const char *const *old = p->params[j].old_keys; old && *old; old++)
            if (param_has_name(*old, key, n)) return true;
    }
    return false;
}

static tare_status check_locked(const struct plugin_instance *i, const char *saved, int64_t n, const char *where, struct err *e)
{
    const struct plugin *p = i->plugin;
    for (uint32_t j = 0; j < p->desc.n_params; j++)
        if (p->params[j].flags & TARE_PARAM_LOCKED_ON_RESUME) TRY(check_locked_param(i, j, saved, n, where, e));
    for (const char *line = saved, *end = saved + n; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        const char *equals = memchr(line, '=', (size_t)(stop - line));
        if (!equals || !is_locked_param(p, line, (size_t)(equals - line)))
            FAIL(e, TARE_E_CONFIG, "%s: saved with %.*s, a fixed parameter that is unknown to this version of %s %s", where,
                 (int)(stop - line), line, plugin_kind_name(p->desc.kind), p->desc.name);
        line = stop + 1;
    }
    return TARE_OK;
}

/* Reads the header of a frame and checks that the whole frame is there and undamaged. */
static tare_status read_frame(const char *data, int64_t n, struct frame *f, const char *where, struct err *e)
{
    if (n < (int64_t)sizeof *f)
        FAIL(e, TARE_E_CORRUPT, "%s: cut short: %lld bytes; a saved state has at least %zu", where, (long long)n, sizeof *f);
    memcpy(f, data, sizeof *f);
    if (memcmp(f->magic, MAGIC, sizeof MAGIC)) FAIL(e, TARE_E_CORRUPT, "%s: not the saved state of a plugin", where);
    if (f->version != FRAME_VERSION)
        FAIL(e, TARE_E_VERSION, "%s: saved state of format %u; this program reads format %d", where, f->version, FRAME_VERSION);
    const int64_t most = n - (int64_t)sizeof *f;
    const uint64_t texts = (uint64_t)f->name + f->vendor + f->plugin_version + f->locked;
    if (texts > (uint64_t)most || f->body > (uint64_t)most - texts)
        FAIL(e, TARE_E_CORRUPT, "%s: cut short: %lld of %llu bytes", where, (long long)n,
             (unsigned long long)(sizeof *f + texts + f->body));
    if (frame_hash(f, data + sizeof *f, (int64_t)(texts + f->body)) != f->hash)
        FAIL(e, TARE_E_CORRUPT, "%s: damaged: the checksum does not match", where);
    return TARE_OK;
}

static tare_status check_frame(const struct plugin_instance *i, const char *data, int64_t n, struct frame *f, const char *where,
                               struct err *e)
{
    const struct plugin *p = i->plugin;
    const char *kind = plugin_kind_name(p->desc.kind), *text = data + sizeof *f;
    TRY(read_frame(data, n, f, where, e));
    if (f->kind != (uint32_t)p->desc.kind || f->name != strlen(p->desc.name) || memcmp(text, p->desc.name, f->name))
        FAIL(e, TARE_E_VERSION, "%s: the state of %s %.*s, but the configuration has %s %s", where,
             plugin_kind_name((int32_t)f->kind), (int)f->name, text, kind, p->desc.name);
    const char *vendor = vendor_of(p), *version = text + f->name + f->vendor;
    if (f->vendor != strlen(vendor) || memcmp(text + f->name, vendor, f->vendor))
        FAIL(e, TARE_E_VERSION, "%s: the state of %s %s by '%.*s', but this one is by '%s'", where, kind, p->desc.name,
             (int)f->vendor, text + f->name, vendor);
    if (!f->plugin_version || f->plugin_version >= VERSION_CAPACITY)
        FAIL(e, TARE_E_CORRUPT, "%s: missing version of %s %s", where, kind, p->desc.name);
    if (p->head->load && (f->state_version < p->desc.state_oldest || f->state_version > p->desc.state_version))
        FAIL(e, TARE_E_VERSION, "%s: format %u of the state, written by %s %s %.*s; version %s reads the formats %u to %u", where,
             f->state_version, kind, p->desc.name, (int)f->plugin_version, version, p->desc.version, p->desc.state_oldest,
             p->desc.state_version);
    TRY(check_locked(i, version + f->plugin_version, f->locked, where, e));
    if (f->clusters != (uint32_t)i->n_clusters)
        FAIL(e, TARE_E_CONFIG, "%s: saved with a codebook of %u clusters, but this run's has %lld", where, f->clusters,
             (long long)i->n_clusters);
    return TARE_OK;
}

tare_status plugin_load(struct plugin_instance *i, const void *data, int64_t n, int64_t *used, const char *where, struct err *e)
{
    struct frame f;
    TRY(check_frame(i, data, n, &f, where, e));
    const int64_t texts = (int64_t)f.name + f.vendor + f.plugin_version + f.locked,
                  total = (int64_t)sizeof f + texts + (int64_t)f.body;
    if (!used && total != n) FAIL(e, TARE_E_CORRUPT, "%s: unexpected %lld bytes after the state", where, (long long)(n - total));
    if (used) *used = total;
    const char *text = (const char *)data + sizeof f;
    return load_bytes(i, text + texts, (int64_t)f.body, f.state_version, where, e);
}

tare_status plugin_state_clusters(const void *data, int64_t n, const char *where, int64_t *clusters, struct err *e)
{
    struct frame f;
    TRY(read_frame(data, n, &f, where, e));
    *clusters = f.clusters;
    return TARE_OK;
}
