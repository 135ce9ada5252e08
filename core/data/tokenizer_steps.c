/* pre_tokenizer and decoder of tokenizer.json: how a text is split for the model, and how tokens
 * become text. */
#include "base/utf8.h"
#include "data/tokenizer_impl.h"
#include "data/tokenizer_json.h"

#include <string.h>

/* ---------------------------------------------------------------- pre_tokenizer */

static tare_status read_behavior(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext"};
    const char *behavior = json_text_or(p, "behavior", "");
    size_t k = 0;
    while (k < 4 && strcmp(names[k], behavior)) k++;
    if (k == 4)
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s: Split with behavior \"%.60s\" is not supported; use Isolated, Removed, MergedWithPrevious or MergedWithNext",
             where, behavior);
    if (k && json_bool_or(p, "invert", 0))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: Split with invert is supported with behavior Isolated only, not with %s", where, behavior);
    out->behavior = (enum split_behavior)k;
    return TARE_OK;
}

static tare_status read_split(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    struct split read = {0};
    tare_text pattern;
    bool literal;
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    TRY(read_behavior(&read, p, where, e));
    TRY(tokenizer_json_pattern(p, where, &pattern, &literal, e));
    if (read.behavior == SPLIT_ISOLATED) return pretokenize_regex(pattern.data, pattern.size, literal, where, out, e);
    *out = read;
    out->kind = SPLIT_REGEX;
    return regex_compile(pattern.data, pattern.size, literal, where, &out->regex, e);
}

static tare_status read_digits(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "individual_digits", NULL};
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    *out = (struct split){.kind = SPLIT_DIGITS, .individual = json_bool_or(p, "individual_digits", 0)};
    return TARE_OK;
}

/* Reads one character; n: its bytes. */
static tare_status read_mark(const json_t *p, const char *key, const char *where, tare_text *out, struct err *e)
{
    TRY(json_get_text(p, key, where, out, e));
    const unsigned char *at = (const unsigned char *)out->data;
    if (out->size) utf8_next(&at);
    if (!out->size || at != (const unsigned char *)out->data + out->size)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: %s is \"%.60s\": must be one character", where, key, out->data);
    return TARE_OK;
}

/* Older files have add_prefix_space instead of prepend_scheme "always", and no "split". */
static tare_status read_metaspace(struct metaspace *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep", NULL};
    static const char *const schemes[] = {"always", "first", "never"};
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    const json_t *adds = tokenizer_json_member(p, "add_prefix_space"), *scheme = tokenizer_json_member(p, "prepend_scheme");
    const char *name = json_is_string(scheme) ? json_string_value(scheme) : scheme ? "" : "always";
    tare_text mark;
    TRY(read_mark(p, "replacement", where, &mark, e));
    size_t k = 0;
    while (k < 3 && strcmp(schemes[k], name)) k++;
    if (k == 3)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: prepend_scheme \"%.60s\" is not supported; use always, first or never", where, name);
    if (json_is_false(adds) && k != PREFIX_NEVER) {
        if (scheme) FAIL(e, TARE_E_CORRUPT, "%s: add_prefix_space is false but prepend_scheme is \"%.60s\"", where, name);
        k = PREFIX_NEVER;
    }
    *out = (struct metaspace){.mark_size = (int)mark.size, .prefix = (enum metaspace_prefix)k, .cut = json_bool_or(p, "split", 1)};
    memcpy(out->mark, mark.data, (size_t)mark.size);
    return TARE_OK;
}

/* ByteLevel comes last: it converts pieces to bytes, and with use_regex first splits by GPT-2's
 * expression. */
static tare_status read_byte_level(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    if (json_bool_or(p, "add_prefix_space", 1))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: ByteLevel with add_prefix_space is not supported", where);
    if (!json_bool_or(p, "use_regex", 1)) return TARE_OK;
    return pretokenize_regex(PATTERN_GPT2, (int64_t)strlen(PATTERN_GPT2), false, where, &t->splits[t->n_splits++], e);
}

static tare_status read_white_space(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", NULL};
    *out = (struct split){.kind = SPLIT_WHITE_SPACE};
    return tokenizer_json_only_keys(p, keys, where, e);
}

static tare_status read_step(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    struct split *next = &t->splits[t->n_splits];
    const char *type = tokenizer_json_type(p);
    if (!strcmp(type, "ByteLevel")) return read_byte_level(t, p, where, e);
    t->n_splits++;
    if (!strcmp(type, "Split")) return read_split(next, p, where, e);
    if (!strcmp(type, "Digits")) return read_digits(next, p, where, e);
    if (!strcmp(type, "WhitespaceSplit")) return read_white_space(next, p, where, e);
    if (!strcmp(type, "Metaspace")) {
        next->kind = SPLIT_METASPACE;
        return read_metaspace(&next->metaspace, p, where, e);
    }
    FAIL(e, TARE_E_UNSUPPORTED, "%s: type \"%.60s\" is not supported; use Split, Digits, WhitespaceSplit, Metaspace or ByteLevel",
         where, type);
}

static tare_status read_pre_tokenizer(struct tokenizer *t, const json_t *pre, const char *where, struct err *e)
{
    const json_t *p;
    bool byte_level = false;
    for (size_t i = 0; pre && (p = tokenizer_json_part(pre, "pretokenizers", i)); i++) {
        char place[600];
        snprintf(place, sizeof place, "%.500s: pre_tokenizer[%zu]", where, i);
        if (byte_level) FAIL(e, TARE_E_UNSUPPORTED, "%s comes after ByteLevel, which must be last", place);
        if (t->n_splits == MAX_SPLITS) FAIL(e, TARE_E_UNSUPPORTED, "%s: more than %d steps are not supported", place, MAX_SPLITS);
        TRY(read_step(t, p, place, e));
        byte_level = !strcmp(tokenizer_json_type(p), "ByteLevel");
    }
    t->model.vocab.spelling.byte_level = byte_level;
    return TARE_OK;
}

/* ---------------------------------------------------------------- decoder */

static tare_status set_mark(struct spelling *s, tare_text mark, tare_text in_place, const char *where, struct err *e)
{
    if (!mark.size || mark.size > (int64_t)sizeof s->mark || in_place.size > (int64_t)sizeof s->in_place)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: Replace of \"%.60s\" by \"%.60s\" is not supported; use 1 to %d bytes", where, mark.data,
             in_place.data, (int)sizeof s->mark);
    memcpy(s->mark, mark.data, (size_t)mark.size);
    memcpy(s->in_place, in_place.data, (size_t)in_place.size);
    s->mark_size = (int)mark.size;
    s->in_place_size = (int)in_place.size;
    return TARE_OK;
}

static tare_status read_replace(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    tare_text mark, in_place;
    bool literal;
    TRY(tokenizer_json_pattern(p, where, &mark, &literal, e));
    TRY(json_get_text(p, "content", where, &in_place, e));
    if (!literal) FAIL(e, TARE_E_UNSUPPORTED, "%s: Replace by an expression is not supported; use pattern.String", where);
    return set_mark(&t->model.vocab.spelling, mark, in_place, where, e);
}

static tare_status read_metaspace_decoder(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    struct metaspace m;
    TRY(read_metaspace(&m, p, where, e));
    t->decoding.drops_first_marks = m.prefix != PREFIX_NEVER;
    return set_mark(&t->model.vocab.spelling, (tare_text){m.mark, m.mark_size}, (tare_text){" ", 1}, where, e);
}

static tare_status read_strip(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    tare_text content;
    TRY(read_mark(p, "content", where, &content, e));
    TRY(json_get_int(p, "start", where, &t->decoding.n_first, e));
    if (t->decoding.n_first < 0 || json_int_or(p, "stop", -1) != 0)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: Strip is supported with a start of 0 or more and with stop 0", where);
    return str_add(&t->decoding.first, content.data, content.size, e);
}

static tare_status read_byte_fallback(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    (void)p, (void)where, (void)e;
    t->model.vocab.spelling.byte_tokens = true;
    return TARE_OK;
}

static tare_status read_fuse(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    (void)t, (void)p, (void)where, (void)e;
    return TARE_OK;
}

/* Reads the decoder. Its steps must be a subset of the supported ones, in their fixed order. */
static tare_status read_decoder(struct tokenizer *t, const json_t *decoder, const char *where, struct err *e)
{
    static const struct step {
        const char *type;
        tare_status (*read)(struct tokenizer *t, const json_t *p, const char *where, struct err *e);
    } order[] = {{"Metaspace", read_metaspace_decoder},
                 {"Replace", read_replace},
                 {"ByteFallback", read_byte_fallback},
                 {"Fuse", read_fuse},
                 {"Strip", read_strip}};
    const json_t *p;
    size_t done = 0;
    bool fused = false;
    for (size_t i = 0; decoder && (p = tokenizer_json_part(decoder, "decoders", i)); i++) {
        char place[600];
        snprintf(place, sizeof place, "%.500s: decoder[%zu]", where, i);
        const char *type = tokenizer_json_type(p);
        size_t k = done;
        while (k < 5 && strcmp(order[k].type, type)) k++;
        if (k == 5 || (k == 1 && done) || (k == 4 && !fused))
            FAIL(
                e, TARE_E_UNSUPPORTED,
                "%s: \"%.60s\" is not supported here; use ByteLevel alone, or Metaspace or Replace, then ByteFallback, Fuse and Strip",
                place, type);
        TRY(order[k].read(t, p, place, e));
        fused = k == 3;
        done = k + 1;
    }
    if (!done) FAIL(e, TARE_E_UNSUPPORTED, "%s: missing decoder; decoding tokens with spaces between them is not supported", where);
    return TARE_OK;
}

static tare_status read_byte_level_decoder(const json_t *decoder, const char *where, struct err *e)
{
    const json_t *p;
    size_t n = 0;
    for (; decoder && (p = tokenizer_json_part(decoder, "decoders", n)); n++)
        if (strcmp(tokenizer_json_type(p), "ByteLevel"))
            FAIL(e, TARE_E_UNSUPPORTED,
                 "%s: decoder of type \"%.60s\" is not supported with a pre_tokenizer ByteLevel; use ByteLevel", where,
                 tokenizer_json_type(p));
    if (n != 1) FAIL(e, TARE_E_UNSUPPORTED, "%s: the decoder must be a single ByteLevel", where);
    return TARE_OK;
}

tare_status tokenizer_read_steps(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    TRY(read_pre_tokenizer(t, tokenizer_json_member(root, "pre_tokenizer"), where, e));
    const json_t *decoder = tokenizer_json_member(root, "decoder");
    return t->model.vocab.spelling.byte_level ? read_byte_level_decoder(decoder, where, e) : read_decoder(t, decoder, where, e);
}
