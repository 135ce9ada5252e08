/* Reads an answer with words, which prose_cut.c has split into words and the text between them.
 * Words are classified by their roles (phrases.c), numbers in words become numerals (numerals.c),
 * and the result is TeX: names before a value are stored separately, words after a value remain as
 * what it counts, reasons are dropped. Text that cannot be read is refused, never dropped. */
#include "prose.h"

#include "numerals.h"
#include "units.h"

#include <stdio.h>
#include <string.h>

struct reader {
    struct prose_item *items;
    int n;
    bool refused, numbers; /* numbers: read those in words */
    struct prose *out;
    bool value;      /* seen since the last relation sign or joint */
    bool in_words;   /* a \text{ is open in out */
    int closing;     /* braces to close at the end */
    int64_t between; /* position + 1 in out of the ( of "between"; 0: none */
    bool halves;     /* the "and" after "between" was read */
    /* the last word before a value, since a verb of being, a sign or a joint; size 0: none */
    tare_text word;
    tare_text governor; /* the name before word, if that is a preposition */
    bool doubt;         /* it may change the preceding value */
    bool complement;    /* after "12 is": words that need not mean 12 */
    bool dangling;      /* after "and", "or": value missing */
    bool condition;     /* after "if", "when" */
};

/* ---------------------------------------------------------------- writing */

static void put_bytes(struct reader *r, const char *s, int64_t n)
{
    struct prose *o = r->out;
    if (o->size + n + 2 > (int64_t)sizeof o->tex) {
        r->refused = true;
        return;
    }
    memcpy(o->tex + o->size, s, (size_t)n);
    o->size += n;
}

static void put_text(struct reader *r, const char *s)
{
    put_bytes(r, s, (int64_t)strlen(s));
}

static void end_words(struct reader *r)
{
    if (r->in_words) put_text(r, "}");
    r->in_words = false;
}

static void put_word(struct reader *r, tare_text w)
{
    put_text(r, r->in_words ? " " : "\\text{ ");
    put_bytes(r, w.data, w.size);
    r->in_words = true;
}

static void put_name(struct reader *r, tare_text w)
{
    struct prose *o = r->out;
    const struct word *known = find_command(w.data, w.size);
    if (is_answer_noun(w)) return;
    if (!is_kind_noun(w) &&
        (find_function(w.data, w.size) || (known && (known->kind == T_DET || known->kind == T_LIM || known->kind == T_MARK)))) {
        r->refused = true; /* \text{floor} 3.5: not a name, it changes the value */
        return;
    }
    o->bare_name = true;
    if (o->n_names + w.size + 1 > PROSE_NAMES) {
        r->refused = true;
        return;
    }
    for (int64_t i = 0; i < w.size; i++) o->names[o->n_names++] = text_lower(w.data[i]);
    o->names[o->n_names++] = ' ';
}

/* Checks whether a value may follow the words before it. */
static void meet_value(struct reader *r)
{
    const bool money = unit_is_money(find_unit(r->word.data, r->word.size, true)); /* USD 5 */
    if (r->word.size && !money && !may_precede(r->governor, r->word)) r->doubt = true;
    r->word.size = r->governor.size = 0;
    r->complement = r->dangling = false;
}

/* Returns whether it has a digit, a letter or a command with a meaning. */
static bool holds_value(tare_text t)
{
    for (int64_t i = 0; i < t.size; i++) {
        if (text_is_digit(t.data[i]) || text_is_letter(t.data[i])) return true;
        if (t.data[i] != '\\') continue;
        int64_t k = i + 1;
        while (k < t.size && text_is_letter(t.data[k])) k++;
        const struct word *w = find_command(t.data + i + 1, k - i - 1);
        if (w && w->kind != T_SKIP) return true;
        i = k > i + 1 ? k - 1 : k;
    }
    return false;
}

static void put_mathematics(struct reader *r, tare_text t)
{
    while (!r->out->size && t.size && (text_is_space(t.data[0]) || strchr(":,=", t.data[0]))) {
        if (!text_is_space(t.data[0])) r->out->bare_name = false, r->word.size = 0;
        t = text_slice(t, 1, t.size);
    }
    if (!r->out->size && t.size > 1 && t.data[0] == '\\' && strchr(" ,;:!", t.data[1])) {
        put_mathematics(r, text_slice(t, 2, t.size));
        return;
    }
    if (!t.size) return;
    end_words(r);
    /* a name before a sign */
    if (strchr(":=", text_trim(t).size ? text_trim(t).data[0] : 'x')) r->word.size = 0, r->doubt = false;
    if (holds_value(t)) r->value = true, meet_value(r);
    r->out->value |= r->value;
    put_bytes(r, t.data, t.size);
    if (strchr("<>=", text_trim(t).size ? text_trim(t).data[text_trim(t).size - 1] : 'x')) r->value = false;
}

static tare_text last_written(const struct reader *r)
{
    return text_trim((tare_text){r->out->tex, r->out->size});
}

static bool ends_in_digit(const struct reader *r)
{
    const tare_text t = last_written(r);
    return t.size && text_is_digit(t.data[t.size - 1]);
}

static bool starts_with_digit(const struct reader *r, int i)
{
    if (i >= r->n) return false;
    const tare_text t = text_trim(r->items[i].t);
    return r->items[i].word ? is_numeral_word(t) : t.size && text_is_digit(t.data[0]);
}

static void put_numeral(struct reader *r, const char *numeral, int next)
{
    char again[NUMERAL_TEXT + 4];
    end_words(r);
    put_text(r, numeral);
    meet_value(r);
    r->value = r->out->value = true;
    snprintf(again, sizeof again, "(%s)", numeral); /* five (5) */
    if (next < r->n && !r->items[next].word) {
        const tare_text t = text_trim(r->items[next].t);
        if (text_starts(t, 0, again, false)) r->items[next].t = text_slice(t, (int64_t)strlen(again), t.size);
    }
}

/* ---------------------------------------------------------------- reading */

/* Returns true if the rest is about something else: "not 13" after a value and a comma, "and no
 * pears". */
static bool excludes_another(const struct reader *r)
{
    const tare_text t = last_written(r);
    return r->out->value && t.size && t.data[t.size - 1] == ',';
}

static void read_is(struct reader *r)
{
    end_words(r);
    r->word.size = 0, r->doubt = false;
    if (!r->out->value) {
        r->out->size = 0, r->out->bare_name = false;
    } else if (r->value) {
        put_text(r, " = ");
        r->value = false;
    }
}

/* Writes roles that become a sign between values. false: another role. */
static bool write_sign(struct reader *r, enum role role, const char *tex)
{
    switch (role) {
    case ROLE_IS:
        return read_is(r), true;
    case ROLE_TEX:
        end_words(r);
        put_text(r, tex);
        /* \infty, \pi */
        if (strchr("\\", *tex) && strchr("ip", tex[1])) r->value = r->out->value = true;
        return true;
    case ROLE_RELATE:
        end_words(r);
        put_text(r, tex);
        r->value = false;
        return true;
    case ROLE_EXCEPT:
        end_words(r);
        put_text(r, " \\setminus \\{");
        r->closing++;
        return true;
    case ROLE_BOUND:
        if (!r->value) r->refused = true;
        end_words(r);
        put_text(r, tex);
        r->value = false;
        return true;
    case ROLE_BETWEEN:
        end_words(r);
        r->refused |= r->between > 0;
        r->between = r->out->size + 1;
        put_text(r, "(");
        r->value = false;
        return true;
    case ROLE_CLOSED:
        if (!r->halves) r->refused = true;
        if (r->between) r->out->tex[r->between - 1] = '[';
        return true;
    case ROLE_JOINT:
        end_words(r);
        if (r->between && !r->halves && *tex == 'a') {
            r->halves = true;
            put_text(r, ", ");
            return r->value = false, true;
        }
        put_text(r, *tex == 'a' ? "\\text{ and }" : "\\text{ or }");
        r->dangling = true;
        r->value = false;
        return true;
    default:
        return false;
    }
}

/* Skips the letter after "all real": that of the variable. */
static int skip_variable(const struct reader *r, int i)
{
    const tare_text t = i < r->n && !r->items[i].word ? text_trim(r->items[i].t) : (tare_text){"", 0};
    return t.size == 1 && text_is_letter(t.data[0]) ? i + 1 : i;
}

/* Writes the sign of a ratio between two integers: 1 in 4, 3 to 4. */
static void write_ratio(struct reader *r, tare_text word, const char *tex, int next)
{
    if (r->value && !r->in_words && ends_in_digit(r) && starts_with_digit(r, next))
        put_text(r, tex), r->value = false;
    else if (text_equal(word, text_of("over"), true)) /* over 50 */
        r->refused = true;
    else if (r->value && text_equal(word, text_of("in"), true)) /* inches, perhaps */
        put_word(r, word);
}

static void write_condition(struct reader *r, const char *word)
{
    if (!r->out->value) return;
    r->condition = true;
    end_words(r);
    put_text(r, "\\text{ ");
    put_text(r, word);
    put_text(r, " }");
}

static void write_base(struct reader *r, int next)
{
    if (!r->value || !starts_with_digit(r, next) || r->items[next].word) {
        r->refused = true;
        return;
    }
    end_words(r);
    put_text(r, "_");
    r->items[next].t = text_trim(r->items[next].t);
}

/* Reads a word of the open classes: what is counted, the variable, or a name before a value. */
static void read_name(struct reader *r, tare_text w)
{
    if (r->value) {
        r->refused |= is_multiple(w) && !is_numeral_word(w);
        put_word(r, w);
    } else if (w.size == 1) { /* x is at least 3 */
        put_mathematics(r, w);
    } else {
        /* 5 is unlikely */
        r->complement |= r->out->value && !r->word.size && !may_precede((tare_text){"", 0}, w);
        r->word = w;
        put_name(r, w);
    }
}

/* Reads the words at i by their role. Returns the item after them; r->n: ignore the rest. */
static int read_role(struct reader *r, int i, const tare_text *words, int n)
{
    int used;
    const char *tex;
    const enum role role = phrase_role(words, n, &used, &tex);
    const int next = i + used;
    if (role == ROLE_RATIO && !r->value)
        r->governor = r->word, r->word = words[0];
    else if (role != ROLE_OPEN && role != ROLE_DROP)
        r->word.size = 0;
    if (write_sign(r, role, tex)) return next;
    switch (role) {
    case ROLE_OPEN:
        read_name(r, words[0]);
        return next;
    case ROLE_DROP:
        r->refused |= r->value && is_auxiliary(words[0]); /* 5 would do */
        return next;
    case ROLE_RATIO:
        return write_ratio(r, words[0], tex, next), next;
    case ROLE_BASE:
        return write_base(r, next), next;
    case ROLE_SET:
        end_words(r);
        put_text(r, tex);
        r->dangling = false;
        r->value = r->out->value = true;
        return skip_variable(r, next);
    case ROLE_WHERE:
        return write_condition(r, tex), next;
    case ROLE_REASON:
        return r->out->value ? r->n : next;
    case ROLE_THEN:
        end_words(r);
        if (next < r->n) r->out->size = r->out->n_names = 0, r->value = r->out->value = r->doubt = false;
        return next;
    default:
        if (role == ROLE_NOT && !r->out->value && text_equal(words[0], text_of("not"), true)) {
            for (int k = next; k < r->n; k++) /* not 8 but 7 */
                if (r->items[k].word && text_equal(r->items[k].t, text_of("but"), true)) return k + 1;
        }
        r->refused = role != ROLE_NOT || !excludes_another(r);
        return r->n;
    }
}

/* Returns true if a fraction follows the joint at i, as in "2 and a half". *used: items
 * read. */
static bool is_mixed(const struct reader *r, int i, const tare_text *words, int n, char *numeral, int *used)
{
    if (n < 3 || !r->numbers || !text_equal(words[0], text_of("and"), true) || !ends_in_digit(r)) return false;
    *used = 1 + read_numeral(words + 1, n - 1, i + n == r->n, numeral);
    return *used > 1 && *numeral == '\\';
}

static void read_items(struct reader *r)
{
    for (int i = 0; i < r->n && !r->refused;) {
        tare_text words[12];
        char numeral[NUMERAL_TEXT];
        int n = 0, used;
        if (r->items[i].stop) {
            if (r->out->value) return;
            i++;
            continue;
        }
        if (!r->items[i].word) {
            const tare_text t = r->items[i++].t;
            put_mathematics(r, t);
            continue;
        }
        while (n < 12 && i + n < r->n) { /* blanks between words are not mathematics */
            if (!r->items[i + n].word) break;
            words[n] = r->items[i + n].t;
            n++;
        }
        if (is_mixed(r, i, words, n, numeral, &used)) {
            put_numeral(r, numeral, i += used);
        } else if (!r->value && r->numbers && (used = read_numeral(words, n, i + n == r->n, numeral))) {
            put_numeral(r, numeral, i += used);
        } else {
            i = read_role(r, i, words, n);
        }
    }
}

/* Removes blank items, so that adjacent words form phrases. */
static void drop_blanks(struct reader *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->items[i].word || text_trim(r->items[i].t).size) r->items[n++] = r->items[i];
    r->n = n;
}

static bool names_one(tare_text w)
{
    int used;
    const char *tex;
    const enum role role = phrase_role(&w, 1, &used, &tex);
    return role != ROLE_DROP && role != ROLE_IS && role != ROLE_RATIO && !is_answer_noun(w);
}

/* Returns the item after the last "is" that has text on both sides and no negation before it; 0:
 * none. */
static int find_predicate(const struct reader *r)
{
    int found = 0, used;
    const char *tex;
    bool before = false;
    for (int i = 0; i + 1 < r->n; i++) {
        const tare_text w = r->items[i].t;
        if (!r->items[i].word) continue;
        const enum role role = phrase_role(&w, 1, &used, &tex);
        if (role == ROLE_NOT || role == ROLE_REFUSED) return found;
        if (role == ROLE_IS && before) found = i + 1;
        before |= names_one(w);
    }
    return found;
}

/* Writes the answer of a text without a value. Names and negations are the answer; the subject of
 * "is", and nouns that only give the kind of thing, are names before it. */
static void write_words(struct reader *r)
{
    int used;
    const char *tex;
    r->out->size = r->out->n_names = 0;
    r->refused = r->in_words = false;
    r->out->bare_name = false;
    const int is = find_predicate(r);
    bool other = false; /* there is a word that is not a kind noun */
    for (int i = is; i < r->n; i++) other |= r->items[i].word && names_one(r->items[i].t) && !is_kind_noun(r->items[i].t);
    for (int i = 0; i < r->n; i++) {
        const tare_text w = r->items[i].t;
        if (!r->items[i].word || is_answer_noun(w)) continue;
        const enum role role = phrase_role(&w, 1, &used, &tex);
        if (role == ROLE_DROP || role == ROLE_IS || role == ROLE_RATIO) continue;
        if (i < is || (other && is_kind_noun(w)))
            put_name(r, w);
        else
            put_word(r, w);
    }
    r->out->bare_name = false;
    end_words(r);
}

bool read_prose(const char *s, int64_t n, bool numbers, struct prose *out)
{
    const tare_text t = {s, n};
    struct prose_cut parts = {.n = 0};
    out->size = out->n_names = 0;
    out->value = out->no_words = out->bare_name = false;
    if (n > PROSE_BYTES) return false;
    cut_prose(&parts, t);
    struct reader r = {.items = parts.items, .n = parts.n, .refused = parts.refused, .out = out, .numbers = numbers};
    bool words = false, letters = false;
    drop_blanks(&r);
    for (int i = 0; i < r.n; i++) words |= r.items[i].word, letters |= !r.items[i].word && holds_value(r.items[i].t);
    out->no_words = !words && !r.refused;
    if (!words || r.refused) return false;
    read_items(&r);
    if (!r.refused && out->value) {
        tare_text end = last_written(&r);
        if (end.size && end.data[end.size - 1] == '=') { /* 12 is the answer */
            out->size = end.size - 1;
            r.refused |= r.complement || r.condition; /* "when n is even" */
        }
        r.refused |= r.doubt || r.dangling;
        end_words(&r);
        /* not a pair */
        if (r.between) put_text(&r, out->tex[r.between - 1] == '[' ? "] \\cap \\mathbb{R}" : ") \\cap \\mathbb{R}");
        r.refused |= r.between && !r.halves;
        for (; r.closing; r.closing--) put_text(&r, "\\}");
        return !r.refused;
    }
    if (letters || out->value) return false;
    write_words(&r);
    return !r.refused && out->size > 0;
}
