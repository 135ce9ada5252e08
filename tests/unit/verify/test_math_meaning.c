/* Answers that mean the same in other words, and others that only look so: products of letters that keep their order, labels of options,
 * ordinals, names in front of values, combinations, conditions, lists in words; and where the answer is in a text. */
#include "pairs.h"

static const struct pair EQUAL[] = {
    {"(AB)^T", "B^TA^T"},
    {"(AB)^{\\top}", "B^{\\top} A^{\\top}"},
    {"(AB)^{-1}", "B^{-1}A^{-1}"},
    {"PDP^{-1}", "P D P^{-1}"},
    {"(A+B)^T", "A^T+B^T"},
    {"x^TAx", "x^T A x"},
    {"\\mathbf{A}(\\mathbf{B}+\\mathbf{C})", "\\mathbf{A}\\mathbf{B}+\\mathbf{A}\\mathbf{C}"},
    {"(\\mathbf{A}\\mathbf{B})\\mathbf{C}", "\\mathbf{A}(\\mathbf{B}\\mathbf{C})"},
    {"\\vec u\\times\\vec v", "-\\vec v\\times\\vec u"},
    {"\\vec u\\times(-\\vec v)", "\\vec v\\times\\vec u"},
    {"(\\vec a+\\vec b)\\times\\vec c", "\\vec a\\times\\vec c+\\vec b\\times\\vec c"},
    {"\\vec a\\cdot(\\vec b+\\vec c)", "\\vec a\\cdot\\vec b+\\vec c\\cdot\\vec a"},
    {"2\\vec{u}-3\\vec{v}", "-3\\vec{v}+2\\vec{u}"},
    {"\\vec{F}=m\\vec{a}", "\\vec{F}=\\vec{a}m"},
    {"q\\vec{v}\\times\\vec{B}", "q(\\vec{v}\\times\\vec{B})"},
    {"P(1+r)^T", "P(r+1)^T"},
    {"12", "\\textbf{(B)}\\ 12"},
    {"12", "\\text{(D) } 12"},
    {"\\text{(D)}", "\\text{(D) } 12"},
    {"D", "\\text{(D) } 12"},
    {"\\textbf{(B)}\\ 12", "12"},
    {"\\textbf{(B)}\\ 12", "B"},
    {"\\textbf{(B) }\\frac{1}{2}", "(B) \\frac12"},
    {"\\frac12", "B) \\frac{1}{2}"},
    {"C", "C. x = 42"},
    {"42", "C. x = 42"},
    {"\\text{blue}", "\\text{(A) blue}"},
    {"\\text{(A)}", "\\text{(A) red}"},
    {"A,C", "\\text{(A)}, \\text{(C)}"},
    {"17^{\\text{th}}", "17"},
    {"17^{\\text{th}}", "17\\text{th}"},
    {"17^{\\text{th}}", "17th"},
    {"22^{\\mathrm{nd}}", "22"},
    {"21^\\text{st}", "21"},
    {"2^{th}", "2"},
    {"m+n=25", "25"},
    {"25", "m+n=25"},
    {"x+y=5", "y=5-x"},
    {"\\sigma^2=4", "4"},
    {"120", "C_{10}^3"},
    {"120", "\\mathrm{C}_{10}^{3}"},
    {"\\binom{n}{k}", "C_n^k"},
    {"\\binom{n}{k}", "C^k_n"},
    {"C_1^2", "C_1\\cdot C_1"},
    {"C_1e^{x}+C_2e^{-x}", "C_2e^{-x}+C_1e^x"},
    {"C_1 e^x + C_2 \\text{ where } C_1, C_2 \\text{ are constants}", "C_1e^x+C_2"},
    {"f(x)=cx", "f(x)=cx \\text{ where } c \\text{ is a constant}"},
    {"2k\\pi, k\\in\\mathbb{Z}", "2n\\pi"},
    {"\\sum_{n=1}^\\infty \\frac{1}{n^2}", "\\sum_{k=1}^{\\infty}\\frac1{k^2}"},
    {"120^\\circ", "120\xC2\xBA"},
    {"30\\text{ min}", "30\\,\\mathrm{min}"},
    {"A\\cap B=\\{1,3\\}", "\\{1,3\\}"},
    {"65\\text{ tickets}", "65\\text{ children tickets}"},
    {"\\text{Bob and Alice}", "\\text{Alice, Bob}"},
};

static const struct pair DIFFERENT[] = {
    {"(AB)^T", "A^TB^T"},
    {"A^TA", "AA^T"},
    {"(AB)^{-1}", "A^{-1}B^{-1}"},
    {"PDP^{-1}", "D"},
    {"x^TAx", "x^TA^Tx"},
    {"\\mathbf{A}\\mathbf{B}", "\\mathbf{B}\\mathbf{A}"},
    {"\\mathbf{A}^{-1}\\mathbf{B}", "\\mathbf{B}\\mathbf{A}^{-1}"},
    {"\\mathbf{A}(\\mathbf{B}+\\mathbf{C})", "(\\mathbf{B}+\\mathbf{C})\\mathbf{A}"},
    {"\\vec u\\times\\vec v", "\\vec v\\times\\vec u"},
    {"(\\vec u)\\times(\\vec v)", "\\vec v\\times\\vec u"},
    {"\\vec u\\times(-\\vec v)", "\\vec u\\times\\vec v"},
    {"(\\vec a+\\vec b)\\times\\vec c", "\\vec c\\times(\\vec a+\\vec b)"},
    {"\\vec u\\cdot\\vec v", "\\vec u\\times\\vec v"},
    {"q\\vec{v}\\times\\vec{B}", "q\\vec{B}\\times\\vec{v}"},
    {"5", "x = 4 = 5"},
    {"x=5", "x = 4 = 5"},
    {"B", "\\text{(D) } 12"},
    {"13", "\\text{(D) } 12"},
    {"\\textbf{(B)}\\ 12", "\\text{(C) } 12"},
    {"\\textbf{(B)}\\ 12", "\\text{(B) } 13"},
    {"\\text{blue}", "\\text{(A) red}"},
    {"17th", "18th"},
    {"2^{t}", "2"},
    {"2x+z=1", "1"},
    {"x+y=5", "x+y=6"},
    {"x+y=5", "a+b=5"},
    {"x^2=4", "4"},
    {"\\binom{n}{k}", "C^n_k"},
    {"2k\\pi, k\\in\\mathbb{Z}", "2n\\pi, n \\in \\mathbb{N}"},
    {"2k\\pi, k\\in\\mathbb{Z}", "k\\pi"},
    {"\\sum_{n=1}^\\infty \\frac{1}{n^2}", "\\sum_{k=1}^{\\infty}\\frac1{k^3}"},
    {"\\infty-\\infty", "\\infty-\\infty"},
    {"5\\text{ men}", "5\\text{ women}"},
    {"5\\text{ red balls}", "5\\text{ blue balls}"},
    {"\\text{Bob and Alice}", "\\text{Bob}"},
};

static void test_meaning_equal(void **state)
{
    (void)state;
    struct harness h = opened(NULL);
    TRY_PAIRS(&h, EQUAL, true);
    harness_close(&h);
}

static void test_meaning_different(void **state)
{
    (void)state;
    struct harness h = opened(NULL);
    TRY_PAIRS(&h, DIFFERENT, false);
    harness_close(&h);
}

static void test_meaning_in_text(void **state)
{
    (void)state;
    static const struct {
        const char *gold, *completion;
        bool equal;
    } cases[] = {
        {"3, 4", "$x=\\boxed{3}, y=\\boxed{4}$", true},
        {"x=4, y=3", "$x=\\boxed{3}, y=\\boxed{4}$", false},
        {"x=3, y=4", "$x=\\boxed{3}$ and $y=\\boxed{4}$", true},
        {"7", "$a=\\boxed{3}$, $b=\\boxed{4}$, $a+b=\\boxed{7}$", true},
        {"204", "So the answer is: **204** minutes", true},
        {"8", "The answer is 2**3", true},
        {"(2,3)", "The point of intersection is **(2, 3)**.", true},
        {"10", "**2.** We add 5 and 5 to get 10.", true},
    };
    struct harness h = opened(NULL);
    int missed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness_verdict v;
        assert_int_equal(harness_run(&h, text(cases[i].completion), text(cases[i].gold), (tare_text){0}, &v), 0);
        if ((v.v.code == TARE_CORRECT) != cases[i].equal) {
            printf("  %s | %s: %s (%s)\n", cases[i].gold, cases[i].completion, harness_code(v.v.code), v.v.reason);
            missed++;
        }
    }
    harness_close(&h);
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meaning_equal), cmocka_unit_test(test_meaning_different),
                                       cmocka_unit_test(test_meaning_in_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
