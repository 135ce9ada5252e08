#define _GNU_SOURCE /* memmem */
#include "data/choices.h"

#include "base/json.h"
#include "base/rng.h"

#include <string.h>

static bool has_options(const struct row *row)
{
    return row->n_choices && !row->messages.data;
}

static tare_status too_many(const struct row *row, struct err *e)
{
    FAIL(e, TARE_E_RANGE, "%s: %lld choices, but there are letters for at most %d", row->where, (long long)row->n_choices,
         MAX_CHOICES);
}

tare_status choices_render(const struct row *row, struct str *out, struct err *e)
{
    if (!has_options(row)) return TARE_OK;
    if (row->n_choices > MAX_CHOICES) return too_many(row, e);
    TRY(str_add(out, "\n", 1, e));
    for (int64_t i = 0; i < row->n_choices; i++) {
        TRY(str_addf(out, e, "\n%c. ", (char)('A' + i)));
        TRY(str_add(out, row->choices[i].data, row->choices[i].size, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- options that speak of others */

/* One word of an option's text, in lower case; empty: too long to be one of a list. */
struct word {
    char text[16];
    char letter; /* A to Z: a single letter; 0: a longer word */
    bool capital;
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads the words of t: runs of letters, digits and bytes beyond ASCII. Returns their number, at most
 * `most`; further ones are not read. *rest: there are further ones. */
static int read_words(tare_text t, struct word *w, int most, bool *rest)
{
    int n = 0;
    for (int64_t i = 0; i < t.size;) {
        int64_t end = i;
        while (end < t.size && (is_letter(t.data[end]) || (t.data[end] >= '0' && t.data[end] <= '9') ||
                                (unsigned char)t.data[end] >= 0x80 || t.data[end] == '\'' || t.data[end] == '-'))
            end++;
        if (end == i) {
            i++;
            continue;
        }
        if (n == most) return *rest = true, n;
        w[n] = (struct word){0};
        if (end - i < (int64_t)sizeof w[n].text)
            for (int64_t k = i; k < end; k++)
                w[n].text[k - i] = (char)(t.data[k] >= 'A' && t.data[k] <= 'Z' ? t.data[k] - 'A' + 'a' : t.data[k]);
        if (end == i + 1 && is_letter(t.data[i])) {
            w[n].letter = (char)(w[n].text[0] - 'a' + 'A');
            w[n].capital = t.data[i] < 'a';
        }
        n++;
        i = end;
    }
    return n;
}

static bool word_in(const struct word *w, const char *list)
{
    for (const char *p = list; *p;) {
        const size_t n = strcspn(p, "|");
        if (strlen(w->text) == n && !memcmp(w->text, p, n)) return true;
        p += n + (p[n] != 0);
    }
    return false;
}

/* Returns whether the text names other options by their letters: "both A and B", "all except C", "B,
 * but not A". */
static bool names_letters(tare_text t, int64_t n_choices)
{
    static const char JOINS[] =
        "both|neither|nor|either|and|or|only|all|any|except|but|not|the|same|as|option|options|choice|choices|answer|"
        "answers|of|above|none|plus|are|is|correct|true|right|wrong|false|incorrect|statement|statements|other|"
        "than|with|together|alone|just|y|o|ni|und|oder|et|ou|e|nur";
    enum { MOST = 24 };
    struct word w[MOST];
    bool rest = false;
    const int n = read_words(t, w, MOST, &rest);
    int letters = 0, capitals = 0, joins = 0, others = 0;
    for (int i = 0; i < n; i++) {
        const bool letter = w[i].letter && w[i].letter - 'A' < n_choices && w[i].letter != 'I';
        /* "both A and B are true because ..." */
        if (letter && w[i].capital && i > 0 && word_in(&w[i - 1], "option|choice|answer|options|choices")) return true;
        if (letter && w[i].capital && i > 0 && i + 2 < n && word_in(&w[i - 1], "both|neither|either") &&
            word_in(&w[i + 1], "and|or|nor") && w[i + 2].letter)
            return true;
        if (letter && (w[i].capital || !word_in(&w[i], JOINS))) {
            letters++;
            capitals += w[i].capital;
        } else if (word_in(&w[i], JOINS)) {
            joins++;
        } else {
            others++;
        }
    }
    return !others && !rest && joins && (capitals || letters > 1);
}

static bool holds_text(tare_text t, const char *part)
{
    const size_t n = strlen(part);
    return t.size && memmem(t.data, (size_t)t.size, part, n) != NULL;
}

/* Returns whether the text speaks of the options around it: "all of the above", "none of these". */
static bool speaks_of_place(tare_text t)
{
    static const char *const abroad[] = {
        "oben genannt",
        "obigen",
        "ci-dessus",
        "de ces r\xC3\xA9ponses",
        "las anteriores",
        "los anteriores",
        "as anteriores",
        "os anteriores",
        "delle precedenti",
        "dei precedenti",
        "bovenstaande",
        "\xE4\xBB\xA5\xE4\xB8\x8A" /* "above" in Chinese */,
        "\xE4\xB8\x8A\xE8\xBF\xB0",
        "\xE4\xB8\x8A\xE8\xA8\x98",
        "\xD0\xB2\xD1\x8B\xD1\x88\xD0\xB5\xD0\xBF\xD0\xB5\xD1\x80\xD0\xB5\xD1\x87\xD0\xB8\xD1\x81\xD0\xBB\xD0\xB5\xD0\xBD\xD0\xBD" /* and in Russian */
        ,
        NULL};
    enum { MOST = 12 };
    struct word w[MOST];
    bool rest = false;
    const int n = read_words(t, w, MOST, &rest);
    for (const char *const *p = abroad; *p; p++)
        if (t.size < 120 && holds_text(t, *p)) return true;
    for (int i = 0; i + 1 < n; i++) { /* "of the above", "the preceding options" */
        const bool the = word_in(&w[i], "the|all|of") && word_in(&w[i + 1], "above|preceding|foregoing|aforementioned");
        if (the &&
            (i + 2 == n ||
             word_in(&w[i + 2], "is|are|options|choices|answers|statements|except|but|were|apply|reasons|factors|mentioned")))
            return true;
        if (word_in(&w[i], "first|last|previous|other") &&
            word_in(&w[i + 1], "two|three|four|options|choices|answers|option|choice|answer") &&
            (i + 2 == n || word_in(&w[i + 2], "options|choices|answers|are|only|above")))
            return true;
    }
    int i = 0;
    if (rest || n < 2 || !word_in(&w[i++], "all|none|both|any|either|neither|some|each|two|more|one")) return false;
    while (i < n && word_in(&w[i], "of|the|than|one|or|more|answers|options|choices")) i++;
    if (i < n && word_in(&w[i], "above|below|these|those|them|others|other|listed|given|mentioned"))
        i++;
    else if (!(n > 2 && word_in(&w[i - 1], "options|choices|answers")))
        return false;
    while (i < n && word_in(&w[i], "answers|options|choices|is|are|correct|true|apply|statements|above|listed|given|reasons")) i++;
    return i == n;
}

/* Returns whether the option carries the letter of its place: "A. 10", "(B) 12". */
static bool carries_letter(tare_text t, int64_t i)
{
    const int64_t at = t.size > 1 && t.data[0] == '(';
    return t.size > at + 2 && t.data[at] == (char)('A' + i) && strchr(".):", t.data[at + 1]) && (t.data[at + 2] == ' ' || at);
}

int64_t choices_movable(const struct row *row, const char **why)
{
    const int64_t n = row->n_choices;
    int64_t place = n, own = 0;
    *why = NULL;
    for (int64_t i = 0; i < n; i++) {
        const tare_text t = row->choices[i];
        own += carries_letter(t, i);
        if (names_letters(t, n)) return *why = "an option names others by their letters", 0;
        if (speaks_of_place(t)) {
            if (place == n) place = i;
        } else if (place < n) {
            return *why = "an option speaks of those above it, and is not the last", 0;
        }
    }
    if (own == n && n) return *why = "the options carry their letters", 0;
    if (place < n) *why = "the last option speaks of those above it, and stays last";
    return place;
}

/* Rewrites the row's JSON for the new order. */
static tare_status rewrite_json(struct row *row, const char *letters, struct arena *a, struct err *e)
{
    OWNED(json_decrefp) json_t *o = NULL, *list = json_array();
    OWNED(str_free) struct str text = {0};
    bool bad = !list;
    TRY(json_parse(row->json.data, row->json.size, row->where, &o, e));
    for (int64_t i = 0; !bad && i < row->n_choices; i++)
        bad = json_array_append_new(list, json_stringn(row->choices[i].data, (size_t)row->choices[i].size)) != 0;
    if (!bad) {
        bad = json_object_set(o, "choices", list) ||
              json_object_set_new(o, "answer", json_stringn(row->answer.data, (size_t)row->answer.size)) ||
              json_object_set_new(o, "choice_order", json_string(letters));
    }
    if (bad) FAIL(e, TARE_E_NOMEM, "no memory for the choices of a row");
    TRY(json_print(o, &text, e));
    char *copy = NULL;
    TRY(arena_strdup(a, text.data, text.size, &copy, e));
    row->json = (tare_text){copy, text.size};
    return TARE_OK;
}

static tare_status permute_row(struct row *row, struct rng_key key, struct arena *a, struct err *e)
{
    int64_t order[MAX_CHOICES], n = row->n_choices;
    tare_text *choices;
    char *answer, letters[MAX_CHOICES + 1] = {0};
    if (n > MAX_CHOICES) return too_many(row, e);
    const int64_t right = row->answer.size == 1 ? row->answer.data[0] - 'A' : -1;
    if (right < 0 || right >= n)
        FAIL(e, TARE_E_INVALID, "%s: the answer is not the letter of one of the %lld choices (A to %c)", row->where, (long long)n,
             (char)('A' + n - 1));
    for (int64_t i = 0; i < n; i++) order[i] = i;
    const char *why;
    rng_shuffle(rng_derive(key, row->uid), order, choices_movable(row, &why));
    TRY(arena_new(a, &choices, n, e));
    TRY(arena_strdup(a, "?", 1, &answer, e));
    for (int64_t i = 0; i < n; i++) {
        choices[i] = row->choices[order[i]];
        letters[i] = (char)('A' + order[i]);
        if (order[i] == right) answer[0] = (char)('A' + i);
    }
    row->choices = choices;
    row->answer = (tare_text){answer, 1};
    return rewrite_json(row, letters, a, e);
}

tare_status choices_permute(struct dataset *d, uint64_t seed, struct err *e)
{
    /* "choices" */
    const struct rng_key key = rng_derive(rng_key(seed, RNG_DATA), 0x63686F69636573u);
    for (int64_t i = 0; i < d->n; i++)
        if (has_options(&d->rows[i]) && d->rows[i].answer.size) TRY(permute_row(&d->rows[i], key, &d->arena, e));
    return TARE_OK;
}
