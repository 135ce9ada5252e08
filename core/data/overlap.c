#include "data/overlap.h"

#include "base/fs.h"

/* Non-ASCII bytes count as letters, so a question in Chinese keeps its text. */
int64_t overlap_normalise(tare_text question, char *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < question.size && n < OVERLAP_CHARACTERS; i++) {
        const unsigned char c = (unsigned char)question.data[i];
        if (c >= 'A' && c <= 'Z')
            out[n++] = (char)(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80)
            out[n++] = (char)c;
    }
    out[n] = 0;
    return n;
}

void overlap_init(struct overlap *o)
{
    *o = (struct overlap){0};
    arena_init(&o->arena, "evaluation questions");
}

static uint64_t key_of(tare_text question, int64_t *n)
{
    char text[OVERLAP_CHARACTERS + 1];
    *n = overlap_normalise(question, text);
    return fs_hash(text, *n, 2);
}

tare_status overlap_add(struct overlap *o, const char *path, struct err *e)
{
    OWNED(dataset_free) struct dataset d = {0};
    OWNED(str_free) struct str name = {0};
    TRY(dataset_load(path, 0, &d, e));
    for (int64_t i = 0; i < d.n; i++) {
        int64_t n, earlier;
        const uint64_t key = key_of(d.rows[i].question, &n);
        if (!n) continue;
        str_clear(&name);
        TRY(mem_grow((void **)&o->names, &o->capacity, o->n + 1, (int64_t)sizeof *o->names, e));
        TRY(str_addf(&name, e, "%s of %s", d.rows[i].id, path));
        TRY(arena_strdup(&o->arena, name.data, name.size, &o->names[o->n], e));
        TRY(hash_set_add(&o->seen, key, o->n++, &earlier, e));
    }
    return TARE_OK;
}

tare_status overlap_find(struct overlap *o, tare_text question, const char **name, struct err *e)
{
    int64_t n, earlier;
    const uint64_t key = key_of(question, &n);
    *name = NULL;
    if (!n || !o->n) return TARE_OK;
    /* a look-up also adds; hashes added here get an index beyond the evaluation rows */
    TRY(hash_set_add(&o->seen, key, o->n + o->extra++, &earlier, e));
    if (earlier >= 0 && earlier < o->n) *name = o->names[earlier];
    return TARE_OK;
}

void overlap_free(struct overlap *o)
{
    hash_set_free(&o->seen);
    mem_free(o->names);
    arena_free(&o->arena);
    *o = (struct overlap){0};
}
