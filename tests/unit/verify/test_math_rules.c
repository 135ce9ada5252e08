/* The math verifier, rule by rule: pairs on both sides of every rule, properties that hold for all
 * answers, and threads. */
#include "pairs.h"

#include <pthread.h>

static const struct pair EQUAL[] = {
    /* by locale */
    {"1234567.5", "1.234.567{,}5"},
    {"1234.56", "1\\,234{,}56"},
    {"\\$5", "5\\$"},
    {"5 \\text{ euros}", "\\text{\xE2\x82\xAC}5"},
    /* names, chains, consequences */
    {"44", "f(13) = 44"},
    {"\\frac{1}{3}", "P(X = 3) = \\frac{1}{3}"},
    {"27", "\\angle ABC = 27"},
    {"12", "\\text{Area} = 12"},
    {"5", "2x = 10 \\implies x = 5"},
    {"(x-2)(x+2)", "x^2 - 4 = (x - 2)(x + 2)"},
    {"x=2, x=3", "x_1 = 2, x_2 = 3"},
    {"f(x) = x - 1", "x - 1 = f(x)"},
    /* inequalities as sets */
    {"x > 1 \\text{ and } x \\le 4", "1 < x \\le 4"},
    {"x < 1 \\text{ or } x > 4", "x \\in (-\\infty, 1) \\cup (4, \\infty)"},
    {"2x - 1 > 5", "x > 3"},
    {"|x - 2| < 5", "-3 < x < 7"},
    {"\\{x \\in \\mathbb{R} \\mid x \\ne 2\\}", "(-\\infty, 2) \\cup (2, \\infty)"},
    /* matrices */
    {"\\begin{pmatrix}7&10\\\\15&22\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^2"},
    {"\\begin{pmatrix}1&3\\\\2&4\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^T"},
    {"\\begin{pmatrix}-2&1\\\\3/2&-1/2\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^{-1}"},
    {"-2", "\\det\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}"},
    /* units as products, bases, mixed numbers, limits */
    {"5 \\text{ m/s}", "5\\,\\frac{\\text{m}}{\\text{s}}"},
    {"5 \\text{ m/s}", "5 \\mathrm{m \\cdot s^{-1}}"},
    {"9.8 \\text{ m/s}^2", "9.8 \\mathrm{\\,m\\,s^{-2}}"},
    {"4\\%\\text{ increase}", "4\\%"},
    {"\\begin{cases} 1 & x>0\\\\ 0 & x \\le 0\\end{cases}",
     "\\begin{cases} 1, & \\text{if } x>0\\\\ 0, & \\text{if } x\\le 0\\end{cases}"},
    {"5 \\text{ square feet}", "5\\text{ ft}^2"},
    {"101_2", "(101)_{\\text{base } 2}"},
    {"\\frac{7}{2}", "3{\\frac{1}{2}}"},
    {"\\lim_{x \\to 0} \\frac{\\sin x}{x}", "\\lim\\limits_{x\\rightarrow 0}\\frac{\\sin x}{x}"},
    {"\\int_0^1 t^2 dt", "\\int_0^1 x^2\\,dx"},
    {"\\begin{cases} x+y=3 \\\\ x-y=1 \\end{cases}", "x+y=3, x-y=1"},
    {"x \\le 3", "x &le; 3"},
    /* numbers as written */
    {"1234567", "1,234,567"},
    {"1234567", "1{,}234{,}567"},
    {"1600", "1\\,600"},
    {"1600", "1\\ 600"},
    {"0.5", ".50"},
    {"3/4", "\\tfrac34"},
    {"2.5e-3", "0.0025"},
    {"1.85e5", "1.85 \\times 10^{5}"},
    {"6.02 \\times 10^{23}", "6.02e23"},
    {"0.\\overline{3}", "\\frac13"},
    {"0.1\\overline{6}", "1/6"},
    {"-2\\frac12", "-2.5"},
    {"7 \\frac{3}{8}", "59/8"},
    {"10^{-2}", "0.01"},
    {"2 million", "2000000"},
    {"101_2", "5"},
    {"2A", "2A"},
    {"12_{10}", "12"},
    /* beyond 64 bits */
    {"\\frac{3^{56}-1}{2}", "11111111111111111111111111111111111111111111111111111111_3"},
    {"\\sqrt[64]{2}\\sqrt[64]{3}", "\\sqrt[64]{2}\\sqrt[64]{3}i i i i i i i i i i i i i i i i i i i i i i i i i i i i i i i i i i "
                                   /* also a product of degrees */
                                   "i i i i i i i i i i i i i i i i i i"},
    /* exact values */
    {"\\sqrt{12}", "2\\sqrt3"},
    {"\\sqrt{3+2\\sqrt2}", "1+\\sqrt2"},
    {"\\frac{1}{\\sqrt2}", "\\frac{\\sqrt2}{2}"},
    {"2^{1/2}", "\\sqrt2"},
    {"\\sqrt[3]{-8}", "-2"},
    {"\\sqrt[4]{16}", "2"},
    {"\\log_2 32", "5"},
    {"\\log_4 2", "\\frac12"},
    {"\\ln e^3", "3"},
    {"\\lg 1000", "3"},
    {"e^{i\\pi}", "-1"},
    {"(1+i)^4", "-4"},
    {"|5-12i|", "13"},
    {"\\cos 36^\\circ", "\\frac{1+\\sqrt5}{4}"},
    {"\\tan\\frac{\\pi}{3}", "\\sqrt3"},
    {"\\arctan 1", "\\pi/4"},
    {"\\binom{7}{3}", "35"},
    {"\\frac{8!}{6!}", "56"},
    {"\\lfloor \\pi \\rfloor", "3"},
    {"\\gcd(12, 18)", "6"},
    {"\\sum_{n=1}^{10} n^2", "385"},
    {"\\prod_{j=1}^{5} j", "120"},
    {"17 \\bmod 5", "2"},
    /* letters */
    {"(x+1)^2", "x^2+2x+1"},
    {"\\frac{a^2-b^2}{a-b}", "a+b"},
    {"\\sin^2 t + \\cos^2 t", "1"},
    {"2^{n+1}", "2\\cdot 2^n"},
    {"n!", "n\\cdot(n-1)!"},
    {"e^{x+y}", "e^x e^y"},
    {"\\ln(ab)", "\\ln a + \\ln b"},
    {"x_1 + x_2", "x_2+x_{1}"},
    {"\\alpha\\beta", "\\beta \\alpha"},
    {"\\pi r^2", "r^{2}\\pi"},
    /* relations */
    {"x=3", "3"},
    {"3", "x = 3"},
    {"y = x - 1", "x - y = 1"},
    {"x > 2", "2 < x"},
    {"0 \\le t < 4", "4 > t \\geq 0"},
    {"x \\neq 2", "2 \\ne x"},
    {"x<4", "2x<8"},
    {"x \\ge 1", "x \\in [1, \\infty)"},
    {"f(x) = 2x", "f(x)=x+x"},
    {"(a, b) = (1, 2)", "(1,2)"},
    /* lists, sets, tuples, intervals */
    {"1, 2, 3", "\\{3, 2, 1\\}"},
    {"\\{\\{1\\},2\\}", "\\{2, \\{1\\}\\}"},
    {"p \\land q", "p \\wedge q"},
    {"x > 1 \\land x < 4", "(1, 4)"},
    {"1, 2", "x = 1 \\lor x = 2"},
    {"IV", "\\text{IV}"},
    {"555-1234", "555-1234"},
    {"3/4/2024", "3/4/2024"},
    {"24", "2\\text{ dozen}"},
    {"\\ln(x^2)", "2\\ln x"},
    {"5", "5 \\text{ (exactly)}"},
    {"0.667", "2/3 = 0.667"},
    {"2000000", "2\\text{ million people}"},
    {"5", "5 = 2 + 3 = 5"},
    {"x=1 \\text{ or } x=-1", "\\pm 1"},
    {"2 \\pm \\sqrt3", "2+\\sqrt3, 2-\\sqrt3"},
    {"(1,2),(3,4)", "(3,4), (1,2)"},
    {"[0, 1) \\cup (2, 3]", "(2,3] \\cup [0,1)"},
    {"(-\\infty, \\infty)", "\\mathbb{R}"},
    {"(1,3]", "(1,2] \\cup [2,3]"},
    {"\\{1,2\\}\\cap\\{2,3\\}", "\\{2\\}"},
    {"\\varnothing", "\\emptyset"},
    {"(0.5, 2)", "\\left(\\frac12, 2\\right)"},
    {"1:2", "3:6"},
    {"\\frac12", "1:2"},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix}\\frac22\\\\2\\end{bmatrix}"},
    /* units, percent, degrees, words */
    {"5", "5 \\text{ cm}"},
    {"5 \\text{ cm}", "5\\,\\mathrm{cm}"},
    {"45^\\circ", "45"},
    {"45", "45 \\text{ degrees}"},
    {"12\\%", "0.12"},
    {"12\\%", "12"},
    {"\\$3.20", "3.2"},
    {"\\text{yes}", "\\text{Yes}"},
    {"\\text{(B)}", "B"},
    {"\\text{no solution}", "\\text{No solution}"},
    {"\\text{blue}", "blue"},
    {"x \\text{ and } y", "x, y"},
    {"90^\\circ", "90\xC2\xB0"},
    {"2\\pi", "2\xCF\x80"},
    {"x^2", "x\xC2\xB2"},
};

static void test_equal(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(EQUAL, true);
}

static const struct pair DIFFERENT[] = {
    {"5 \\text{ m/s}", "5 \\text{ m}"},
    {"\\$5", "5 \\text{ euros}"},
    {"x(x+1) = 6", "6"},
    {"a(b+c) = d", "d"},
    {"5", "2x = 5 \\implies x = 3"},
    {"x > 1 \\text{ and } x < 4", "x > 1 \\text{ or } x < 4"},
    {"x > 1, x < 4", "y > 1, y < 4"},
    {"2x - 1 > 5", "x < 3"},
    {"x^2 - 4 = (x - 2)(x + 3)", "(x - 2)(x + 3)"},
    {"\\begin{pmatrix}1&4\\\\9&16\\end{pmatrix}", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}^2"},
    {"\\lim_{x \\to 0} f(x)", "\\lim_{x \\to 1} f(x)"},
    {"\\int_0^1 t^2 dt", "\\int_0^2 x^2\\,dx"},
    {"x_1 = 2, x_2 = 3", "x_1 = 3, x_2 = 2"},
    {"101_2", "101_3"},
    /* close together */
    {"\\frac{1}{2^{60}}", "\\frac{1}{2^{59}}"},
    {"10^{-30}", "0"},
    {"\\sqrt2", "1.41421356237"},
    {"\\pi", "3.14159265358979"},
    {"\\frac13", "0.333333333333"},
    {"10^{50}", "10^{50}+1"},
    {"e^{\\pi\\sqrt{163}}", "262537412640768744"},
    {"\\frac{22}{7}", "\\pi"},
    {"0.1", "0.10000000000000001"},
    {"x + 10^{-40}", "x"},
    {"(1+\\sqrt2)^{30}", "304278004998"},
    /* parsing */
    {"12", "1 2"},
    {"7", "4 3"},
    {"2x", "2, x"},
    {"\\frac12", "\\frac21"},
    {"x^2", "x2"},
    {"x_2", "2x"},
    {"-5", "5-"},
    {"3\\frac12", "\\frac32"},
    {"2516_8", "2516_9"},
    {"204", "204_5"},
    {"10", "1O"},
    {"1", "l"},
    {"7", "\\neq 7"},
    {"7", "\\text{not } 7"},
    {"7", "7|8"},
    {"7", "7;8"},
    {"2/3", "2 or 3"},
    {"1234", "1,2,3,4"},
    {"3", "3,0"},
    /* undefined */
    {"0", "0/0"},
    {"1", "0^0"},
    {"\\infty", "1/0"},
    {"\\infty", "-\\infty"},
    {"\\infty", "\\infty-\\infty"},
    {"0", "0\\cdot\\infty"},
    {"\\infty", "\\tan\\frac\\pi2"},
    {"1", "\\frac{1-1}{1-1}"},
    /* letters */
    {"x", "y"},
    {"N", "n+1"},
    {"Rr", "r^2"},
    {"e", "E"},
    {"|x|", "x"},
    {"\\sqrt{x^2}", "-x"},
    {"\\sqrt{x^2}", "x"},
    {"\\sqrt{a^2 b}", "a\\sqrt{b}"},
    {"x+y", "xy"},
    {"f(x)", "g(x)"},
    {"\\alpha", "\\beta"},
    {"n!", "n"},
    {"a^b", "b^a"},
    {"\\sin x", "\\cos x"},
    {"2^n", "n^2"},
    /* relations */
    {"x > 2", "x \\ge 2"},
    {"x > 2", "x < 2"},
    {"y=x+1", "y=x-1"},
    {"x=5", "y=5"},
    {"2x+z=1", "1"},
    {"x^2=4", "x=2"},
    {"\\frac{dx}{dt}=kx-a", "\\frac{dx}{dt}=a-kx"},
    {"1<x<2", "1<x\\le 2"},
    {"7", "7=8"},
    {"8", "7 \\approx 8"},
    {"[1,\\infty)", "x > 1"},
    {"x<4", "-x<4"},
    {"3x+1=0", "5x+2=0"},
    /* lists, sets, tuples, intervals */
    {"1, 2", "1, 2, 3"},
    {"1, 2, 3", "1, 2"},
    {"(1,2)", "(2,1)"},
    {"(1,2)", "[1,2]"},
    {"(1,2)", "(1,2]"},
    {"(1,2)", "1"},
    {"\\pm 2", "2"},
    {"(0,1)\\cup(1,2)", "(0,2)"},
    {"(15,-29)", "\\emptyset"},
    {"\\{1,2\\}\\cup\\{3\\}", "\\{1,2\\}"},
    {"1:2", "2:1"},
    {"12:00", "1:00"},
    {"1:2:3", "1:2"},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1&2\\end{pmatrix}"},
    {"\\begin{pmatrix}1&2\\end{pmatrix}", "\\begin{pmatrix}2&1\\end{pmatrix}"},
    {"1, 2, \\ldots, n", "1, 3, \\ldots, n"},
    {"\\{\\{1\\},2\\}", "\\{1,\\{2\\}\\}"},
    {"\\{1, 2\\}", "\\{\\{1\\}, 2\\}"},
    /* connectives */
    {"p \\land q", "p \\lor q"},
    {"p \\land q", "p, q"},
    {"(p \\land q) \\lor r", "(p \\lor q) \\land r"},
    {"p \\land q \\lor r", "p \\lor q \\land r"},
    /* not arithmetic */
    {"IV", "VI"},
    {"AB", "BA"},
    {"2", "2\\text{ dozen}"},
    {"0", "0x10"},
    {"-679", "555-1234"},
    {"\\frac{3}{8096}", "3/4/2024"},
    {"7", "7 \\text{ (or 8)}"},
    {"5", "5..."},
    {"5", "3 = 5"},
    {"5", "2 + 2 = 5"},
    {"2", "2\\text{ million people}"},
    /* units and words */
    {"5 \\text{ km}", "5 \\text{ m}"},
    {"5 \\text{ hours}", "5 \\text{ minutes}"},
    {"12\\%", "1.2"},
    {"12", "120\\%"},
    {"\\text{even}", "\\text{odd}"},
    {"\\text{east}", "\\text{seat}"},
    {"\\text{Monday}", "\\text{Sunday}"},
    {"\\text{(A)}", "\\text{(B)}"},
    {"2", "\\text{two hundred}"},
    {"east", "seat"},
    {"90^\\circ", "\\pi"},
    {"5", "5x"},
    {"5", "5i"},
    {"6", "6\\pi"},
};

static void test_different(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(DIFFERENT, false);
}

struct whole {
    const char *completion, *gold;
    int code;
    const char *extracted;
};

static void test_extraction(void **state)
{
    (void)state;
    static const struct whole cases[] = {
        {"<think>\\boxed{4}</think> So \\boxed{5}.", "5", TARE_VERDICT_CORRECT, "5"},
        {"<think>\\boxed{4}</think>", "4", TARE_VERDICT_NO_ANSWER, ""},
        {"<think>So it is \\boxed{4}", "4", TARE_VERDICT_NO_ANSWER, ""},
        {"<think>a</think>\\boxed{4} <think>or \\boxed{5}", "5", TARE_VERDICT_NO_ANSWER, ""},
        {"First \\boxed{3}. No: \\boxed{4}", "4", TARE_VERDICT_CORRECT, "4"},
        {"\\boxed{1} and \\boxed{2}", "1, 2", TARE_VERDICT_CORRECT, "1, 2"},
        {"\\boxed{1} and \\boxed{2}", "2", TARE_VERDICT_WRONG, "1, 2"},
        {"\\boxed{4}, so the final answer is 5", "4", TARE_VERDICT_CORRECT, "4"},
        {"The final answer is 5 apples.", "5", TARE_VERDICT_CORRECT, "5"},
        {"Answer: $x = \\frac{1}{2}$", "0.5", TARE_VERDICT_CORRECT, "x = \\frac{1}{2}"},
        {"We add 2 and 3.\n#### 5", "5", TARE_VERDICT_CORRECT, "5"},
        {"<answer>5</answer>", "5", TARE_VERDICT_CORRECT, "5"},
        {"It costs \\$4, and then $10 more, so we pay $14.", "14", TARE_VERDICT_CORRECT, "14"},
        {"Therefore $3 + 4 = 7$ holds.", "7", TARE_VERDICT_CORRECT, "3 + 4 = 7"},
        {"I do not know.", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"\\boxed{}", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"I will put the answer within \\boxed{}. The answer is 7.", "7", TARE_VERDICT_CORRECT, "7"},
        {"#### 7\nThe answer is \"####\"", "7", TARE_VERDICT_CORRECT, "7"},
        {"\\boxed{\\frac{7}{}}", "7", TARE_VERDICT_UNPARSABLE, "\\frac{7}{}"},
        {"\\boxed{7 + }", "7", TARE_VERDICT_UNPARSABLE, "7 +"},
        {"\\boxed{\\foo{7}}", "7", TARE_VERDICT_UNPARSABLE, "\\foo{7}"},
        {"\\boxed{7", "7", TARE_VERDICT_NO_ANSWER, ""},
        {"First \\boxed{3}. No: \\boxed{7", "3", TARE_VERDICT_NO_ANSWER, ""},
        {"The answer is $\\boxed{12$", "12", TARE_VERDICT_NO_ANSWER, ""},
        {"\\boxed{7 . The answer is 7.", "7", TARE_VERDICT_CORRECT, "7"},
        {"7", "So we get $\\boxed{7}$.", TARE_VERDICT_CORRECT, "7"},
        {"**73**", "73", TARE_VERDICT_CORRECT, "73"},
        {"The answer is 42. This answer is correct.", "42", TARE_VERDICT_CORRECT, "42"},
        {"The answer is not 42.", "42", TARE_VERDICT_WRONG, NULL},
        {"So the correct answer is indeed 32.", "32", TARE_VERDICT_CORRECT, "32"},
        {"It is $220$.\n$$\n$$", "220", TARE_VERDICT_CORRECT, "220"},
    };
    struct harness h = opened(NULL);
    int missed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness_verdict v;
        assert_int_equal(harness_run(&h, text(cases[i].completion), text(cases[i].gold), (tare_text){0}, &v), 0);
        if (v.v.code != cases[i].code || (cases[i].extracted && strcmp(v.extracted, cases[i].extracted))) {
            printf("  \"%s\" against \"%s\": %s, \"%s\" (%s)\n", cases[i].completion, cases[i].gold, harness_code(v.v.code),
                   v.extracted, v.note);
            missed++;
        }
        assert_true(*v.note);
    }
    harness_close(&h);
    assert_int_equal(missed, 0);
}

static void test_policies(void **state)
{
    (void)state;
    static const struct pair units[] = {{"5", "5 \\text{ cm}"}, {"5 \\text{ cm}", "5"}}, letters[] = {{"T", "t"}, {"2R", "2r"}},
                             rounded[] = {{"\\frac13", "0.333"}, {"0.33", "\\frac13"}, {"(\\frac13, 2)", "(0.333, 2)"}},
                             off[] = {{"\\frac13", "0.34"}}, sets[] = {{"[1,\\infty)", "x \\ge 1"}}, names[] = {{"f(x)", "f(y)"}};
    struct harness h = opened(NULL);
    TRY_PAIRS(&h, units, true), TRY_PAIRS(&h, letters, true), TRY_PAIRS(&h, rounded, false), TRY_PAIRS(&h, sets, true),
        TRY_PAIRS(&h, names, false);
    harness_close(&h);
    h = opened(
        (const char *const[]){"unit_missing=false", "fold_letters=false", "rounding=2", "set_relation=false", "strict=true", NULL});
    TRY_PAIRS(&h, units, false), TRY_PAIRS(&h, letters, false), TRY_PAIRS(&h, rounded, true), TRY_PAIRS(&h, off, false),
        TRY_PAIRS(&h, sets, false);
    harness_close(&h);
    h = opened((const char *const[]){"strict=false", NULL});
    TRY_PAIRS(&h, names, true);
    harness_close(&h);
}

/* ---------------------------------------------------------------- properties over the gold answers
 * of the cases */

static char *replaced(const char *s, const char *from, const char *to)
{
    char *out = malloc(4 * strlen(s) + 64), *p = out;
    const size_t n = strlen(from);
    while (*s) {
        if (!strncmp(s, from, n))
            p += sprintf(p, "%s", to), s += n;
        else
            *p++ = *s++;
    }
    *p = 0;
    return out;
}

static void test_properties(void **state)
{
    (void)state;
    struct harness h = opened((const char *const[]){"gold=latex", NULL});
    struct case_file f;
    assert_int_equal(cases_read(shared_or_skip("data/verify/math/realistic.jsonl"), &f), 0);
    int missed = 0, tried = 0;
    const char *last = "", *reason;
    for (int64_t i = 0; i < f.n; i++) {
        const char *gold = f.c[i].gold.data;
        if (!strcmp(gold, last) || strlen(gold) > 1000) continue;
        char wrapped[2200], nested[2200];
        snprintf(wrapped, sizeof wrapped, "  %s ", gold);
        snprintf(nested, sizeof nested, "\\boxed{%s}", gold);
        char *variants[] = {strdup(gold),
                            replaced(gold, "\\frac", "\\dfrac"),
                            replaced(gold, "=", " = "),
                            replaced(gold, ")", "\\right)"),
                            replaced(gold, "{", "{ "),
                            strdup(wrapped),
                            strdup(nested)};
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            if (k == 3) { /* both brackets */
                char *both = replaced(variants[3], "(", "\\left(");
                char *clean = replaced(both, "\\left\\left", "\\left"), *clean2 = replaced(clean, "\\right\\right", "\\right");
                free(both), free(clean), free(variants[3]);
                variants[3] = clean2;
                if (strchr(gold, '[') || strchr(gold, ']')) goto next;
            }
            tried++;
            if (boxed_code(&h, gold, variants[k], &reason) != TARE_VERDICT_CORRECT) {
                printf("  %s | %s: %s\n", gold, variants[k], reason);
                missed++;
            }
        next:
            free(variants[k]);
        }
        /* symmetry, except for an inequality against a gold interval */
        if (*last && strlen(last) < 1000) {
            const int ab = boxed_code(&h, gold, last, &reason), ba = boxed_code(&h, last, gold, &reason);
            if ((ab == TARE_VERDICT_CORRECT) != (ba == TARE_VERDICT_CORRECT) && !strchr(gold, '[') && !strchr(last, '[') &&
                !strchr(gold, '(') && !strchr(last, '(')) {
                printf("  not symmetric: %s | %s\n", gold, last);
                missed++;
            }
        }
        last = gold;
    }
    printf("%d rewritings of gold answers tried\n", tried);
    cases_free(&f);
    harness_close(&h);
    assert_int_equal(missed, 0);
}

/* ---------------------------------------------------------------- threads */

enum { THREADS = 8 };

struct share {
    struct case_file *f;
    int first, *codes;
};

static void *judge_share(void *arg)
{
    struct share *s = arg;
    struct harness h = {0};
    if (harness_open(&h, "math", NULL)) return NULL;
    for (int64_t i = s->first; i < s->f->n; i += THREADS) {
        struct harness_verdict v;
        s->codes[i] = harness_run(&h, s->f->c[i].pred, s->f->c[i].gold, s->f->c[i].row, &v) ? -1 : v.v.code;
    }
    harness_close(&h);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct harness h = opened(NULL);
    struct case_file f;
    assert_int_equal(cases_read(shared_or_skip("data/verify/math/realistic.jsonl"), &f), 0);
    cases_judge(&h, &f);
    int *codes = calloc((size_t)f.n, sizeof *codes);
    pthread_t thread[THREADS];
    struct share share[THREADS];
    for (int t = 0; t < THREADS; t++) {
        share[t] = (struct share){&f, t, codes};
        assert_int_equal(pthread_create(&thread[t], NULL, judge_share, &share[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    for (int64_t i = 0; i < f.n; i++) assert_int_equal(codes[i], f.c[i].verdict);
    free(codes);
    cases_free(&f);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal),      cmocka_unit_test(test_different),
                                       cmocka_unit_test(test_extraction), cmocka_unit_test(test_policies),
                                       cmocka_unit_test(test_properties), cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
