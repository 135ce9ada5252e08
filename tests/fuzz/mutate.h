/* For targets whose inputs are JSON, at least in part: libFuzzer's next input is a tree with
 * other values. A text with other bytes is hardly ever JSON. A target defines
 * LLVMFuzzerCustomMutator with these functions. All random numbers come from libFuzzer's seed. */
#ifndef TARE_TESTS_MUTATE_H
#define TARE_TESTS_MUTATE_H

#include "json_change.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* libFuzzer's own changes of bytes, including its dictionary. Programs that only replay a corpus
 * lack it. */
extern size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

enum { MUTATE_CHANCE = 256, MUTATE_PLACES = 4096 };

/* Random bytes, read like the bytes of an input (bytes.h). */
struct chance {
    uint8_t raw[MUTATE_CHANCE];
    struct bytes b;
};

static inline void chance_begin(struct chance *c, unsigned seed)
{
    uint64_t x = seed;
    for (size_t i = 0; i < sizeof c->raw; i++) { /* splitmix64 */
        uint64_t z = x += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        c->raw[i] = (uint8_t)(z >> 56);
    }
    c->b = (struct bytes){c->raw, c->raw + sizeof c->raw};
}

static inline size_t chance_below(struct chance *c, size_t n)
{
    return ((size_t)byte(&c->b) << 8 | (size_t)byte(&c->b)) % n;
}

/* The parts of a kind of file, as JSON texts: they replace an existing value or are added to it. */
struct parts {
    const char *const *at;
    size_t n;
};
#define PARTS(LIST) ((struct parts){LIST, sizeof(LIST) / sizeof *(LIST)})

/* ---- places in a tree */

struct place {
    json_t *in;      /* an array or an object */
    const char *key; /* of an object */
    size_t i;        /* of an array */
};
struct places {
    struct place at[MUTATE_PLACES];
    size_t n;
};

static inline void places_add(struct places *p, json_t *in, const char *key, size_t i)
{
    if (p->n < MUTATE_PLACES) p->at[p->n++] = (struct place){in, key, i};
}

static inline void places_of(struct places *p, json_t *root)
{
    places_add(p, root, NULL, 0);
    /* The position of a value comes before those within it. */
    for (size_t next = 0; next < p->n; next++) {
        json_t *v = p->at[next].key ? json_object_get(p->at[next].in, p->at[next].key)
                    : next          ? json_array_get(p->at[next].in, p->at[next].i)
                                    : root;
        const char *key;
        json_t *child;
        json_object_foreach(v, key, child)
        {
            places_add(p, v, key, 0);
        }
        for (size_t i = 0; i < json_array_size(v); i++) places_add(p, v, NULL, i);
    }
}

static inline json_t *place_value(const struct place *p)
{
    return p->key ? json_object_get(p->in, p->key) : json_array_get(p->in, p->i);
}

/* Takes over the reference. */
static inline void place_put(const struct place *p, json_t *value)
{
    if (p->key)
        json_object_set_new(p->in, p->key, value);
    else
        json_array_set_new(p->in, p->i, value);
}

static inline json_t *part_any(const struct parts *parts, struct chance *c)
{
    json_t *out = json_loads(parts->at[chance_below(c, parts->n)], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!out) abort(); /* a list of the target that is not JSON */
    return out;
}

/* ---- changes of a tree */

/* Puts a part of the target, or a copy of another value, at a position: instead of the present
 * value, or next to it. */
static inline void mutate_place(json_t *root, const struct parts *parts, struct chance *c)
{
    static struct places places;
    char other[80];
    places.n = 0;
    places_of(&places, root);
    if (places.n < 2) return;
    const struct place *at = &places.at[1 + chance_below(c, places.n - 1)];
    const struct place *from = &places.at[1 + chance_below(c, places.n - 1)];
    json_t *value = chance_below(c, 3) ? part_any(parts, c) : json_deep_copy(place_value(from));
    const size_t how = chance_below(c, 4);
    if (how == 0 && !at->key) {
        json_array_insert_new(at->in, at->i, value);
    } else if (how == 0 && from->key) { /* under a name with another meaning elsewhere */
        snprintf(other, sizeof other, "%.79s", from->key);
        json_object_set_new(at->in, other, value);
    } else {
        place_put(at, value);
    }
}

/* Gives an object's members those of a part of the target, so that {"type": ...} becomes another
 * step with its fields. */
static inline void mutate_object(json_t *root, const struct parts *parts, struct chance *c)
{
    static struct places places;
    places.n = 0;
    places_of(&places, root);
    json_t *part = part_any(parts, c);
    const struct place *at = &places.at[chance_below(c, places.n)];
    json_t *v = at->in == root && !at->key && at == places.at ? root : place_value(at);
    if (json_is_object(part) && json_is_object(v)) json_object_update(v, part);
    json_decref(part);
}

static inline void mutate_tree(json_t *root, const struct parts *parts, struct chance *c)
{
    for (size_t i = 1 + chance_below(c, 3); i > 0; i--) {
        const size_t how = chance_below(c, 8);
        if (how < 3)
            json_change(root, &c->b);
        else if (how < 7)
            mutate_place(root, parts, c);
        else
            mutate_object(root, parts, c);
    }
}

/* Changes the tree of text, n bytes in a buffer of `room` bytes. If it is not JSON, and
 * sometimes otherwise, its bytes are changed. Returns the new size. */
static inline size_t mutate_json(uint8_t *text, size_t n, size_t room, const struct parts *parts, struct chance *c)
{
    json_t *root = NULL;
    struct err e = {0};
    struct str out = {0};
    if (chance_below(c, 8) == 0 || json_parse_wide((const char *)text, (int64_t)n, "fuzz", &root, &e))
        return LLVMFuzzerMutate(text, n, room);
    mutate_tree(root, parts, c);
    if (json_print(root, &out, &e)) abort();
    json_decref(root);
    if ((size_t)out.size <= room) {
        n = (size_t)out.size;
        memcpy(text, out.data, n);
    }
    str_free(&out);
    return n;
}

/* ---- inputs of several parts */

/* Bytes begin .. begin + n of an input. */
struct span {
    uint8_t *data;
    size_t size, max_size; /* of the input */
    size_t begin, n;
};
typedef size_t (*mutate_function)(uint8_t *part, size_t n, size_t room, struct chance *c);
/* Changes these bytes by f and moves the bytes after them. Returns the new size of the input. */
static inline size_t mutate_span(const struct span *s, mutate_function f, struct chance *c)
{
    const size_t after = s->size - s->begin - s->n, room = s->max_size - s->begin - after;
    uint8_t *part = malloc(room + 1), *rest = malloc(after + 1);
    if (!part || !rest) abort();
    memcpy(part, s->data + s->begin, s->n);
    memcpy(rest, s->data + s->begin + s->n, after);
    const size_t now = f(part, s->n, room, c);
    memcpy(s->data + s->begin, part, now);
    memcpy(s->data + s->begin + now, rest, after);
    free(part);
    free(rest);
    return s->begin + now + after;
}

#endif
