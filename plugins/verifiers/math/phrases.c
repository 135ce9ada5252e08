/* The function words of English that occur around answers. Every other word is a name. */
#include "prose.h"

#include <string.h>

enum { MOST_WORDS = 40 };

static const struct {
    const char *words;
    enum role role;
    const char *tex;
} PHRASES[] = {
    {"is equal to", ROLE_IS, NULL},
    {"are equal to", ROLE_IS, NULL},
    {"equal to", ROLE_IS, NULL},
    {"equals", ROLE_IS, NULL},
    {"equal", ROLE_IS, NULL},
    {"is", ROLE_IS, NULL},
    {"are", ROLE_IS, NULL},
    {"was", ROLE_IS, NULL},
    {"were", ROLE_IS, NULL},
    {"be", ROLE_IS, NULL},
    {"becomes", ROLE_IS, NULL},
    {"is given by", ROLE_IS, NULL},
    {"comes to", ROLE_IS, NULL},
    {"amounts to", ROLE_IS, NULL},
    {"turns out to be", ROLE_IS, NULL},
    {"greater than or equal to", ROLE_RELATE, "\\ge "},
    {"is greater than or equal to", ROLE_RELATE, "\\ge "},
    {"is at least", ROLE_RELATE, "\\ge "},
    {"at least", ROLE_RELATE, "\\ge "},
    {"no less than", ROLE_RELATE, "\\ge "},
    {"not less than", ROLE_RELATE, "\\ge "},
    {"less than or equal to", ROLE_RELATE, "\\le "},
    {"is less than or equal to", ROLE_RELATE, "\\le "},
    {"is at most", ROLE_RELATE, "\\le "},
    {"at most", ROLE_RELATE, "\\le "},
    {"no more than", ROLE_RELATE, "\\le "},
    {"no greater than", ROLE_RELATE, "\\le "},
    {"not more than", ROLE_RELATE, "\\le "},
    {"is greater than", ROLE_RELATE, "> "},
    {"greater than", ROLE_RELATE, "> "},
    {"is more than", ROLE_RELATE, "> "},
    {"more than", ROLE_RELATE, "> "},
    {"larger than", ROLE_RELATE, "> "},
    {"is less than", ROLE_RELATE, "< "},
    {"less than", ROLE_RELATE, "< "},
    {"smaller than", ROLE_RELATE, "< "},
    {"fewer than", ROLE_RELATE, "< "},
    {"is not equal to", ROLE_RELATE, "\\ne "},
    {"not equal to", ROLE_RELATE, "\\ne "},
    {"does not equal", ROLE_RELATE, "\\ne "},
    {"is congruent to", ROLE_RELATE, "\\equiv "},
    {"congruent to", ROLE_RELATE, "\\equiv "},
    {"belongs to", ROLE_RELATE, "\\in "},
    {"is in", ROLE_RELATE, "\\in "},
    {"is an element of", ROLE_RELATE, "\\in "},
    {"minus", ROLE_TEX, "-"},
    {"negative", ROLE_TEX, "-"},
    {"plus", ROLE_TEX, "+"},
    {"plus or minus", ROLE_TEX, "\\pm "},
    {"times", ROLE_TEX, "\\cdot "},
    {"multiplied by", ROLE_TEX, "\\cdot "},
    {"divided by", ROLE_TEX, "/"},
    {"squared", ROLE_TEX, "^{2}"},
    {"cubed", ROLE_TEX, "^{3}"},
    {"to the power of", ROLE_TEX, "^"},
    {"the square root of", ROLE_TEX, "\\sqrt "},
    {"square root of", ROLE_TEX, "\\sqrt "},
    {"the cube root of", ROLE_TEX, "\\cbrt "},
    {"cube root of", ROLE_TEX, "\\cbrt "},
    {"infinity", ROLE_TEX, "\\infty "},
    {"pi", ROLE_TEX, "\\pi "},
    {"union", ROLE_TEX, "\\cup "},
    {"choose", ROLE_TEX, "\\choose "},
    {"factorial", ROLE_TEX, "! "},
    {"modulo", ROLE_TEX, "\\text{ mod }"},
    {"mod", ROLE_TEX, "\\text{ mod }"},
    {"out of", ROLE_RATIO, "/"},
    {"out of every", ROLE_RATIO, "/"},
    {"in every", ROLE_RATIO, "/"},
    {"in", ROLE_RATIO, "/"},
    {"of", ROLE_RATIO, "/"},
    {"to", ROLE_RATIO, ":"},
    {"in base", ROLE_BASE, NULL},
    {"base", ROLE_BASE, NULL},
    {"except", ROLE_EXCEPT, NULL},
    {"except for", ROLE_EXCEPT, NULL},
    {"other than", ROLE_EXCEPT, NULL},
    {"excluding", ROLE_EXCEPT, NULL},
    {"all real numbers", ROLE_SET, "\\mathbb{R}"},
    {"all reals", ROLE_SET, "\\mathbb{R}"},
    {"any real number", ROLE_SET, "\\mathbb{R}"},
    {"every real number", ROLE_SET, "\\mathbb{R}"},
    {"the set of all real numbers", ROLE_SET, "\\mathbb{R}"},
    {"the set of real numbers", ROLE_SET, "\\mathbb{R}"},
    {"the real numbers", ROLE_SET, "\\mathbb{R}"},
    {"all real values of", ROLE_SET, "\\mathbb{R}"},
    {"all real", ROLE_SET, "\\mathbb{R}"},
    {"all integers", ROLE_SET, "\\mathbb{Z}"},
    {"any integer", ROLE_SET, "\\mathbb{Z}"},
    {"the set of integers", ROLE_SET, "\\mathbb{Z}"},
    {"the empty set", ROLE_SET, "\\emptyset "},
    {"empty set", ROLE_SET, "\\emptyset "},
    {"no solution", ROLE_SET, "\\emptyset "},
    {"no solutions", ROLE_SET, "\\emptyset "},
    {"no real solution", ROLE_SET, "\\emptyset "},
    {"no real solutions", ROLE_SET, "\\emptyset "},
    {"no integer solutions", ROLE_SET, "\\emptyset "},
    {"no such", ROLE_SET, "\\emptyset "},
    {"no solution exists", ROLE_SET, "\\emptyset "},
    {"no solutions exist", ROLE_SET, "\\emptyset "},
    {"no integer solution", ROLE_SET, "\\emptyset "},
    {"no valid solution", ROLE_SET, "\\emptyset "},
    {"no valid solutions", ROLE_SET, "\\emptyset "},
    {"none", ROLE_SET, "\\emptyset "},
    {"impossible", ROLE_SET, "\\emptyset "},
    {"none of", ROLE_REFUSED, NULL},
    {"dne", ROLE_SET, "\\text{DNE}"},
    {"does not exist", ROLE_SET, "\\text{DNE}"},
    {"do not exist", ROLE_SET, "\\text{DNE}"},
    {"undefined", ROLE_SET, "\\text{undefined}"},
    {"not defined", ROLE_SET, "\\text{undefined}"},
    {"is not defined", ROLE_SET, "\\text{undefined}"},
    {"is undefined", ROLE_SET, "\\text{undefined}"},
    {"and", ROLE_JOINT, "and"},
    {"or", ROLE_JOINT, "or"},
    {"where", ROLE_WHERE, "where"},
    {"if", ROLE_WHERE, "if"},
    {"when", ROLE_WHERE, "when"},
    {"for all", ROLE_WHERE, "for all"},
    {"for any", ROLE_WHERE, "for any"},
    {"for every", ROLE_WHERE, "for every"},
    {"for", ROLE_WHERE, "for"},
    {"such that", ROLE_WHERE, "such that"},
    {"provided that", ROLE_WHERE, "provided that"},
    {"because", ROLE_REASON, NULL},
    {"since", ROLE_REASON, NULL},
    {"as", ROLE_REASON, NULL},
    {"which", ROLE_REASON, NULL},
    {"by", ROLE_REASON, NULL},
    {"so", ROLE_THEN, NULL},
    {"thus", ROLE_THEN, NULL},
    {"hence", ROLE_THEN, NULL},
    {"therefore", ROLE_THEN, NULL},
    {"which gives", ROLE_THEN, NULL},
    {"that is", ROLE_THEN, NULL},
    {"not", ROLE_NOT, NULL},
    {"never", ROLE_NOT, NULL},
    {"neither", ROLE_NOT, NULL},
    {"nobody", ROLE_NOT, NULL},
    {"nor", ROLE_NOT, NULL},
    {"no", ROLE_NOT, NULL},
    {"cannot", ROLE_NOT, NULL},
    {"without", ROLE_NOT, NULL},
    {"doubt", ROLE_NOT, NULL},
    {"doubtful", ROLE_NOT, NULL},
    {"deny", ROLE_NOT, NULL},
    {"hardly", ROLE_NOT, NULL},
    {"scarcely", ROLE_NOT, NULL},
    {"barely", ROLE_NOT, NULL},
    {"seldom", ROLE_NOT, NULL},
    {"rarely", ROLE_NOT, NULL},
    {"nowhere", ROLE_NOT, NULL},
    {"nowhere near", ROLE_NOT, NULL},
    {"nothing", ROLE_NOT, NULL},
    {"anything but", ROLE_NOT, NULL},
    {"everything but", ROLE_NOT, NULL},
    {"all but", ROLE_NOT, NULL},
    {"instead of", ROLE_NOT, NULL},
    {"rather than", ROLE_NOT, NULL},
    {"unlike", ROLE_NOT, NULL},
    {"unequal", ROLE_NOT, NULL},
    {"different from", ROLE_NOT, NULL},
    {"far from", ROLE_NOT, NULL},
    {"wrong", ROLE_FALSE, NULL},
    {"incorrect", ROLE_FALSE, NULL},
    {"false", ROLE_FALSE, NULL},
    {"untrue", ROLE_FALSE, NULL},
    {"invalid", ROLE_FALSE, NULL},
    {"mistaken", ROLE_FALSE, NULL},
    {"divisible by", ROLE_REFUSED, NULL},
    {"is divisible by", ROLE_REFUSED, NULL},
    {"odds", ROLE_REFUSED, NULL},
    {"otherwise", ROLE_REFUSED, NULL},
    {"between", ROLE_BETWEEN, NULL},
    {"strictly between", ROLE_BETWEEN, NULL},
    {"inclusive", ROLE_CLOSED, NULL},
    {"or more", ROLE_BOUND, " \\le "},
    {"or greater", ROLE_BOUND, " \\le "},
    {"or larger", ROLE_BOUND, " \\le "},
    {"or above", ROLE_BOUND, " \\le "},
    {"or higher", ROLE_BOUND, " \\le "},
    {"and above", ROLE_BOUND, " \\le "},
    {"or less", ROLE_BOUND, " \\ge "},
    {"or fewer", ROLE_BOUND, " \\ge "},
    {"or smaller", ROLE_BOUND, " \\ge "},
    {"or below", ROLE_BOUND, " \\ge "},
    {"and below", ROLE_BOUND, " \\ge "},
    {"almost", ROLE_REFUSED, NULL},
    {"nearly", ROLE_REFUSED, NULL},
    {"twice", ROLE_REFUSED, NULL},
    {"double", ROLE_REFUSED, NULL},
    {"triple", ROLE_REFUSED, NULL},
    {"than", ROLE_REFUSED, NULL},
    {"more", ROLE_REFUSED, NULL},
    {"less", ROLE_REFUSED, NULL},
    {"fewer", ROLE_REFUSED, NULL},
    {"up to", ROLE_REFUSED, NULL},
    {"under", ROLE_REFUSED, NULL},
    {"over", ROLE_RATIO, "/"},
    {"above", ROLE_REFUSED, NULL},
    {"below", ROLE_REFUSED, NULL},
    {"from", ROLE_REFUSED, NULL},
    {"unless", ROLE_REFUSED, NULL},
    {"either", ROLE_REFUSED, NULL},
    {"maybe", ROLE_REFUSED, NULL},
    {"perhaps", ROLE_REFUSED, NULL},
    {"possibly", ROLE_REFUSED, NULL},
};

static const char *const DROPPED[] = {
    "the",        "a",       "an",      "this",       "that",      "these",  "those",       "there", "it",    "we",
    "you",        "he",      "she",     "they",       "our",       "my",     "your",        "its",   "his",   "her",
    "their",      "such",    "all",     "both",       "also",      "then",   "only",        "just",  "about", "approximately",
    "roughly",    "around",  "approx",  "exactly",    "precisely", "at",     "on",          "with",  "total", "totals",
    "altogether", "overall", "finally", "ultimately", "simply",    "indeed", "respectively"};

static const char *const AUXILIARIES[] = {"has", "have",  "had", "will",  "would", "should", "must", "shall",
                                          "can", "could", "may", "might", "do",    "does",   "did"};

/* Nouns and verbs that name a value or have it as object. Prepositions are not among them, nor are
 * words for operations: square, half, reciprocal. */
static const char *const NAMING[] = {
    "vertex",    "vertices",    "center",     "centre",        "focus",        "midpoint",   "centroid",    "point",
    "points",    "pair",        "pairs",      "triple",        "vector",       "matrix",     "interval",    "set",
    "tuple",     "coordinates", "coordinate", "line",          "equation",     "expression", "function",    "polynomial",
    "fraction",  "ratio",       "integer",    "integers",      "digit",        "roots",      "zero",        "zeros",
    "term",      "terms",       "sum",        "product",       "quotient",     "difference", "remainder",   "average",
    "mean",      "median",      "mode",       "range",         "maximum",      "minimum",    "probability", "chance",
    "area",      "volume",      "perimeter",  "circumference", "surface",      "length",     "width",       "height",
    "depth",     "radius",      "diameter",   "distance",      "displacement", "speed",      "velocity",    "acceleration",
    "force",     "mass",        "weight",     "energy",        "power",        "pressure",   "temperature", "density",
    "charge",    "current",     "voltage",    "frequency",     "wavelength",   "time",       "age",         "duration",
    "period",    "amplitude",   "rate",       "slope",         "intercept",    "angle",      "degree",      "degrees",
    "cost",      "costs",       "price",      "fee",           "tip",          "tax",        "salary",      "income",
    "budget",    "bill",        "balance",    "change",        "count",        "size",       "quantity",    "score",
    "rank",      "order",       "dimension",  "determinant",   "limit",        "derivative", "integral",    "variance",
    "deviation", "coefficient", "constant",   "gets",          "pays",         "pay",        "paid",        "spends",
    "spend",     "spent",       "needs",      "need",          "needed",       "takes",      "take",        "took",
    "makes",     "make",        "made",       "earns",         "earn",         "earned",     "got",         "buys",
    "buy",       "bought",      "sells",      "sell",          "sold",         "saves",      "save",        "saved",
    "uses",      "use",         "used",       "gives",         "give",         "gave",       "obtain",      "obtains",
    "receives",  "receive",     "received",   "eats",          "eat",          "ate",        "reads",       "read",
    "runs",      "run",         "ran",        "walks",         "walk",         "walked",     "drives",      "drive",
    "drove",     "travels",     "travel",     "traveled",      "contains",     "contain",    "holds",       "hold",
    "weighs",    "weigh",       "measures",   "requires",      "require",      "left",       "remain",      "remains",
    "yields",    "yield",       "collects",   "collected",     "planted",      "plants",     "baked",       "bakes",
    "won",       "finds",       "find",       "found",         "counts",       "produces",   "produce",     "see",
    "sees",      "returns",     "output",     "outputs",       "prints",       "lasts",      "last",        "lasted",
    "covers",    "costing",     "totaling",   "exists",        "exist",        "factor",     "factors",     "prime",
    "primes",    "even",        "odd",        "smallest",      "largest",      "greatest",   "least",       "positive"};
/* Verbs with "to" whose object is the value */
static const char *const REACHING[] = {"rounds",    "rounded", "simplifies",  "simplified", "evaluates", "reduces",
                                       "reduced",   "sums",    "adds",        "converges",  "tends",     "comes",
                                       "works",     "leads",   "corresponds", "up",         "out",       "down",
                                       "according", "equals",  "equates",     "amounts",    "converts",  "integrates"};

static const char *const ANSWER_NOUNS[] = {"option",      "choice",     "answer",    "answers",   "ans",     "final",
                                           "result",      "solution",   "solutions", "statement", "claim",   "assertion",
                                           "proposition", "inequality", "value",     "values",    "correct", "total",
                                           "number",      "amount",     "get"};

/* Nouns for a kind of thing that another word specifies: an isosceles triangle. */
static const char *const KINDS[] = {"triangle", "function", "series", "sequence", "matrix", "vector",  "vectors", "system",
                                    "equation", "line",     "lines",  "curve",    "graph",  "number",  "set",     "angle",
                                    "integral", "polygon",  "shape",  "figure",   "events", "relation"};

static bool is_listed(tare_text w, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text_equal(w, text_of(list[i]), true)) return true;
    return false;
}

bool is_answer_noun(tare_text w)
{
    return is_listed(w, ANSWER_NOUNS, sizeof ANSWER_NOUNS / sizeof *ANSWER_NOUNS);
}

bool is_auxiliary(tare_text w)
{
    return is_listed(w, AUXILIARIES, sizeof AUXILIARIES / sizeof *AUXILIARIES);
}

bool may_precede(tare_text governor, tare_text w)
{
    const bool naming = is_listed(governor, NAMING, sizeof NAMING / sizeof *NAMING) || is_answer_noun(governor);
    if (text_equal(w, text_of("of"), true)) return !governor.size || naming;
    if (text_equal(w, text_of("to"), true)) return is_listed(governor, REACHING, sizeof REACHING / sizeof *REACHING);
    int used;
    const char *tex;
    return is_listed(w, NAMING, sizeof NAMING / sizeof *NAMING) || is_answer_noun(w) ||
           phrase_role(&w, 1, &used, &tex) != ROLE_OPEN;
}

bool is_kind_noun(tare_text w)
{
    return is_listed(w, KINDS, sizeof KINDS / sizeof *KINDS);
}

/* Returns the length of the phrase in words if the words start with it; else 0. */
static int match_phrase(const char *phrase, const tare_text *words, int n)
{
    int k = 0;
    for (const char *p = phrase; *p; k++) {
        const size_t size = strcspn(p, " ");
        if (k == n || !text_equal(words[k], (tare_text){p, (int64_t)size}, true)) return 0;
        p += size + (p[size] == ' ');
    }
    return k;
}

bool is_in_phrase(tare_text w)
{
    for (size_t i = 0; i < sizeof PHRASES / sizeof *PHRASES; i++)
        for (const char *p = PHRASES[i].words; p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL)
            if (text_equal(w, (tare_text){p, (int64_t)strcspn(p, " ")}, true)) return true;
    return false;
}

/* Returns true for a contracted not: isn't, won't. */
static bool is_contracted_not(tare_text w)
{
    return w.size > 3 && text_equal(text_slice(w, w.size - 3, w.size), text_of("n't"), true);
}

enum role phrase_role(const tare_text *words, int n, int *used, const char **tex)
{
    enum role role = ROLE_OPEN;
    *used = 0;
    *tex = NULL;
    if (n < 1) return role;
    for (size_t i = 0; i < sizeof PHRASES / sizeof *PHRASES; i++) {
        const int k = text_lower(words[0].data[0]) == PHRASES[i].words[0] ? match_phrase(PHRASES[i].words, words, n) : 0;
        if (k > *used) *used = k, *tex = PHRASES[i].tex, role = PHRASES[i].role;
    }
    if (*used) return role;
    *used = 1;
    if (is_contracted_not(words[0])) return ROLE_NOT;
    return is_auxiliary(words[0]) || is_listed(words[0], DROPPED, sizeof DROPPED / sizeof *DROPPED) ? ROLE_DROP : ROLE_OPEN;
}

bool only_introduces(tare_text t)
{
    tare_text words[MOST_WORDS];
    int n = 0, used;
    const char *tex;
    for (int64_t i = 0; i < t.size;) {
        const int64_t from = i;
        while (i < t.size && (text_is_letter(t.data[i]) || (i > from && t.data[i] == '\''))) i++;
        if (i > from && n == MOST_WORDS) return false;
        if (i > from) words[n++] = text_slice(t, from, i);
        i += i == from;
    }
    for (int k = 0; k < n; k += used) {
        const enum role role = phrase_role(words + k, n - k, &used, &tex);
        if (role != ROLE_OPEN && role != ROLE_DROP && role != ROLE_IS && role != ROLE_RATIO && role != ROLE_JOINT &&
            role != ROLE_THEN)
            return false;
    }
    return true;
}
