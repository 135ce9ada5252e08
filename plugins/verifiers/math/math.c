/* math: compares the mathematical answer of the completion with the gold answer, in exact
 * arithmetic.
 *
 *   reward 1  if  answer(completion) = gold  else 0
 *
 * The answer is extracted (extract.c), both sides are parsed (lex.c, parse.c, top.c) and compared
 * by type (compare.c). Two scalars are decided by the cheapest applicable proof (decide.c): the
 * same expression, rational arithmetic, complex balls, algebraic and elementary numbers, identities
 * modulo a prime or at sample points. An answer that cannot be shown to be equal is wrong, because
 * a false "correct" teaches a wrong answer. Verdicts: correct; wrong; no_answer (nothing to
 * extract); unparsable (extracted, but neither readable nor equal as text). Row fields that
 * override the parameters for one row: gold_is_latex, extract, boxed_priority, float_rounding,
 * strict, allow_set_relation_comp (names from Math-Verify's configuration). The limits are in
 * math.h.
 */
#include "../../common/built_in.h"
#include "prose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const GOLD[] = {"auto", "latex", "text", NULL}, *const BOX[] = {"first", "level", "below", NULL};
static const tare_param PARAMS[] = {
    TARE_CHOICE_PARAM(
        "gold", "auto",
        "form of the row's answer: latex, a bare answer; text, a solution the answer is extracted from; auto, text if it has a box, has ####, or starts with $",
        GOLD, 0),
    TARE_CHOICE_PARAM(
        "box", "first",
        "rank of \\boxed: first, before all other marks; level with \"final answer\" (the later one wins); below \"final answer\" and level with \"answer:\"",
        BOX, 0),
    TARE_BOOL_PARAM("plain", "true", "the last number or formula of a text that announces no answer counts", 0),
    TARE_INT_PARAM("rounding", "-1",
                   "decimals to which two values have to agree when one of them is written as a decimal; -1: exactly equal", -1,
                   MAX_ROUNDING, 0),
    TARE_BOOL_PARAM("unit_missing", "true", "a unit on one side only is ignored (two different units never are)", 0),
    TARE_BOOL_PARAM("fold_letters", "true",
                    "T may stand for t, when no letter occurs in both cases in the two answers; e, i and pi are never folded", 0),
    TARE_BOOL_PARAM("set_relation", "true", "an inequality is accepted for a gold interval (the reverse always is)", 0),
    TARE_BOOL_PARAM("strict", "true", "names of symbols matter; false: they are matched in the order they appear", 0),
    TARE_BOOL_PARAM("number_words", "true", "numbers in English words count: \"twelve\", \"two and a half\", \"three quarters\"",
                    0),
    TARE_BOOL_PARAM(
        "evaluated", "false",
        "an operation that may restate the question (sum, product, integral, limit, derivative, gcd, mod) counts only where the gold answer has one",
        0),
    OPENED_PARAM,
};
enum { P_GOLD, P_BOX, P_PLAIN, P_ROUNDING, P_UNIT, P_LETTERS, P_SET, P_STRICT, P_WORDS, P_EVALUATED, P_OPENED, N_PARAMS };

/* ---------------------------------------------------------------- one pair */

static int64_t join_parts(const struct found *f, char *out, int64_t capacity)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++) {
        const tare_text t = text_trim(f->text[i]);
        if (n + t.size + 2 > capacity) return -1;
        if (i) out[n++] = ',', out[n++] = ' ';
        if (t.size) memcpy(out + n, t.data, (size_t)t.size);
        n += t.size;
    }
    return n;
}

/* Returns a node, or -1 with m->parse_error. */
static int read_answer(struct math *m, const struct found *f, enum commas commas)
{
    int parts[256], n = 0;
    for (int i = 0; i < f->n; i++) {
        if (f->text[i].size > MAX_ANSWER) return m->parse_error = "the answer is longer than 16 KB", -1;
        const int64_t size = fold_tex(m, f->text[i], m->buffer, 4 * MAX_ANSWER);
        if (size < 0) return m->parse_error = "the answer is longer than 16 KB", -1;
        if (!lex(m, m->buffer, size, commas, f->plain) || (parts[n] = parse_answer(m)) < 0) return -1;
        /* $1, 2$ or $3$ */
        if (f->n > 1 && at(m, parts[n])->op == OP_LIST && n + at(m, parts[n])->n <= 190) {
            const int list = parts[n], k = at(m, list)->n;
            for (int j = 0; j < k; j++) parts[n + j] = kid(m, list, j);
            n += k - 1;
        }
        n++;
    }
    if (n == 1) return parts[0];
    const int x = mk(m, OP_LIST, f->joints, parts, n);
    if (x < 0) m->parse_error = "too large to parse";
    return x;
}

/* Copies both answers for comparison as text into m->scratch and its second half; false: one is too
 * long. */
static bool squash_both(struct math *m, const struct found *gold, const struct found *pred, bool fold_case, int64_t size[2])
{
    for (int k = 0; k < 2; k++) {
        const int64_t n = join_parts(k ? pred : gold, m->buffer, 2 * MAX_ANSWER);
        if (n < 0) return false;
        size[k] = squash(m->buffer, n, m->scratch + k * 4 * MAX_ANSWER, fold_case);
    }
    return true;
}

static bool same_text(struct math *m, const struct found *gold, const struct found *pred, bool fold_case)
{
    int64_t n[2];
    if (!squash_both(m, gold, pred, fold_case, n)) return false;
    return n[0] && n[0] == n[1] && !memcmp(m->scratch, m->scratch + 4 * MAX_ANSWER, (size_t)n[0]);
}

/* Returns whether the answers only look like arithmetic: a date or a telephone number on either
 * side, or names in capitals (IV, AB) on both. */
static bool is_verbatim(struct math *m, const struct found *gold, const struct found *pred)
{
    const char *a = m->scratch, *b = m->scratch + 4 * MAX_ANSWER;
    int64_t n[2];
    if (!squash_both(m, gold, pred, false, n)) return false;
    return is_date_or_phone(a, n[0]) || is_date_or_phone(b, n[1]) || (is_capitals(a, n[0]) && is_capitals(b, n[1]));
}

/* Compares answers beyond the limit as text only, with digits without leading zeros. */
static bool same_long_text(const struct found *gold, const struct found *pred)
{
    if (gold->n != 1 || pred->n != 1) return false;
    tare_text t[2] = {text_trim(gold->text[0]), text_trim(pred->text[0])};
    for (int k = 0; k < 2; k++)
        while (t[k].size > 1 && t[k].data[0] == '0' && text_is_digit(t[k].data[1])) t[k] = text_slice(t[k], 1, t[k].size);
    return t[0].size && text_equal(t[0], t[1], false);
}

/* Parses the answer with its words read as in prose.h; -1: no words, or they cannot be read. */
static int read_in_words(struct math *m, const struct found *f, struct prose *prose)
{
    const bool sentence = f->whole.size > 0 && f->whole.size <= PROSE_BYTES;
    if (sentence) memcpy(m->scratch, f->whole.data, (size_t)f->whole.size);
    const int64_t n = sentence ? f->whole.size : join_parts(f, m->scratch, 2 * MAX_ANSWER);
    const int64_t size = n < 0 ? -1 : fold_tex(m, (tare_text){m->scratch, n}, m->buffer, 4 * MAX_ANSWER);
    prose->n_names = 0, prose->bare_name = false;
    if (size < 0) return -1;
    if (read_prose(m->buffer, size, m->o.number_words, prose))
        memcpy(m->buffer, prose->tex, (size_t)prose->size);
    else if (sentence && prose->no_words)
        prose->size = size;
    else
        return -1;
    return lex(m, m->buffer, prose->size, COMMA_GROUPS, f->plain) ? parse_answer(m) : -1;
}

/* Returns the content of \text{...} around or at the start of an answer, without a full stop. */
static tare_text words_of(tare_text t)
{
    t = text_trim(t);
    for (int64_t i = 0; i < 12 && i < t.size && t.data[0] == '\\'; i++)
        if (t.data[i] == '{') {
            t = text_trim(text_slice(t, i + 1, t.size));
            break;
        }
    while (t.size && strchr("}. ", t.data[t.size - 1])) t = text_slice(t, 0, t.size - 1);
    return t;
}

/* Returns whether the text read from the words has an operator. */
static bool has_operator(const struct prose *p)
{
    if (p->no_words) return false;
    for (int64_t i = 1; i < p->size; i++) {
        const tare_text t = {p->tex, p->size};
        if (strchr("^_+-*/:<>=!", p->tex[i])) return true;
        if (p->tex[i] == '\\' && text_is_letter(p->tex[i + 1]) && !text_starts(t, i, "\\text", false)) return true;
    }
    return false;
}

/* Compares again, with their words read, answers that differed as written. A name before the value
 * on one side only is ignored; two different names differ. */
static bool equal_in_words(struct math *m, const struct found *gold, const struct found *pred, int *x, int *y)
{
    struct prose a, b;
    const int g = read_in_words(m, gold, &a), p = read_in_words(m, pred, &b), alone = *y;
    if (g < 0 && p < 0) return false;
    if (g >= 0) *x = g;
    if (p >= 0) *y = p;
    if (*x < 0 || *y < 0 || (pred->operated && p < 0)) return false;
    if (a.bare_name && a.n_names && !b.n_names) return false; /* the gold answer is April 5 */
    if (a.n_names && b.n_names && (a.n_names != b.n_names || memcmp(a.names, b.names, (size_t)a.n_names) != 0)) return false;
    if (!compare(m, *x, *y)) return false;
    if (!pred->operated || has_operator(&b) || text_find_last(gold->text[0], "\\text") >= 0) return true;
    /* 12 dozen, but not 12 by 5 */
    return alone >= 0 && at(m, alone)->op == OP_NUM && !compare(m, alone, *y);
}

/* Compares verdict words. The word may be followed by an explanation after a comma or a full stop:
 * "Yes, it is possible" equals Yes. */
static bool same_verdict_word(const struct found *gold, const struct found *pred)
{
    static const char *const words[] = {"yes", "no", "true", "false", NULL};
    if (gold->n != 1 || pred->n != 1) return false;
    const tare_text g = words_of(gold->text[0]), p = words_of(pred->text[0]);
    for (const char *const *w = words; *w; w++) {
        const int64_t n = (int64_t)strlen(*w);
        if (text_equal(g, text_of(*w), true))
            return text_starts(p, 0, *w, true) &&
                   (p.size == n || (strchr(",.;:", p.data[n]) && !is_qualified(text_slice(p, n, p.size))));
    }
    return false;
}

static bool is_measured(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    if (a->op == OP_REL && a->n) return is_measured(m, kid(m, x, a->n - 1));
    return a->op == OP_UNIT || a->op == OP_SAID || a->op == OP_PCT || (a->op <= OP_DEG && a->flags & NODE_DEG);
}

/* Returns true if the value, with the units and words that follow it in its sentence, is a
 * different measure from the gold answer: "It takes 2 minutes" for 2 hours. */
static bool other_measure(struct math *m, int gold, const struct found *pred)
{
    struct prose prose;
    const char *reason = m->reason;
    if (gold < 0 || !pred->onward.size || !is_measured(m, gold)) return false;
    const struct found onward = {.text = {pred->onward}, .n = 1, .whole = pred->onward, .plain = pred->plain};
    int x = read_answer(m, &onward, COMMA_GROUPS);
    if (x < 0 || !is_measured(m, x)) x = read_in_words(m, &onward, &prose);
    const bool other = x >= 0 && is_measured(m, x) && !compare(m, gold, x);
    m->reason = other ? "the words after the value make it another measure" : reason;
    return other;
}

enum { NO_MEMORY = -1 };

struct outcome {
    int32_t code;
    const char *reason;
    int gold, pred; /* nodes; -1: not parsed */
    const char *gold_error, *pred_error;
};

static bool is_several(const struct math *m, int x)
{
    return at(m, x)->op == OP_LIST || at(m, x)->op == OP_SET;
}

static bool is_whole(const struct math *m, int x)
{
    const struct node *a = at(m, x);
    return a->op == OP_NUM ? a->exp >= 0 : a->op == OP_UNIT && is_whole(m, kid(m, x, 0));
}

/* Returns true for a number with leading zeros: the 000 of 1,000 is not a separate number of a
 * list. */
static bool is_padded(const struct found *f)
{
    for (int i = 0; i < f->n; i++)
        for (int64_t k = 0; k + 2 < f->text[i].size; k++)
            if (f->text[i].data[k] == ',' && f->text[i].data[k + 1] == '0' && text_is_digit(f->text[i].data[k + 2])) return true;
    return false;
}

static int64_t n_digits(const struct found *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++)
        for (int64_t k = 0; k < f->text[i].size; k++) n += text_is_digit(f->text[i].data[k]);
    return n;
}

/* Compares with other readings of commas: 1,234 as two numbers if both sides are several; 1250,5 as
 * one if the gold answer is one and the first reading of the other is not a pair in brackets. */
static bool equal_by_commas(struct math *m, const struct found *gold, const struct found *pred, int x, int first)
{
    const char *reason = m->reason;
    bool equal = false;
    if (m->commas_ambiguous && !(is_padded(gold) && n_digits(gold) != n_digits(pred))) {
        const int a = read_answer(m, gold, COMMA_LISTS), b = a < 0 ? -1 : read_answer(m, pred, COMMA_LISTS);
        equal = b >= 0 && is_several(m, a) && is_several(m, b) && compare(m, a, b);
    } else if (m->commas_between && !is_several(m, x) && at(m, x)->op != OP_TUPLE && !is_whole(m, x) &&
               at(m, first)->op != OP_TUPLE && at(m, first)->op != OP_SET) { /* -3,0 may be two */
        const int y = read_answer(m, pred, COMMA_DECIMALS);
        equal = y >= 0 && !is_several(m, y) && at(m, y)->op != OP_TUPLE && compare(m, x, y);
    }
    if (!equal && at(m, x)->op == OP_LIST && at(m, first)->op == OP_NUM && pred->n == 1 &&
        text_find_last(pred->text[0], "{,}") > 0) {
        const int y = read_answer(m, gold, COMMA_DECIMALS); /* 3{,}5 for 3,5 */
        equal = y >= 0 && !is_several(m, y) && compare(m, y, first);
    }
    if (!equal) m->reason = reason;
    return equal;
}

static struct outcome verify_answer(struct math *m, const struct found *gold, const struct found *pred)
{
    struct outcome r = {.gold = -1, .pred = -1};
    math_reset(m);
    if (!pred->n) return r.code = TARE_VERDICT_NO_ANSWER, r.reason = "no answer in the completion", r;
    if (!gold->n) return r.code = TARE_VERDICT_UNPARSABLE, r.reason = "no answer in the row's answer", r;
    m->commas_ambiguous = false;
    m->precision = 0;
    r.gold = read_answer(m, gold, COMMA_GROUPS);
    r.gold_error = m->parse_error;
    m->commas_between = false;
    r.pred = read_answer(m, pred, COMMA_GROUPS);
    r.pred_error = m->parse_error;
    const enum truth dates = gold->n == 1 && pred->n == 1 ? compare_dates(gold->text[0], pred->text[0], pred->whole) : UNKNOWN;
    if (dates != UNKNOWN)
        return r.code = dates ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG, r.reason = dates ? "the same date" : "different dates",
               r;
    if (r.gold < 0 || r.pred < 0) {
        const bool words = r.gold >= 0 && at(m, r.gold)->op == OP_TEXT;
        if ((!pred->operated && (same_text(m, gold, pred, words) || same_long_text(gold, pred))) || same_formula(gold, pred))
            return r.code = TARE_VERDICT_CORRECT, r.reason = "the same text", r;
        if (same_verdict_word(gold, pred)) return r.code = TARE_VERDICT_CORRECT, r.reason = "the same word", r;
        if (equal_in_words(m, gold, pred, &r.gold, &r.pred)) return r.code = TARE_VERDICT_CORRECT, r.reason = m->reason, r;
        r.code = r.pred < 0 ? TARE_VERDICT_UNPARSABLE : TARE_VERDICT_WRONG;
        r.reason = r.pred < 0 ? r.pred_error : "the row's answer cannot be read as mathematics, and the text differs";
        return r;
    }
    if (same_formula(gold, pred)) return r.code = TARE_VERDICT_CORRECT, r.reason = "the same chemical formula", r;
    if (is_verbatim(m, gold, pred)) {
        r.code = same_text(m, gold, pred, false) ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        r.reason = r.code == TARE_VERDICT_CORRECT ? "the same text" : "different dates, telephone numbers or names";
        return r;
    }
    const bool bare = !pred->operated; /* otherwise the words after the number count too */
    bool equal = bare && compare(m, r.gold, r.pred);
    const bool other = equal && other_measure(m, r.gold, pred);
    if (other || !bare)
        equal = false;
    else if (!equal)
        equal = equal_by_commas(m, gold, pred, r.gold, r.pred);
    if (!equal && (at(m, r.gold)->op == OP_TEXT || at(m, r.pred)->op == OP_TEXT) && same_text(m, gold, pred, true))
        equal = true, m->reason = "the same words";
    if (!equal && at(m, r.gold)->op == OP_TEXT && same_verdict_word(gold, pred)) equal = true, m->reason = "the same word";
    const char *why = m->reason;
    if (!equal)
        equal = equal_in_words(m, gold, pred, &r.gold, &r.pred) &&
                (!other || at(m, r.pred)->op == OP_LIST || at(m, r.pred)->op == OP_TUPLE);
    if (!equal) m->reason = why;
    r.code = equal ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    r.reason = m->reason;
    return r;
}

static void take_gold(const struct options *o, tare_text answer, struct found *out)
{
    bool latex = o->gold_latex;
    struct options gold = *o;
    gold.guess = true;
    if (o->gold_auto)
        latex = text_find_last(answer, "\\boxed{") < 0 && text_find_last(answer, "####") < 0 &&
                !(text_trim(answer).size && text_trim(answer).data[0] == '$');
    if (latex)
        *out = (struct found){.text = {answer}, .n = 1, .rule = "the whole answer"};
    else
        extract_answer(&gold, text_after_thought(answer, false), out);
    if (!out->n && text_trim(answer).size) *out = (struct found){.text = {answer}, .n = 1, .rule = "the whole answer"};
}

/* A gold text without a box, an anchor or an environment may be the bare answer: "26 and -6". Its
 * last number is used only if the whole text cannot be parsed. */
static void widen_gold(struct math *m, tare_text answer, struct found *gold)
{
    const tare_text t = text_trim(answer);
    if (!gold->rule || strcmp(gold->rule, "last number") || t.size > 200) return;
    const struct found whole = {.text = {t}, .n = 1, .rule = "the whole answer", .plain = !memchr(t.data, '\\', (size_t)t.size)};
    math_reset(m);
    const int x = read_answer(m, &whole, COMMA_GROUPS);
    if (x >= 0 && at(m, x)->op != OP_TEXT && at(m, x)->op != OP_UNIT) *gold = whole;
}

static struct outcome run_pair(struct math *m, const tare_completion *a, struct found *gold, struct found *pred)
{
    tare_text t;
    m->o = m->defaults;
    row_options(&m->o, a->row);
    take_gold(&m->o, a->answer, gold);
    widen_gold(m, a->answer, gold);
    if (!clean_text(m, a->text, &t))
        return (struct outcome){.code = NO_MEMORY, .reason = "no memory to read a completion", .gold = -1, .pred = -1};
    extract_answer(&m->o, t, pred);
    if (m->o.evaluated && pred->n && restates_question(gold, pred)) {
        math_reset(m);
        return (struct outcome){
            .code = TARE_VERDICT_WRONG, .reason = "an operation that only restates the question", .gold = -1, .pred = -1};
    }
    return verify_answer(m, gold, pred);
}

/* ---------------------------------------------------------------- the plugin */

static void alloc_values(void *arg)
{
    struct math *m = arg;
    if (!values_alloc(m)) values_release(m);
}

/* Allocates FLINT's part of m: at the start, and again after an abandoned computation. */
static bool with_values(struct math *m)
{
    if (!m->values && !guarded(alloc_values, m)) m->values = NULL;
    return m->values;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    static const int64_t priority[] = {0, 50, 100};
    struct math *m = calloc(1, sizeof *m);
    memory_begin();
    if (!m || !math_alloc(m) || !with_values(m)) {
        if (m) math_release(m);
        free(m);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the parser's tables");
    }
    m->defaults = (struct options){
        .boxed_priority = priority[values[P_BOX].i],
        .rounding = values[P_ROUNDING].i,
        .strict = values[P_STRICT].i,
        .allow_set_relation = values[P_SET].i,
        .gold_auto = values[P_GOLD].i == 0,
        .gold_latex = values[P_GOLD].i == 1,
        .use_latex = true,
        .use_expr = true,
        .guess = values[P_PLAIN].i,
        .evaluated = values[P_EVALUATED].i,
        .opened = values[P_OPENED].i,
        .unit_missing = values[P_UNIT].i,
        .letter_case = values[P_LETTERS].i,
        .number_words = values[P_WORDS].i,
    };
    *self = m;
    return TARE_OK;
}

static void destroy(void *self)
{
    math_release(self);
    free(self);
}

struct call {
    struct math *m;
    const tare_completion *const *completions;
    tare_verdict *const *out;
    int64_t n;
    const tare_stream *explanation;
    tare_status status;
};

static void verify_all(void *arg)
{
    struct call *c = arg;
    struct math *m = c->m;
    struct found gold, pred;
    for (int64_t i = 0; i < c->n && !c->status; i++) {
        const struct outcome r = run_pair(m, c->completions[i], &gold, &pred);
        if (r.code == NO_MEMORY) {
            c->status = TARE_E_NOMEM;
            return;
        }
        const int64_t size = pred.n == 1 ? 0 : join_parts(&pred, m->buffer, 4 * MAX_ANSWER);
        const tare_text extracted = pred.n == 1 ? text_trim(pred.text[0]) : (tare_text){m->buffer, size > 0 ? size : 0};
        c->status = verdict_set(c->out[i], r.code, r.code == TARE_VERDICT_CORRECT, extracted, r.reason);
    }
}

/* Calls verify_all or explain_all and turns FLINT's failures into errors. */
static tare_status call_guarded(void (*f)(void *), struct call *c, tare_error *error)
{
    if (!with_values(c->m)) return tare_fail(error, TARE_E_NOMEM, "no memory for the values of a pair");
    if (!guarded(f, c)) {
        c->m->values = NULL;
        return tare_fail(error, TARE_E_NOMEM, "a pair was not decided: FLINT got no memory, or gave up");
    }
    return TARE_OK;
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    struct call c = {.m = self, .completions = completions, .out = out, .n = n};
    const tare_status s = call_guarded(verify_all, &c, error);
    return s ? s : c.status == TARE_E_NOMEM ? tare_fail(error, c.status, "no memory to read a completion") : c.status;
}

static tare_status explain_side(struct math *m, const tare_stream *out, const char *name, const struct found *f, int node,
                                const char *why)
{
    char key[64];
    tare_status s = TARE_OK;
    const int64_t size = join_parts(f, m->scratch, 4 * MAX_ANSWER);
#define PUT(SUFFIX, TEXT)                                                                                                          \
    do {                                                                                                                           \
        const size_t n_ = strlen(name);                                                                                            \
        memcpy(key, name, n_);                                                                                                     \
        memcpy(key + n_, SUFFIX, sizeof SUFFIX);                                                                                   \
        if (!s) s = explain_text(out, false, key, TEXT);                                                                           \
    } while (0)
    PUT("", ((tare_text){m->scratch, size > 0 ? size : 0}));
    PUT("_found", text_of(f->rule ? f->rule : "nothing"));
    if (node >= 0)
        PUT("_parsed", ((tare_text){m->scratch, print_node(m, node, m->scratch, 4000)}));
    else if (why)
        PUT("_error", text_of(why));
#undef PUT
    return s;
}

static void explain_all(void *arg)
{
    struct call *c = arg;
    struct math *m = c->m;
    struct found gold, pred;
    const struct outcome r = run_pair(m, c->completions[0], &gold, &pred);
    char precision[32] = "exact";
    tare_status s = explain_text(c->explanation, true, "rule", text_of(r.reason ? r.reason : ""));
    if (m->precision) snprintf(precision, sizeof precision, "%lld bits", (long long)m->precision);
    if (!s && r.gold >= 0 && r.pred >= 0) s = explain_text(c->explanation, false, "precision", text_of(precision));
    if (!s) s = explain_side(m, c->explanation, "gold", &gold, r.gold, r.gold_error);
    if (!s) s = explain_side(m, c->explanation, "answer", &pred, r.pred, r.pred_error);
    c->status = s ? s : tare_say(c->explanation, "}");
}

static tare_status explain(void *self, const tare_completion *answer, const tare_stream *out, tare_error *error)
{
    struct call c = {.m = self, .completions = &answer, .n = 1, .explanation = out};
    const tare_status s = call_guarded(explain_all, &c, error);
    if (s) return s;
    return c.status ? tare_fail(error, c.status, "the explanation cannot be written") : TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .explain = explain};

BUILT_IN("math", .kind = TARE_KIND_VERIFIER, .summary = "the mathematical answer equals the gold answer, in exact arithmetic",
         TARE_PARAMS(PARAMS, N_PARAMS), .calls = TARE_CALLS_INSTANCE_PER_THREAD)
