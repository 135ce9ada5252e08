#include "cluster/corpus.h"

#include "base/fs.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

static tare_status add_text(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct corpus *c = ctx;
    tare_text text;
    TRY(json_get_text(object, json_object_get(object, "text") ? "text" : "question", where, &text, e));
    if (!text.size) FAIL(e, TARE_E_INVALID, "%s: the text must not be empty", where);
    char *copy;
    TRY(arena_strdup(&c->arena, text.data, text.size, &copy, e));
    TRY(mem_grow((void **)&c->texts, &c->capacity, c->n + 1, (int64_t)sizeof *c->texts, e));
    c->texts[c->n++] = (tare_text){copy, text.size};
    return TARE_OK;
}

tare_status corpus_read(FILE *f, const char *name, struct corpus *out, struct err *e)
{
    *out = (struct corpus){0};
    arena_init(&out->arena, "corpus");
    tare_status status = json_each_line(f, name, add_text, out, e);
    if (!status && !out->n)
        status = err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: must have lines of JSON with \"text\" or \"question\"", name);
    if (status) corpus_free(out);
    return status;
}

tare_status corpus_open(const char *path, struct corpus *out, struct err *e)
{
    *out = (struct corpus){0};
    OWNED(fs_close_at) FILE *f = fopen(path, "rb");
    if (!f) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    return corpus_read(f, path, out, e);
}

void corpus_free(struct corpus *c)
{
    mem_free(c->texts);
    arena_free(&c->arena);
    *c = (struct corpus){0};
}
