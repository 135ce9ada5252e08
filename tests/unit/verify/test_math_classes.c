/* Classes of notation that the grammar must cover completely: numerals by locale, composite
 * measures, progressions, bounds in words, values of integrals, limits and derivatives, dates. Each
 * with similar notations of different meaning. */
#include "pairs.h"

static const struct pair EQUAL[] = {
    /* numerals by locale */
    {"1250.5", "1250,5"},
    {"3420.75", "3.420,75"},
    {"3420.75", "3'420.75"},
    {"0.75", ",75"},
    {"1500000", "1_500_000"},
    {"1500000", "15\\text{ lakh}"},
    {"\\frac{3}{8}", "^3/_8"},
    {"\\frac{3}{8}", "\\text{three over eight}"},
    {"0.1\\overline{6}", "0.1\\bar6"},
    {"1A3_{16}", "419"},
    {"1A3_{16}", "(1A3)_{\\text{hex}}"},
    {"10110_2", "10110\\text{ in binary}"},
    {"\\frac{22}{7}", "3\\text{ and }\\frac17"},
    /* units: prefixes, derived units, composite measures */
    {"45\\text{ kJ}", "45000\\text{ J}"},
    {"1.2\\ \\mu\\text{F}", "1200\\text{ nF}"},
    {"12\\ \\Omega", "0.012\\ \\mathrm{k\\Omega}"},
    {"90\\text{ km/h}", "25\\text{ m/s}"},
    {"0.25\\text{ mol/L}", "0.25\\text{ M}"},
    {"98.6^\\circ\\text{F}", "37^\\circ\\text{C}"},
    {"2\\text{ hours }15\\text{ minutes}", "135\\text{ minutes}"},
    {"85\\text{ minutes}", "1\\text{ hour and }25\\text{ minutes}"},
    {"5\\text{ ft }8\\text{ in}", "5'8''"},
    {"20\\text{ m}^2", "20\\ m^2"},
    {"37^\\circ 15'", "37.25^\\circ"},
    {"12^\\circ 20' 36''", "12^{\\circ} 20^{\\prime} 36^{\\prime\\prime}"},
    {"7:30\\text{ PM}", "19:30"},
    {"7:30\\text{ PM}", "7:30"},
    {"\\text{March }14", "\\text{the 14th of March}"},
    {"\\text{Wednesday}", "\\text{It falls on Wed.}"},
    /* progressions */
    {"x=\\frac{\\pi}{3}+k\\pi,k\\in\\mathbb{Z}", "x=60^\\circ+180^\\circ n, n \\in \\mathbb{Z}"},
    {"x=\\frac{\\pi}{3}+k\\pi,k\\in\\mathbb{Z}", "\\frac{4\\pi}{3}-m\\pi, m\\in\\mathbb{Z}"},
    {"x=\\frac{\\pi}{4}+\\frac{k\\pi}{2},k\\in\\mathbb{Z}",
     "x=\\frac{\\pi}{4}+k\\pi\\text{ or }x=\\frac{3\\pi}{4}+k\\pi, k\\in\\mathbb{Z}"},
    {"x\\equiv 3\\pmod 5", "x=5k+3"},
    {"x\\equiv 3\\pmod 5", "x=5k-2,k\\in\\mathbb{Z}"},
    {"\\{3k+1: k\\in\\mathbb{Z}\\}", "\\{3n+1 \\mid n \\in \\mathbb{Z}\\}"},
    /* bounds and sets */
    {"x\\ge5", "5\\text{ or more}"},
    {"x\\ge5", "\\text{greater than or equal to }5"},
    {"x\\ge5", "x\\not<5"},
    {"1<x<2", "\\text{x is between 1 and 2}"},
    {"(-\\infty,-4)\\cup(4,\\infty)", "k^2>16"},
    {"\\{x\\in\\mathbb{Z}:-2\\le x<2\\}", "-2,-1,0,1"},
    {"(1,2),(2,1)", "x=1,y=2\\text{ or }x=2,y=1"},
    {"(2,5)", "P(2,5)"},
    {"(2,5)", "(2|5)"},
    {"a_n=2n+1", "a_k=2k+1\\ (k\\ge1)"},
    {"\\frac{x^2}{9}+\\frac{y^2}{4}=1", "E:\\frac{x^2}{9}+\\frac{y^2}{4}=1"},
    /* calculus */
    {"e-1", "\\int_{0}^{1} e^{x} dx"},
    {"\\frac{\\pi}{4}", "\\int_0^1\\frac{dx}{1+x^2}"},
    {"\\frac{\\pi}{4}", "\\int_0^1\\frac{1}{1+x^2}\\,dx"},
    {"4", "\\lim_{x\\to2}\\frac{x^2-4}{x-2}"},
    {"1", "\\lim_{x\\to 0}\\frac{\\sin x}{x}"},
    {"\\frac{2}{3}", "\\lim_{x\\to\\infty}\\frac{2x^2+1}{3x^2-x}"},
    {"4", "x^2\\Big|_0^2"},
    {"2x\\cos(x^2)", "\\frac{d}{dx}\\sin(x^2)"},
    {"\\frac{x^2}{2}+C", "\\frac{x^2}{2}+\\text{constant}"},
    {"\\sin^2 x+C", "-\\cos^2 x+K"},
    /* words */
    {"\\text{Yes}", "\\text{Yes, it is possible}"},
    {"\\text{isosceles}", "\\text{an isosceles triangle}"},
    {"\\text{Alice}", "\\text{The winner is Alice.}"},
    {"\\mathrm{C_6H_{12}O_6}", "\\ce{C6H12O6}"},
};

static const struct pair DIFFERENT[] = {
    {"-3", "-3,0"}, /* may be two numbers */
    {"1.234", "1,234"},
    {"15", "1,5"},
    {"3.5", "(3,5)"},
    {"3.5", "\\{3,5\\}"},
    {"10", "a_{11}"}, /* not a numeral */
    {"45\\text{ kJ}", "45\\text{ J}"},
    {"5\\text{ h}", "2\\text{ h and }3\\text{ h}"},
    {"2\\text{ hours }15\\text{ minutes}", "2.15\\text{ hours}"},
    {"37^\\circ 15'", "37.15^\\circ"},
    {"7:30\\text{ PM}", "7:30\\text{ AM}"},
    {"7:30\\text{ PM}", "15:1"},
    {"\\text{March }14", "\\text{May }14"},
    {"\\text{March }14", "\\text{March}"},
    {"x=\\frac{\\pi}{3}+k\\pi,k\\in\\mathbb{Z}", "x=\\frac{\\pi}{3}+2k\\pi,k\\in\\mathbb{Z}"},
    {"x\\equiv 3\\pmod 5", "x=5k+2"},
    {"y=3k+1", "y=3k-2"}, /* k may be given */
    {"x\\ge5", "\\text{more than }5"},
    {"5", "5\\text{ or more}"},
    {"e-1", "\\int_{0}^{1} e^{2x} dx"},
    {"0", "\\int_{-1}^{1} \\frac{1}{x} dx"},    /* diverges */
    {"-2", "\\int_{-1}^{1} \\frac{1}{x^2} dx"}, /* diverges */
    {"\\lim_{x\\to0}f(x)", "\\lim_{x\\to0}g(x)"},
    {"0", "\\lim_{x\\to0}f(x)"},
    {"\\frac{x^2}{2}+C", "\\frac{x^2}{2}"},
    {"2x+c", "2x+1+c"}, /* c may be given */
    {"\\text{Yes}", "\\text{Yes and no}"},
    {"\\text{linearly independent}", "\\text{not linearly independent}"},
    {"\\mathrm{H_2O}", "\\mathrm{H_2O_2}"},
    {"D", "\\text{(A) }D"},
};

static void test_equal(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(EQUAL, true);
}

static void test_different(void **state)
{
    (void)state;
    TRY_BY_DEFAULT(DIFFERENT, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
