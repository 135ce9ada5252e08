#include "data/choices.h"

#include "base/json.h"
#include "base/rng.h"

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
    rng_shuffle(rng_derive(key, row->uid), order, n);
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
