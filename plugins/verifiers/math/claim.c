/* Decides whether the sentence around a value says that the value is the answer. "The claimed
 * answer 60 fails", "8 is too large to be the answer", "if the answer were 5", "the answer divides
 * 6" mention an answer but do not. The whole sentence is read: any word that is not known to leave
 * the value unchanged disqualifies it. A number that only names something (step 4, Theorem 2), or
 * that a foreign "not" denies, does not count either. */
#include "common/words/anchors.h"
#include "common/words/sentences.h"
#include "prose.h"
#include "scan.h"
#include "units.h"

#include <string.h>

enum { TOKENS = 40, FAR = 320 };

/* A word, or a mark or formula, of which only the first byte matters: '#' represents digits and
 * formulas. */
struct piece {
    tare_text t;
    bool word;
};

struct line {
    struct piece token[TOKENS];
    int n;
};

static enum role role_of(tare_text w)
{
    int used;
    const char *tex;
    return phrase_role(&w, 1, &used, &tex);
}

/* Includes letters of other alphabets. */
static bool is_word_byte(char c)
{
    return text_is_letter(c) || (unsigned char)c >= 0x80 || c == '\'';
}

static void add_piece(struct line *r, tare_text t, bool word)
{
    if (r->n == TOKENS) { /* keep only the last ones */
        memmove(r->token, r->token + 1, (TOKENS - 1) * sizeof *r->token);
        r->n--;
    }
    r->token[r->n++] = (struct piece){t, word};
}

static void cut_pieces(struct line *r, tare_text t)
{
    r->n = 0;
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        int64_t k = i;
        if (c == '\\') { /* a command is not a word */
            for (k++; k < t.size && text_is_letter(t.data[k]);) k++;
            i = k > i + 1 ? k : k + 1;
            continue;
        }
        const int64_t sign = sentence_sign(t, i);
        if (sign) { /* an arrow or a dash inside of a sentence ends a clause */
            if (r->n) add_piece(r, (tare_text){",", 1}, false);
            i += sign;
            continue;
        }
        while (k < t.size && is_word_byte(t.data[k]) && !sentence_sign(t, k)) k++;
        if (k > i) {
            add_piece(r, text_slice(t, i, k), true);
        } else if (text_is_digit(c) || strchr("$+", c)) {
            while (k < t.size && (text_is_digit(t.data[k]) || strchr("$+-*/^.=", t.data[k]))) k++;
            add_piece(r, (tare_text){"#", 1}, false);
        } else {
            if (strchr(",;:=()?", c)) add_piece(r, text_slice(t, i, i + 1), false);
            k = i + 1;
        }
        i = k;
    }
}

static bool is_mark(const struct line *r, int i, const char *marks)
{
    return !r->token[i].word && strchr(marks, r->token[i].t.data[0]);
}

static int64_t line_end(tare_text t, int64_t i)
{
    const int64_t far = i + FAR < t.size ? i + FAR : t.size;
    while (i < far && t.data[i] != '\n' && !(strchr(".?!", t.data[i]) && (i + 1 == t.size || text_is_space(t.data[i + 1])))) i++;
    return i;
}

/* Returns the position of the noun "answer"; -1: none. In "to answer the question" it is a verb. */
static int find_noun(const struct line *r, bool last)
{
    static const char *const nouns[] = {"answer", "answers", NULL};
    int found = -1;
    for (int i = 0; i < r->n && (last || found < 0); i++) {
        if (!r->token[i].word || !text_one_of(r->token[i].t, nouns)) continue;
        const bool object = i + 1 < r->n && r->token[i + 1].word && role_of(r->token[i + 1].t) == ROLE_DROP && i + 2 < r->n;
        if (i && object && text_equal(r->token[i - 1].t, text_of("to"), true)) continue;
        found = i;
    }
    return found;
}

/* Returns whether a word may qualify the noun without changing its meaning. */
static bool describes_noun(tare_text w)
{
    static const char *const words[] = {"final",     "correct", "right",   "numerical",   "numeric", "exact",     "simplified",
                                        "required",  "desired", "true",    "best",        "full",    "actual",    "complete",
                                        "simplest",  "unique",  "decimal", "approximate", "whole",   "integer",   "wanted",
                                        "requested", "single",  "sought",  "concise",     "short",   "corrected", "new",
                                        "updated",   "revised", NULL};
    return text_one_of(w, words) || role_of(w) == ROLE_DROP || is_answer_noun(w);
}

/* Returns whether a clause with this word leads to "the answer is", so that the answer follows. */
static bool leads_to_answer(tare_text w)
{
    static const char *const words[] = {
        "i",         "e",         "me",      "us",     "here",    "now",     "once",       "again",   "see",       "know",
        "conclude",  "concludes", "get",     "find",   "have",    "obtain",  "means",      "mean",    "implies",   "imply",
        "shows",     "show",      "gives",   "give",   "giving",  "tells",   "think",      "believe", "confirm",   "confirms",
        "deduce",    "infer",     "state",   "arrive", "arrived", "follows", "follow",     "clear",   "clearly",   "obvious",
        "sure",      "certain",   "summary", "short",  "fact",    "fine",    "step",       "found",   "reach",     "determine",
        "what",      "makes",     "yields",  "next",   "last",    "part",    "yes",        "let",     "say",       "however",
        "well",      "okay",      "ok",      "right",  "great",   "good",    "also",       "provide", "present",   "write",
        "box",       "shown",     "proved",  "seen",   "leads",   "leading", "conclusion", "result",  "rounded",   "solved",
        "evidently", "question",  "problem", "i'm",    "we're",   "here's",  "let's",      "that's",  "confident", "positive",
        "therefore", NULL};
    const enum role role = role_of(w);
    if (text_one_of(w, words) || is_answer_noun(w)) return true;
    uint64_t any = ANCHOR_ANY;
    if ((unsigned char)w.data[0] >= 0x80 && anchor_at(w, 0, ANCHOR_SO, &any) == w.size) return true;
    return role == ROLE_DROP || role == ROLE_IS || role == ROLE_RATIO || role == ROLE_REASON || role == ROLE_THEN;
}

/* Returns whether w starts a premise: the whole clause gives a reason. "Adding these up the answer
 * is 5" */
static bool opens_premise(tare_text w)
{
    static const char *const words[] = {"by",      "from",  "with",  "for", "in",   "on", "after", "since", "as",
                                        "because", "given", "based", "to",  "once", "at", "when",  NULL};
    static const char *const imagined[] = {"assuming", "supposing", "imagining", "pretending", "guessing", "hoping", NULL};
    const bool participle = w.size > 5 && text_equal(text_slice(w, w.size - 3, w.size), text_of("ing"), true);
    return text_one_of(w, words) || (participle && !text_one_of(w, imagined));
}

static bool is_doubtful(tare_text w)
{
    static const char *const words[] = {"if",      "suppose", "assume", "assuming", "imagine",   "pretend", "wish",
                                        "whether", "unless",  "could",  "might",    "may",       "guess",   "unknown",
                                        "maybe",   "perhaps", "lies",   "possibly", "supposing", NULL};
    const enum role role = role_of(w);
    return text_one_of(w, words) || role == ROLE_NOT || role == ROLE_FALSE || role == ROLE_REFUSED || role == ROLE_EXCEPT;
}

/* Checks the words of the clause before the noun at i. */
static bool is_stated(const struct line *r, int i)
{
    int k = i;
    while (k > 0 && r->token[k - 1].word && describes_noun(r->token[k - 1].t)) k--;
    int begin = k;
    while (begin > 0 && !is_mark(r, begin - 1, ",;:=()#?")) {
        const tare_text w = r->token[begin - 1].t;
        if (role_of(w) == ROLE_THEN || role_of(w) == ROLE_JOINT || text_equal(w, text_of("then"), true)) break;
        begin--;
    }
    bool premise = begin < k && opens_premise(r->token[begin].t);
    for (; begin < k; begin++) {
        const tare_text w = r->token[begin].t;
        if (is_doubtful(w) || !(premise || leads_to_answer(w))) return false;
    }
    return true;
}

/* Checks the words from the noun at i to the value: "to the question is", ":", nothing. */
static bool is_equated(const struct line *r, int i)
{
    int is = -1;
    bool doubt = false;
    for (int k = i + 1; k < r->n; k++) {
        doubt |= r->token[k].word && is_doubtful(r->token[k].t);
        if (!is_mark(r, k, ":=") && !(r->token[k].word && role_of(r->token[k].t) == ROLE_IS)) continue;
        /* "Answer: the number that could be there is 5" */
        if (is_mark(r, i + 1, ":")) doubt = false;
        is = k;
    }
    if (doubt) return false;
    if (i + 1 == r->n) return true;
    const struct piece first = r->token[i + 1];
    if (is < 0) { /* "the answer simplifies to 5", "the answer 5" */
        if (!first.word) return is_mark(r, i + 1, "(#)");
        /* "gives an answer of 5" */
        const bool of = text_equal(first.t, text_of("of"), true) && i + 2 == r->n;
        return of || may_precede(first.t, text_of("to"));
    }
    static const char *const reaching[] = {"works", "comes", "turns", "has", "must", "should", NULL};
    if (is > i + 1 && first.word && !text_one_of(first.t, reaching)) {
        const enum role role = role_of(first.t);
        if (role != ROLE_RATIO && role != ROLE_DROP && role != ROLE_WHERE && role != ROLE_IS && role != ROLE_THEN &&
            role != ROLE_RELATE && !leads_to_answer(first.t))
            return false;
    }
    if (is + 1 == r->n || !r->token[r->n - 1].word) return true;
    const tare_text last = r->token[r->n - 1].t,
                    governor = r->n - 2 > is && r->token[r->n - 2].word ? r->token[r->n - 2].t : (tare_text){"", 0};
    const enum role role = role_of(last);
    if (role == ROLE_RATIO || role == ROLE_OPEN)
        return may_precede(governor, last) ||
               (role == ROLE_OPEN && (leads_to_answer(last) || unit_is_money(find_unit(last.data, last.size, true))));
    return role != ROLE_BETWEEN && role != ROLE_BASE;
}

/* Checks the words from the value to the noun at i: "is the", "apples, which is our final", "as
 * the". */
static bool is_subject(const struct line *r, int i)
{
    static const char *const links[] = {"which", "that", "this", "as", "and", "so", NULL};
    int k = i, open = 0;
    while (k > 0 && r->token[k - 1].word && describes_noun(r->token[k - 1].t)) k--;
    if (!k || !r->token[k - 1].word) return false;
    if (role_of(r->token[k - 1].t) != ROLE_IS && !text_equal(r->token[k - 1].t, text_of("as"), true)) return false;
    for (int j = 0; j < k - 1; j++) {
        const struct piece w = r->token[j];
        if (!w.word ? !is_mark(r, j, ",()") : is_doubtful(w.t) || role_of(w.t) == ROLE_IS || is_auxiliary(w.t)) return false;
        open += w.word && !text_one_of(w.t, links) && role_of(w.t) == ROLE_OPEN;
    }
    return open < 4;
}

/* Returns whether the number is a label: Step 4, Theorem 2, AIME 2024. */
static bool names_one(const struct line *front)
{
    static const char *const labels[] = {"step",     "theorem", "lemma",    "corollary", "problem", "question", "exercise",
                                         "example",  "figure",  "table",    "chapter",   "section", "page",     "case",
                                         "room",     "route",   "appendix", "axiom",     "version", "method",   "attempt",
                                         "approach", "rule",    "task",     NULL};
    if (!front->n || !front->token[front->n - 1].word) return false;
    const tare_text w = front->token[front->n - 1].t;
    bool capitals = w.size > 2 && !find_unit(w.data, w.size, true).kind && role_of(w) == ROLE_OPEN && !is_answer_noun(w);
    for (int64_t i = 0; i < w.size; i++) capitals &= w.data[i] >= 'A' && w.data[i] <= 'Z';
    return capitals || text_one_of(w, labels);
}

/* Returns whether a foreign word denies or changes the value: "no es 5", "ist nicht 12", "n'est pas
 * 7"; "la mitad de 5". */
static bool is_denied_abroad(const struct line *front)
{
    static const char *const words[] = {"nicht", "kein", "keine", "pas", "jamais", "non", "n\xC3\xA3o",       "niet",
                                        "geen",  "ikke", "inte",  "nie", "nunca",  "nie", "\xD0\xBD\xD0\xB5", NULL};
    static const char *const chinese[] = {"\xE4\xB8\x8D\xE6\x98\xAF", "\xE4\xB8\x8D\xE4\xB8\xBA", "\xE5\xB9\xB6\xE9\x9D\x9E",
                                          "\xE6\xB2\xA1\xE6\x9C\x89", "\xE4\xB8\x8D\xE7\xAD\x89", NULL};
    static const char *const parts[] = {"met\xC3\xA0", "mitad", "moiti\xC3\xA9", "metade", "h\xC3\xA4lfte", "doppio", "doble",
                                        /* words for half of it, twice it */
                                        "doppelte", "dobro", "dubbele", NULL};
    for (int i = front->n - 1; i >= 0 && !is_mark(front, i, ",;"); i--) {
        const tare_text w = front->token[i].t;
        if (!front->token[i].word) continue;
        if (text_one_of(w, words) || text_one_of(w, parts) ||
            (text_equal(w, text_of("no"), true) && i + 1 < front->n && front->token[i + 1].t.size < 4 &&
             role_of(front->token[i + 1].t) == ROLE_OPEN))
            return true;
        for (const char *const *c = chinese; *c; c++)
            if (text_find(w, *c) >= 0) return true;
    }
    return false;
}

/* Returns whether the value at `begin` is only a bound, or its sentence is not sure, in another
 * language: "más de 5", "5吧,我不太确定". */
static bool is_doubted_abroad(tare_text t, int64_t from, int64_t begin, int64_t stop)
{
    enum { LONGEST = 24 };
    uint64_t maybe = ANCHOR_ANY ^ ANCHOR_ENGLISH;
    if (anchor_in(text_slice(t, from, stop), ANCHOR_MAYBE, &maybe)) return true;
    for (int64_t i = begin - LONGEST > from ? begin - LONGEST : from; i < begin; i++) {
        uint64_t bound = ANCHOR_ANY ^ ANCHOR_ENGLISH;
        const int64_t n = anchor_at(t, i, ANCHOR_BOUND, &bound);
        if (n && !text_trim(text_slice(t, i + n, begin)).size) return true;
    }
    return false;
}

/* Returns whether another value or a case follows: "or possibly 3", "only when n is even", "if n is
 * odd". */
static bool is_hedged(const struct line *tail)
{
    static const char *const anywhere[] = {"possibly", "maybe", "perhaps", "otherwise", "unless", NULL}, *const cases[] = {
                                                                                                             "if", "when",
                                                                                                             "whenever", "except",
                                                                                                             NULL};
    bool first = true;
    for (int i = 0; i < tail->n; i++) {
        if (!tail->token[i].word) {
            if (is_mark(tail, i, "(;:?")) return false;
            continue;
        }
        const tare_text w = tail->token[i].t;
        const enum role role = role_of(w);
        const bool participle = i + 1 < tail->n && tail->token[i + 1].t.size > 4 &&
                                text_starts(tail->token[i + 1].t, tail->token[i + 1].t.size - 2, "ed", true);
        /* not "when rounded" */
        if (text_one_of(w, anywhere) || (first && text_one_of(w, cases) && !participle)) return true;
        if (role == ROLE_REASON || role == ROLE_THEN) return false;
        first &= role == ROLE_DROP;
    }
    return false;
}

/* Returns whether the subject denies it: "Nobody should believe that the total is 50." */
static bool is_denied_by_subject(const struct line *front)
{
    if (front->n < 2 || !front->token[0].word || !front->token[1].word) return false;
    return role_of(front->token[0].t) == ROLE_NOT;
}

/* Returns whether the verb before the value is negated: "Water does not boil at 100", not "those
 * who did not come are 12". */
static bool is_negated(const struct line *front)
{
    static const char *const helpers[] = {"do", "does", "did", "will", "would", "can", "could", "should", NULL};
    static const char *const joined[] = {"don't", "doesn't", "didn't", "won't", "can't", "cannot", "couldn't", NULL};
    for (int i = front->n - 1; i >= 0 && !is_mark(front, i, ",;:=?"); i--) {
        const tare_text w = front->token[i].t;
        if (!front->token[i].word) continue;
        if (text_one_of(w, joined)) return true;
        if (text_equal(w, text_of("not"), true))
            return i > 0 && front->token[i - 1].word && text_one_of(front->token[i - 1].t, helpers);
        const bool negated = i > 0 && front->token[i - 1].word && role_of(front->token[i - 1].t) == ROLE_NOT;
        if (!negated && (role_of(w) == ROLE_IS || role_of(w) == ROLE_THEN || is_auxiliary(w))) return false;
    }
    return false;
}

bool is_claimed(tare_text t, tare_text part, bool guess)
{
    struct line front, tail;
    const int64_t begin = part.data - t.data, end = begin + part.size;
    const int64_t from = sentence_start(t, begin, FAR);
    cut_pieces(&front, text_slice(t, from, begin));
    int64_t after = end;
    while (after < t.size && strchr("$*_) ", t.data[after])) after++;
    cut_pieces(&tail, text_slice(t, after, line_end(t, after)));
    /* the value's own $ or currency sign */
    while (front.n && is_mark(&front, front.n - 1, "#(")) front.n--;
    if (is_denied_abroad(&front) || is_doubted_abroad(t, from, begin, line_end(t, end)) || sentence_quotes(t, from, begin, end))
        return false;
    if (guess && (names_one(&front) || is_denied_by_subject(&front) || is_negated(&front))) return false;
    int noun = find_noun(&front, true);
    const int64_t stop = line_end(t, after);
    const bool asked = stop < t.size && t.data[stop] == '?'; /* "Is the answer 5?" */
    if (asked && (noun >= 0 || guess)) return false;
    if (noun >= 0 && is_reported(t, begin, end)) return false; /* "At first I thought the answer is 5" */
    if (noun >= 0) return is_stated(&front, noun) && is_equated(&front, noun) && !is_hedged(&tail);
    noun = find_noun(&tail, false);
    if (noun >= 0 && !is_subject(&tail, noun)) return false;
    if (noun >= 0) guess = true;
    for (int i = front.n - 1; i >= 0 && !is_mark(&front, i, ",;:#?"); i--) /* "I wish it were 3" */
        if (front.token[i].word && guess && is_doubtful(front.token[i].t) && (noun >= 0 || role_of(front.token[i].t) == ROLE_OPEN))
            return false;
    return true;
}

/* Returns whether the next sentence takes the answer back: "No wait, that's wrong". */
bool is_retracted(tare_text t, tare_text part)
{
    static const char *const subjects[] = {"that", "this", "it", "that's", "which", NULL};
    int64_t i = line_end(t, part.data - t.data + part.size);
    while (i < t.size && i < part.data - t.data + part.size + 2 * FAR && (text_is_space(t.data[i]) || strchr(".?!$*", t.data[i])))
        i++;
    struct line next;
    const int64_t end = line_end(t, i);
    const tare_text sentence = text_slice(t, i, end < i + FAR ? end : i + FAR);
    if (sentence_takes_back(sentence)) return true;
    cut_pieces(&next, sentence);
    int at = 0; /* "On reflection this is incorrect" */
    while (at + 1 < next.n && at < 5 && next.token[at].word && !text_one_of(next.token[at].t, subjects)) {
        if (is_doubtful(next.token[at].t) || role_of(next.token[at].t) == ROLE_WHERE) return false;
        at += 1 + !next.token[at + 1].word;
    }
    if (at >= next.n || !next.token[at].word || !text_one_of(next.token[at].t, subjects)) return false;
    /* "Note that $x = 1$ is wrong" */
    if (at && (at + 1 == next.n || !next.token[at + 1].word)) return false;
    for (int k = at + 1; k < next.n && k < at + 5; k++) {
        const enum role role = next.token[k].word ? role_of(next.token[k].t) : ROLE_IS;
        if (role == ROLE_FALSE) return true;
        if (role != ROLE_IS && role != ROLE_DROP) return false;
    }
    return false;
}

/* Returns whether a text without a value is an answer: "A", "It is an ellipse.", not "I do not
 * know." */
bool states_words(tare_text t)
{
    enum { SHORT = 80 };
    struct line line;
    bool is = false;
    if (!t.size || t.size > SHORT || memchr(t.data, '\\', (size_t)t.size) || memchr(t.data, '\n', (size_t)t.size) ||
        t.data[t.size - 1] == '?')
        return false;
    cut_pieces(&line, t);
    for (int i = 0; i < line.n; i++) {
        if (line.token[i].word ? is_doubtful(line.token[i].t) && line.n > 1 : !is_mark(&line, i, "()")) return false;
        is |= i && line.token[i].word && role_of(line.token[i].t) == ROLE_IS;
    }
    return is || line.n == 1;
}
