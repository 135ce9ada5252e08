/* Notations of LaTeX with more meaning than their letters: combinations, transposes, derivatives,
 * limits, conditions, temperatures, names. */
#include "pairs.h"

static const struct pair EQUAL[] = {
    /* combinations and permutations */
    {"10", "{}_5C_2"},
    {"15", "{}_{6}\\mathrm{C}_{2}"},
    {"35", "^{7}C_{3}"},
    {"20", "{}_{5}P_{2}"},
    {"2\\cdot 10", "2\\,{}_5C_2"},
    {"15", "\\binom 62"},
    {"C_5^2", "C_5^2"},
    /* vectors */
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "(1, 2)^T"},
    {"[1,0,-2]^{\\top}", "\\begin{bmatrix}1\\\\0\\\\-2\\end{bmatrix}"},
    {"11", "\\begin{pmatrix}1&2\\end{pmatrix}\\begin{pmatrix}3\\\\4\\end{pmatrix}"},
    {"3", "\\lVert -3 \\rVert"},
    /* derivatives, limits */
    {"y' = 2x", "\\frac{dy}{dx} = 2x"},
    {"y'' + y = 0", "\\frac{d^2y}{dx^{2}} + y = 0"},
    {"\\lim_{x \\to 0} \\frac{\\sin x}{x}", "\\lim_{t\\to 0}\\frac{\\sin t}{t}"},
    /* conditions */
    {"2k\\pi, k \\in \\mathbb{Z}", "2k\\pi \\ (k\\in\\mathbb{Z})"},
    {"2k\\pi", "2k\\pi \\text{ where } k\\in\\mathbb{Z}"},
    {"2k\\pi, k \\in \\mathbb{Z}", "2k\\pi \\text{ for any integer } k"},
    {"k\\pi \\text{, where } k \\text{ is an integer}", "k\\pi"},
    {"x^2 \\ (x \\ge 0)", "x^2 \\text{ for } 0 \\le x"},
    {"x \\in \\mathbb{R}, x \\ne 3", "(-\\infty, 3) \\cup (3, \\infty)"},
    {"P(X > 2) = 0.3", "0.3"},
    {"x(x + 1)", "x^2 + x"},
    /* measures in words */
    {"3", "\\text{3 hours}"},
    {"6, 8", "\\text{6 and 8}"},
    {"72^{\\circ}F", "72^\\circ \\text{F}"},
    {"20", "20\\text{ degrees Celsius}"},
    /* names */
    {"\\overline{AB} = 7", "BA = 7"},
    {"\\Pr(X \\ge 2) = \\frac14", "0.25"},
    {"P = \\frac12", "\\Pr(A) = \\frac12"},
    {"\\mathbb{E}[X] = 3", "3"},
    {"2 - 3i", "\\overline{2+3i}"},
    {"|A \\cup B| = 9", "9"},
    {"\\gcd(a, b) = 4", "4"},
    {"\\deg P = 3", "3"},
    {"12", "\\text{Area: } 12"},
    {"2", "\\log_10 100"},
    {"\\log_2 3", "\\log_23"},
    {"[0, \\infty)", "\\{x \\mid x \\ge 0\\}"},
    {"(-3, 3)", "\\{x : -3 < x < 3\\}"},
    {"25\\pi", "= \\pi r^2 = 25\\pi"},
    /* residues, intervals with reversed brackets, fractions of TeX */
    {"x \\equiv 3 \\pmod 7", "x \\equiv 3 \\ (\\text{mod } 7)"},
    {"(2, 3]", "\\left]2, 3\\right]"},
    {"[2, 3) \\cup (4, 5)", "[2; 3[ \\cup ]4; 5["},
    {"\\frac{x+1}{8}", "{x + 1 \\over 8}"},
    {"5", "\\begin{pmatrix} 5 \\end{pmatrix}"},
    {"5 \\text{ hours } 30 \\text{ minutes}", "5\\text{ h }30\\text{ min}"},
    {"x \\ne 1, -1", "x \\neq \\pm 1"},
    {"\\text{all real numbers}", "\\mathbb{R}"},
    {"3:45", "3{:}45"},
    {"8", "8\\ \\Omega"},
    {"7", "\\color{red}{7}"},
    {"\\vec u\\cdot\\vec v", "\\vec v\\cdot \\vec{u}"},
    {"2\\vec u\\times\\vec v + \\vec w", "\\vec w + 2(\\vec{u}\\times\\vec{v})"},
    {"2\\mathbf{A}\\mathbf{B}", "\\mathbf{A} 2\\mathbf{B} + 0"},
    {"\\vec{AB}", "\\overrightarrow{AB}"},
    {"\\mathbf{v} = (1, 2)", "\\vec v = (1, 2)"},
    {"\\mathbf{F} = m\\mathbf{a}", "\\vec F = \\vec a m"},
    {"\\mathbf{12}", "12"},
    {"x = 3 \\tag{1}", "3"},
};

static const struct pair DIFFERENT[] = {
    {"12", "{}_6C_2"},
    {"10", "{}_5P_2"},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "(2, 1)^T"},
    {"\\begin{pmatrix}1&2\\end{pmatrix}", "(1, 2)^T"},
    {"12", "\\begin{pmatrix}1&2\\end{pmatrix}\\begin{pmatrix}3\\\\4\\end{pmatrix}"},
    {"\\frac{y}{x}", "\\frac{dy}{dx}"},
    {"x^2", "\\frac{d}{dx} x^3"},
    {"y'", "\\frac{dy}{dt}"},
    {"y'", "\\frac{d^2y}{dx^2}"},
    {"\\lim_{x \\to 0} f(x)", "\\lim_{t \\to 1} f(t)"},
    {"\\lim_{x \\to 0} \\lim_{y \\to 0} (x - 2y)", "\\lim_{x \\to 0} \\lim_{y \\to 0} (y - 2x)"},
    {"2k\\pi \\ (k\\in\\mathbb{Z})", "k\\pi \\ (k\\in\\mathbb{Z})"},
    {"2k\\pi, k\\in\\mathbb{Z}", "2k\\pi, k\\in\\mathbb{N}"},
    {"x^2 \\ (x > 0)", "x^2 \\ (x < 0)"},
    {"x^2 \\ (x > 0)", "x^2"},
    {"x^2 \\text{ where } x > 0", "x x"}, /* the tokens of the other answer follow its end */
    {"x^2", "x^2 \\text{ for } x > 5"},
    {"3", "\\text{3 out of 4}"},
    {"\\text{3 hours}", "\\text{3 days}"},
    {"\\text{6 and 8}", "6"},
    {"72^\\circ F", "72^\\circ C"},
    {"\\overline{AB} = 7", "AC = 7"},
    {"\\overline{AB} = 7", "\\overline{AB} = 8"},
    {"P(A) = \\frac12", "P(B) = \\frac12"},
    {"\\overline{2+3i}", "2+3i"},
    {"\\overline{x+y}", "x+y"},
    {"(-3, 3)", "\\{x : -3 \\le x \\le 3\\}"},
    {"\\pi r^2", "= \\pi r^2 = 25\\pi"},
    {"7", "\\color{red}{8}"},
    {"\\frac{\\pi}{3}", "30^\\circ"},
    {"60^\\circ", "60\\pi"},
    {"x \\equiv 3 \\pmod 7", "x \\equiv 3 \\pmod 5"},
    {"x \\equiv 3 \\pmod 7", "x \\equiv 4 \\pmod 7"},
    {"x^2 \\pmod 7", "x^2"},
    {"[2, 3]", "]2, 3["},
    {"5\\text{ h }30\\text{ min}", "5\\text{ h }20\\text{ min}"},
    {"5\\text{ h }30\\text{ min}", "5"},
    {"x \\ne 1, -1", "x \\ne 1"},
    {"\\text{all real numbers}", "\\text{all integers}"},
    {"|A \\cup B| = 9", "8"},
    {"\\vec u\\times\\vec v", "\\vec v\\times\\vec u"},
    {"\\vec{u}\\cdot\\vec{v}", "\\vec{u}\\times\\vec{v}"},
    {"\\vec{AB}", "\\vec{BA}"},
    {"a_10 = 14", "a_10 = 15"},
    {"\\mathbf{A}\\mathbf{B}", "\\mathbf{B}\\mathbf{A}"},
    {"\\mathbf{A}\\mathbf{B}\\mathbf{C}", "\\mathbf{A}\\mathbf{C}\\mathbf{B}"},
};

static void test_notation_equal(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(EQUAL, true);
}

static void test_notation_different(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(DIFFERENT, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_notation_equal), cmocka_unit_test(test_notation_different)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
