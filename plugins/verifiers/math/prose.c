/* Two steps. The text is cut into words and what stands between them (mathematics), whether the words are in \text{} or not. Then the words
 * are read by their roles (phrases.c), numbers in words become numerals (numerals.c), and the rest is written as TeX: names in front of a
 * value are kept apart, words after one stay as what it counts, reasons are left out. What cannot be read is refused, never dropped. */
#include "prose.h"

#include "numerals.h"
#include "tokens.h"

#include <stdio.h>
#include <string.h>

struct item {
    tare_text t;
    bool word, text, stop; /* text: from \text{}; stop: the end of a sentence */
};

struct reader {
    struct item items[PROSE_ITEMS];
    int n;
    int nested;            /* boxes in boxes */
    bool refused, numbers; /* numbers: those in words are read */
    struct prose *out;
    bool value;    /* since the last sign of relation or joint */
    bool in_words; /* a \text{ is open in out */
    int closing;   /* braces to close at the end */
};

/* ---------------------------------------------------------------- cutting */

static void add(struct reader *r, tare_text t, bool word, bool text)
{
    if (!t.size) return;
    if (r->n == PROSE_ITEMS) {
        r->refused = true;
        return;
    }
    r->items[r->n++] = (struct item){t, word, text, false};
}

static bool is_wrapper(const char *s, int64_t n)
{
    const struct word *w = find_command(s, n);
    return w && w->kind == T_WORDS;
}

/* Where the group that opens at i ends, after its brace. */
static int64_t group_end(tare_text t, int64_t i)
{
    int depth = 0;
    for (; i < t.size; i++) {
        if (t.data[i] == '\\') {
            i++;
            continue;
        }
        depth += t.data[i] == '{';
        depth -= t.data[i] == '}';
        if (!depth) return i + 1;
    }
    return t.size;
}

/* Letters in a formula that are a word: not a function, a product of letters or what stands in front of brackets. */
static bool is_plain_word(tare_text t, int64_t from, int64_t to)
{
    const tare_text w = text_slice(t, from, to);
    const char before = from ? t.data[from - 1] : ' ', after = to < t.size ? t.data[to] : ' ';
    int used;
    const char *tex;
    if (text_equal(w, text_of("a"), false) && from && before == ' ' && after == ' ' && to + 2 < t.size &&
        text_is_letter(t.data[to + 1]))
        return text_is_letter(t.data[to + 2]); /* and a half */
    if (w.size < 2 || strchr("\\_^{", before) || text_is_digit(before) || strchr("_^(", after)) return false;
    if (is_numeral_word(w)) return true;
    if (find_function(w.data, w.size) && !text_equal(w, text_of("pi"), false) && !text_equal(w, text_of("infinity"), false))
        return false;
    if (phrase_role(&w, 1, &used, &tex) != ROLE_OPEN || is_answer_noun(w) || is_in_phrase(w)) return true;
    if (find_unit(w.data, w.size, false) || text_equal(w, text_of("per"), true)) return before == ' ';
    if (w.size < 4) return false;
    bool vowel = false, small = false;
    for (int64_t i = 0; i < w.size; i++) {
        vowel |= strchr("aeiouy", text_lower(w.data[i])) != NULL;
        small |= w.data[i] >= 'a';
    }
    return vowel && small;
}

/* The A of "Answer: A", "option C"; not that of "A fair coin" */
static bool is_single_capital(tare_text t, int64_t from, int64_t to)
{
    int used;
    const char *tex;
    if (to - from != 1 || t.data[from] >= 'a') return false;
    if (!strchr("AI", t.data[from]) || to + 1 >= t.size || t.data[to] != ' ') return true;
    int64_t k = to + 1;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    const tare_text next = text_slice(t, to + 1, k);
    const enum role role = next.size ? phrase_role(&next, 1, &used, &tex) : ROLE_JOINT;
    return role != ROLE_OPEN && role != ROLE_DROP;
}

/* The remark in brackets at i that is words only: where it ends; 0: there is none. */
static int64_t remark_end(tare_text t, int64_t i)
{
    int64_t k = i + 1;
    bool words = false;
    for (int64_t run = 0; k < t.size && t.data[k] != ')'; k++) {
        const char c = t.data[k];
        if (!text_is_letter(c) && !strchr(" ,'-.", c)) return 0;
        run = text_is_letter(c) ? run + 1 : 0;
        words |= run > 1;
    }
    return words && k < t.size ? k + 1 : 0;
}

/* Are the words of a remark at i .. end - 1 such that the value stands without them? "(exactly)", "(five)" after 5. */
static bool is_idle(tare_text t, int64_t i, int64_t end, tare_text before)
{
    tare_text words[8];
    int n = 0, used;
    const char *tex;
    char numeral[NUMERAL_TEXT];
    for (int64_t k = i; k < end; k++) {
        const int64_t from = k;
        while (k < end && text_is_letter(t.data[k])) k++;
        if (k > from && n == 8) return false;
        if (k > from) words[n++] = text_slice(t, from, k);
    }
    if (n && read_numeral(words, n, true, numeral)) {
        const int64_t size = (int64_t)strlen(numeral);
        before = text_trim(before);
        return before.size >= size && !memcmp(before.data + before.size - size, numeral, (size_t)size);
    }
    for (int k = 0; k < n; k += used) {
        const enum role role = phrase_role(words + k, n - k, &used, &tex);
        if (role != ROLE_OPEN && role != ROLE_DROP && role != ROLE_RATIO) return false;
    }
    return true;
}

/* p.m. and a.m. */
static bool is_half_day(tare_text t, int64_t i)
{
    const char c = text_lower(t.data[i]);
    return (c == 'p' || c == 'a') && text_starts(t, i + 1, ".m", true) && i && !text_is_letter(t.data[i - 1]) &&
           !(i + 3 < t.size && text_is_letter(t.data[i + 3]));
}

static bool ends_sentence(tare_text t, int64_t i)
{
    return t.data[i] == '.' && (i + 1 == t.size || text_is_space(t.data[i + 1])) &&
           !(i && (t.data[i - 1] == '.' || t.data[i - 1] == '\\'));
}

/* After the \end that closes the \begin at i; the end of the text when there is none. */
static int64_t environment_end(tare_text t, int64_t i)
{
    int depth = 0;
    for (; i < t.size; i++) {
        if (t.data[i] != '\\') continue;
        depth += text_starts(t, i, "\\begin", false);
        if (text_starts(t, i, "\\end", false) && !--depth) return group_end(t, i + 4);
        i++;
    }
    return t.size;
}

static void cut(struct reader *r, tare_text t, bool text);

/* "(base 8)": cut without its brackets. Where it ends; 0: other brackets. */
static int64_t cut_base(struct reader *r, tare_text t, int64_t i, bool text)
{
    const char *close = memchr(t.data + i, ')', (size_t)(t.size - i));
    if (!close || !text_starts(t, i + 1, "base ", true)) return 0;
    cut(r, text_slice(t, i + 1, close - t.data), text);
    return close - t.data + 1;
}

/* The command at i: \text{words} is cut as words, others stay as they are with their arguments. Where it ends. */
static int64_t cut_command(struct reader *r, tare_text t, int64_t i, int64_t *begin)
{
    int64_t k = i + 1;
    while (k < t.size && text_is_letter(t.data[k])) k++;
    if (k == i + 1) return k + 1;
    if (k - i == 6 && text_starts(t, i, "\\begin", false)) return environment_end(t, i);
    const struct word *w = find_command(t.data + i + 1, k - i - 1);
    if (w && w->kind == T_GROUP && k < t.size && t.data[k] == '{') { /* \boxed{words} */
        const int64_t end = group_end(t, k);
        add(r, text_slice(t, *begin, i), false, false);
        if (++r->nested < 8) cut(r, text_slice(t, k + 1, end - (t.data[end - 1] == '}')), false);
        r->nested--;
        return *begin = end;
    }
    if (!is_wrapper(t.data + i + 1, k - i - 1) || k >= t.size || t.data[k] != '{') return k;
    const int64_t end = group_end(t, k);
    const tare_text inside = text_trim(text_slice(t, k + 1, end - 1));
    const bool one_word = !memchr(inside.data, ' ', (size_t)inside.size),
               letter = inside.size == 1 && text_is_letter(inside.data[0]);
    if (letter || (w && w->aux == 1 && one_word)) return end; /* \text{m}; \mathrm{i}, \operatorname{arctan}: symbols */
    const bool tight = end - 2 > k && text_is_letter(t.data[end - 2]);
    if (tight && (text_starts(t, end, "(", false) || text_starts(t, end, "\\left(", false)) && !remark_end(t, end))
        r->refused = true; /* \text{rank}(2) */
    add(r, text_slice(t, *begin, i), false, false);
    cut(r, text_slice(t, k + 1, end - (t.data[end - 1] == '}')), true);
    *begin = end;
    return end;
}

static void cut(struct reader *r, tare_text t, bool text)
{
    int64_t begin = 0; /* of what is no word */
    for (int64_t i = 0; i < t.size && !r->refused;) {
        const char c = t.data[i];
        if (c == '\\' && !text) {
            i = cut_command(r, t, i, &begin);
            if (i > t.size) i = t.size;
        } else if (c == '{' && !text) {
            i = group_end(t, i);
        } else if (c == '$') {
            add(r, text_slice(t, begin, i), false, false);
            begin = ++i;
        } else if (c == '(' && remark_end(t, i)) {
            const int64_t end = remark_end(t, i);
            const bool first = !text_trim(text_slice(t, begin, i)).size && r->n;
            if (!is_idle(t, i, end, first ? r->items[r->n - 1].t : text_slice(t, begin, i))) r->refused = true;
            add(r, text_slice(t, begin, i), false, false);
            begin = i = end;
        } else if (c == '(' && text_starts(t, i + 1, "base ", true) && memchr(t.data + i, ')', (size_t)(t.size - i))) {
            add(r, text_slice(t, begin, i), false, false);
            begin = i = cut_base(r, t, i, text);
        } else if (ends_sentence(t, i)) {
            add(r, text_slice(t, begin, i), false, false);
            add(r, text_slice(t, i, i + 1), false, text);
            if (r->n) r->items[r->n - 1].stop = true;
            begin = ++i;
        } else if (is_half_day(t, i)) {
            add(r, text_slice(t, begin, i), false, false);
            add(r, text_of(text_lower(c) == 'p' ? "pm" : "am"), true, true);
            begin = i = i + 3 + (i + 3 < t.size && t.data[i + 3] == '.');
        } else if (text_is_letter(c)) {
            int64_t k = i;
            while (k < t.size && (text_is_letter(t.data[k]) || (text && t.data[k] == '\''))) k++;
            if (text ? !is_single_capital(t, i, k) : is_plain_word(t, i, k)) {
                add(r, text_slice(t, begin, i), false, false);
                add(r, text_slice(t, i, k), true, text);
                begin = k;
                if (begin < t.size && t.data[begin] == '-' && begin + 1 < t.size && text_is_letter(t.data[begin + 1])) begin++;
            }
            i = k > begin ? k : begin;
        } else {
            i++;
        }
    }
    if (begin < t.size) add(r, text_slice(t, begin, t.size), false, false);
}

/* ---------------------------------------------------------------- writing */

static void put(struct reader *r, const char *s, int64_t n)
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
    put(r, s, (int64_t)strlen(s));
}

static void end_words(struct reader *r)
{
    if (r->in_words) put_text(r, "}");
    r->in_words = false;
}

static void put_word(struct reader *r, tare_text w)
{
    put_text(r, r->in_words ? " " : "\\text{ ");
    put(r, w.data, w.size);
    r->in_words = true;
}

static void put_name(struct reader *r, tare_text w)
{
    struct prose *o = r->out;
    const struct word *known = find_command(w.data, w.size);
    if (is_answer_noun(w)) return;
    if (find_function(w.data, w.size) || (known && (known->kind == T_DET || known->kind == T_LIM || known->kind == T_MARK))) {
        r->refused = true; /* \text{floor} 3.5: no name, it changes the value */
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

/* Does it hold a digit, a letter or a command that stands for something? */
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
        if (!text_is_space(t.data[0])) r->out->bare_name = false;
        t = text_slice(t, 1, t.size);
    }
    if (!r->out->size && t.size > 1 && t.data[0] == '\\' && strchr(" ,;:!", t.data[1])) {
        put_mathematics(r, text_slice(t, 2, t.size));
        return;
    }
    if (!t.size) return;
    end_words(r);
    r->value |= holds_value(t);
    r->out->value |= r->value;
    put(r, t.data, t.size);
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
    r->value = r->out->value = true;
    snprintf(again, sizeof again, "(%s)", numeral); /* five (5) */
    if (next < r->n && !r->items[next].word) {
        const tare_text t = text_trim(r->items[next].t);
        if (text_starts(t, 0, again, false)) r->items[next].t = text_slice(t, (int64_t)strlen(again), t.size);
    }
}

/* ---------------------------------------------------------------- reading */

/* "not 13" after a value and a comma, "and no pears": all that follows is about something else. */
static bool excludes_another(const struct reader *r)
{
    const tare_text t = last_written(r);
    return r->out->value && t.size && t.data[t.size - 1] == ',';
}

static void read_is(struct reader *r)
{
    end_words(r);
    if (!r->out->value) {
        r->out->size = 0, r->out->bare_name = false;
    } else if (r->value) {
        put_text(r, " = ");
        r->value = false;
    }
}

/* Roles that write something between values. false: the role is another one. */
static bool write_sign(struct reader *r, enum role role, const char *tex)
{
    switch (role) {
    case ROLE_IS:
        return read_is(r), true;
    case ROLE_TEX:
        end_words(r);
        put_text(r, tex);
        if (strchr("\\", *tex) && strchr("ip", tex[1])) r->value = r->out->value = true; /* \infty, \pi */
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
    case ROLE_JOINT:
        end_words(r);
        put_text(r, *tex == 'a' ? "\\text{ and }" : "\\text{ or }");
        r->value = false;
        return true;
    default:
        return false;
    }
}

/* The letter after "all real": that of the variable. */
static int skip_variable(const struct reader *r, int i)
{
    const tare_text t = i < r->n && !r->items[i].word ? text_trim(r->items[i].t) : (tare_text){"", 0};
    return t.size == 1 && text_is_letter(t.data[0]) ? i + 1 : i;
}

/* Between two whole numbers the sign of a ratio: 1 in 4, 3 to 4. */
static void write_ratio(struct reader *r, tare_text word, const char *tex, int next)
{
    if (r->value && !r->in_words && ends_in_digit(r) && starts_with_digit(r, next))
        put_text(r, tex), r->value = false;
    else if (r->value && text_equal(word, text_of("in"), true)) /* inches, perhaps */
        put_word(r, word);
}

static void write_condition(struct reader *r, const char *word)
{
    if (!r->out->value) return;
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

/* The words at i by their role. Returns the item after them; r->n: the rest says nothing. */
static int read_role(struct reader *r, int i, const tare_text *words, int n)
{
    int used;
    const char *tex;
    const enum role role = phrase_role(words, n, &used, &tex);
    const int next = i + used;
    if (write_sign(r, role, tex)) return next;
    switch (role) {
    case ROLE_OPEN:
        if (r->value)
            put_word(r, words[0]);
        else if (words[0].size == 1) /* x is at least 3 */
            put_mathematics(r, words[0]);
        else
            put_name(r, words[0]);
        return next;
    case ROLE_DROP:
        return next;
    case ROLE_RATIO:
        return write_ratio(r, words[0], tex, next), next;
    case ROLE_BASE:
        return write_base(r, next), next;
    case ROLE_SET:
        end_words(r);
        put_text(r, tex);
        r->value = r->out->value = true;
        return skip_variable(r, next);
    case ROLE_WHERE:
        return write_condition(r, tex), next;
    case ROLE_REASON:
        return r->out->value ? r->n : next;
    case ROLE_THEN:
        end_words(r);
        if (next < r->n) r->out->size = r->out->n_names = 0, r->value = r->out->value = false;
        return next;
    default:
        r->refused = role != ROLE_NOT || !excludes_another(r);
        return r->n;
    }
}

/* 2 and a half: the fraction after the joint at i; *used: items */
static bool mixed(const struct reader *r, int i, const tare_text *words, int n, char *numeral, int *used)
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
        while (n < 12 && i + n < r->n) { /* blanks between words are no mathematics */
            if (!r->items[i + n].word) break;
            words[n] = r->items[i + n].t;
            n++;
        }
        if (mixed(r, i, words, n, numeral, &used)) {
            put_numeral(r, numeral, i += used);
        } else if (!r->value && r->numbers && (used = read_numeral(words, n, i + n == r->n, numeral))) {
            put_numeral(r, numeral, i += used);
        } else {
            i = read_role(r, i, words, n);
        }
    }
}

/* Items that are blanks only go: words side by side are phrases. */
static void drop_blanks(struct reader *r)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        if (r->items[i].word || text_trim(r->items[i].t).size) r->items[n++] = r->items[i];
    r->n = n;
}

/* No value: the words that are names or negations are the answer. */
static void write_words(struct reader *r)
{
    int used;
    const char *tex;
    r->out->size = r->out->n_names = 0;
    r->refused = r->in_words = false;
    for (int i = 0; i < r->n; i++) {
        if (!r->items[i].word || is_answer_noun(r->items[i].t)) continue;
        const enum role role = phrase_role(&r->items[i].t, 1, &used, &tex);
        if (role != ROLE_DROP && role != ROLE_IS && role != ROLE_RATIO) put_word(r, r->items[i].t);
    }
    end_words(r);
}

bool read_prose(const char *s, int64_t n, bool numbers, struct prose *out)
{
    const tare_text t = {s, n};
    struct reader r = {.out = out, .numbers = numbers};
    out->size = out->n_names = 0;
    out->value = out->no_words = out->bare_name = false;
    if (n > PROSE_BYTES) return false;
    cut(&r, t, false);
    bool words = false, letters = false;
    drop_blanks(&r);
    for (int i = 0; i < r.n; i++) words |= r.items[i].word, letters |= !r.items[i].word && holds_value(r.items[i].t);
    out->no_words = !words && !r.refused;
    if (!words || r.refused) return false;
    read_items(&r);
    if (!r.refused && out->value) {
        tare_text end = last_written(&r);
        if (end.size && end.data[end.size - 1] == '=') out->size = end.size - 1; /* 12 is the answer */
        end_words(&r);
        for (; r.closing; r.closing--) put_text(&r, "\\}");
        return !r.refused;
    }
    if (letters || out->value) return false;
    write_words(&r);
    return !r.refused && out->size > 0;
}
