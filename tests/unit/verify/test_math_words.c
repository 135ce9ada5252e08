/* English in and around an answer, and equivalent notations with other signs. */
#include "pairs.h"

static const struct pair EQUAL[] = {
    /* numbers in words */
    {"3", "\\text{three}"},
    {"21", "\\text{twenty-one apples}"},
    {"101", "\\text{a hundred and one}"},
    {"\\frac{2}{3}", "\\text{two-thirds}"},
    {"2.5", "\\text{two and a half}"},
    {"3.14", "\\text{three point one four}"},
    {"-5", "\\text{negative five}"},
    {"5\\text{th}", "\\text{fifth}"},
    {"5", "\\text{five (5)}"},
    /* words around a value */
    {"12", "\\text{The answer is 12.}"},
    {"12", "\\text{She has }12\\text{ apples left}"},
    {"12", "12\\text{ since }3 \\cdot 4 = 12"},
    {"12", "\\text{12, not 13}"},
    {"12", "N\\text{ is equal to }12"},
    {"(1,2)", "\\text{the point }(1,2)"},
    {"\\frac14", "1\\text{ in }4"},
    {"\\frac14", "\\text{1 out of 4}"},
    {"3:4", "\\text{three to four}"},
    {"x \\ge 3", "x\\text{ is at least }3"},
    {"4", "\\text{the square root of }16"},
    {"1011_2", "\\text{1011 in base 2}"},
    {"(-\\infty,1)\\cup(1,\\infty)", "\\text{all real numbers except }1"},
    {"\\text{Tuesday}", "\\text{on a Tuesday}"},
    {"\\text{No solution}", "\\text{There is no solution}"},
    {"A", "\\text{Answer: A}"},
    /* units */
    {"5\\text{ km}", "5000\\text{ m}"},
    {"\\$0.75", "75\\text{ cents}"},
    {"5\\text{ m/s}", "\\SI{5}{m/s}"},
    {"5\\text{ m/s}", "\\qty{5}{\\meter\\per\\second}"},
    {"5\\text{ m/s}", "5\\text{ ms}^{-1}"},
    {"25^\\circ\\text{C}", "25\\text{ degrees Celsius}"},
    /* vectors and matrices */
    {"\\langle 1,-2,3\\rangle", "\\mathbf{i}-2\\mathbf{j}+3\\mathbf{k}"},
    {"(1,-2)", "\\hat{\\imath}-2\\hat{\\jmath}"},
    {"\\begin{pmatrix}1\\\\2\\end{pmatrix}", "(1,2)"},
    {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1,2],[3,4]]"},
    {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\pmatrix{1&2\\cr 3&4}"},
    {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{psmallmatrix}1&2\\\\\\hline 3&4\\end{psmallmatrix}"},
    /* other signs */
    {"0.\\overline{12}", "0.\\dot1\\dot2"},
    {"\\frac13", "0.(3)"},
    {"2e^{i\\pi/3}", "2\\operatorname{cis} 60^\\circ"},
    {"2e^{i\\pi/3}", "2\\angle 60^\\circ"},
    {"3\\times 10^{-5}", "3\\text{E-5}"},
    {"x \\equiv 10 \\pmod 7", "3 \\pmod 7"},
    {"x \\equiv 3 \\pmod 7", "x \\equiv 3 \\bmod 7"},
    {"f(x) = x^2 - 1", "f(t) = t^2 - 1"},
    {"p \\land q", "q \\land p"},
    {"A, C", "AC"},
    {"A", "A)"},
    {"12", "\\mathtt{12}"},
    {"12", "{\\rm 12}"},
    {"12", "\\bbox[5px]{12}"},
    {"\\pm 2", "+/-2"},
    {"120", "10C3"},
    {"\\frac13", "0.333\\ldots"},
    {"\\binom{7}{3}", "C(7,3)"},
    {"\\frac{\\pi}{6}", "30^\\circ"},
    {"3", "x \\to 3"},
    {"DNE", "\\text{does not exist}"},
    {"[1,3)", "1 \\le x < 3"},
    {"\\mathbb{R}\\setminus\\{1\\}", "\\mathbb{R}-\\{1\\}"},
};

static const struct pair DIFFERENT[] = {
    {"5", "\\text{at least five}"},
    {"5", "\\text{not five}"},
    {"5", "\\text{five or six}"},
    {"5", "\\text{fifty}"},
    {"5", "\\text{twice 5}"},
    {"5", "\\text{five squared}"},
    {"5", "5\\text{ squared}"},
    {"5", "\\text{5 times 3}"},
    {"5", "\\text{5 and a half}"},
    {"12", "\\text{12 apples and 3 pears}"},
    {"12", "\\text{between 12 and 13}"},
    {"12", "\\text{3, not 12}"},
    {"12", "\\text{12 is not the answer}"},
    {"\\text{March 5}", "\\text{April 5}"},
    {"\\text{Tuesday}", "\\text{not Tuesday}"},
    {"\\frac14", "1\\text{ and }4"},
    {"\\frac23", "\\text{two and a third}"},
    {"x \\ge 3", "x\\text{ is greater than }3"},
    {"\\mathbb{R}", "\\text{all real numbers except }2"},
    {"-9-3\\mathrm{i}", "-3-9\\mathrm{i}"},
    {"1:2", "\\$0.50"},
    {"5\\text{ km}", "500\\text{ m}"},
    {"36\\text{ in}", "36\\text{ ft}"},
    {"\\langle 1,2,3\\rangle", "\\mathbf{i}+2\\mathbf{j}-3\\mathbf{k}"},
    {"\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1,3],[2,4]]"},
    {"\\begin{pmatrix}1&2\\end{pmatrix}", "(1,2)"},
    {"0.\\overline{12}", "0.1\\dot2"},
    {"x \\equiv 3 \\pmod 7", "x \\equiv 3 \\pmod 5"},
    {"f(x) = x^2 - 1", "f(t) = t^2 - x"},
    {"P(A) = \\frac12", "P(B) = \\frac12"},
    {"p \\land q", "p \\lor q"},
    {"A, C", "AD"},
    {"1", "\\operatorname{arctan}(1)"},
    {"3.5", "\\operatorname{floor}(3.5)"},
    {"3.5", "\\text{floor}(3.5)"},
    {"2", "\\text{rank}(2)"},
    {"2", "\\mathrm{erf}(2)"},
    {"\\text{April 5}", "5"},
    {"\\text{April 5}", "x = 5"},
    {"\\frac13", "0.335\\ldots"},
    {"\\frac{\\pi}{6}", "60^\\circ"},
    {"\\frac{\\pi}{6}", "30"},
    {"35", "C(7,2)"},
    {"DNE", "\\text{exists}"},
    {"[1,3)", "1 \\le x \\le 3"},
};

static void test_words_equal(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(EQUAL, true);
}

static void test_words_different(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(DIFFERENT, false);
}

static void test_number_words_off(void **state)
{
    (void)state;
    static const struct pair no_words[] = {{"42", "\\text{forty-two}"}, {"2.5", "\\text{two and a half}"}},
                             digits[] = {{"42", "\\text{The answer is 42}"}};
    struct harness h = opened((const char *const[]){"number_words=false", NULL});
    TRY_PAIRS(&h, no_words, false);
    TRY_PAIRS(&h, digits, true);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_equal),
        cmocka_unit_test(test_words_different),
        cmocka_unit_test(test_number_words_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
