/* Near misses by meaning: a value in a text that denies it or operates on it, times of the other
 * half of the day, opposite directions, jumps, functions in the other order, negated relations,
 * different operators. Each kind has texts that do mean the value. */
#include "pairs.h"

enum { TEXT = 400 };

static int missed;

/* compares completion and gold */
static void judge(struct harness *h, const char *gold, const char *completion, bool equal)
{
    struct harness_verdict v;
    assert_int_equal(harness_run(h, text(completion), text(gold), (tare_text){0}, &v), 0);
    if ((v.v.code == TARE_VERDICT_CORRECT) == equal) return;
    printf("  %s | %s: %s (%s), should be %s\n", gold, completion, harness_code(v.v.code), v.note, equal ? "equal" : "different");
    missed++;
}

static void boxed(struct harness *h, const char *gold, const char *answer, bool equal)
{
    char s[TEXT + 64];
    snprintf(s, sizeof s, "So we get $\\boxed{%s}$.", answer);
    judge(h, gold, s, equal);
}

/* text before and after a value */
struct frame {
    const char *front, *back;
};

static void framed(struct harness *h, const struct frame *frames, size_t n, bool equal)
{
    static const char *const values[] = {"5", "12", "-3", "0.25", "\\frac{1}{2}"};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            char s[TEXT];
            const char *back = frames[i].back;
            snprintf(s, sizeof s, "\\text{%s}%s\\text{%s}", frames[i].front, values[k], back);
            boxed(h, values[k], s, equal);
            snprintf(s, sizeof s, "We are done. %s%s$%s$%s.", *frames[i].front ? "It " : "", frames[i].front, values[k], back);
            judge(h, values[k], s, equal);
        }
}

static struct harness start(void)
{
    missed = 0;
    return opened(NULL);
}

static void end(struct harness *h)
{
    harness_close(h);
    assert_int_equal(missed, 0);
}

static void test_denials(void **state)
{
    (void)state;
    static const struct frame denied[] = {{"cannot be ", ""},      {"isn't ", ""},           {"won't be ", ""},
                                          {"is not ", ""},         {"is anything but ", ""}, {"is never ", ""},
                                          {"is hardly ", ""},      {"is nowhere near ", ""}, {"can't be equal to ", ""},
                                          {"doesn't equal ", ""},  {"", " is impossible"},   {"", " is wrong"},
                                          {"", " would be wrong"}, {"", " is not it"},       {"", " is incorrect"}},
                              affirmed[] = {{"is ", ""},
                                            {"is exactly ", ""},
                                            {"is equal to ", ""},
                                            {"is about ", ""},
                                            {"", " is the answer"}};
    struct harness h = start();
    framed(&h, denied, sizeof denied / sizeof *denied, false);
    framed(&h, affirmed, sizeof affirmed / sizeof *affirmed, true);
    judge(&h, "5", "The answer isn't 5.", false);
    judge(&h, "5", "The answer is 5, which is wrong.", false);
    judge(&h, "5", "The answer is 5 if x > 0, otherwise 7.", false);
    judge(&h, "5", "The answer is 5 or maybe 7.", false);
    judge(&h, "12", "The answer is 12, not 13.", true);
    judge(&h, "4", "The number of primes that are not above 10 is 4.", true);
    end(&h);
}

/* In plain sentences the unit after the number, or the sign before it, is part of the answer. */
static void test_units_in_sentences(void **state)
{
    (void)state;
    static const struct pair units[] = {
        {"\\text{ hours}", "minutes"},
        {"\\text{ km/h}", "m/s"},
        {"\\text{ weeks}", "months"},
        {"\\text{ mg}", "g"},
        {"\\text{ square feet}", "cubic feet"},
        {"\\text{ dollars per kilogram}", "kilograms per dollar"},
        {"\\text{ pages per day}", "pages per week"},
        {"^\\circ", "radians"},
        {"\\text{ units to the left}", "units to the right"},
        {"\\text{ m}", "m^2"},
        {"\\%", "per mille"},
    };
    struct harness h = start();
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char gold[TEXT], s[TEXT + 64];
        snprintf(gold, sizeof gold, "%d%s", (int)(20 + 7 * i), units[i].gold);
        snprintf(s, sizeof s, "It comes to %d %s.", (int)(20 + 7 * i), units[i].pred);
        judge(&h, gold, s, false);
        snprintf(s, sizeof s, "It comes to $%s$.", gold);
        judge(&h, gold, s, true);
        snprintf(s, sizeof s, "It comes to %d.", (int)(20 + 7 * i));
        judge(&h, gold, s, true);
    }
    judge(&h, "\\$20",
          "It costs \xE2\x82\xAC"
          "20.",
          false);
    judge(&h, "90\\text{ minutes}", "The film lasts 1 hour and 30 minutes.", true);
    judge(&h, "\\text{March 14}", "The event is on March 14th.", true);
    judge(&h, "\\text{March 14}", "The event is on March 15th.", false);
    judge(&h, "5", "at least 5", false);
    judge(&h, "9", "I doubt that the answer is 9.", false);
    judge(&h, "7", "The answer is not 8 but 7.", true);
    judge(&h, "x>1\\text{ and }x<5", "$x>1$ or $x<5$", false);
    judge(&h, "x<-2\\text{ or }x>2", "$x<-2$ or $x>2$", true);
    judge(&h, "|z|^2", "$z^2$", false);
    end(&h);
}

/* Words before a value that change it */
static void test_governed(void **state)
{
    (void)state;
    static const char *const others[] = {"the square of ",
                                         "the reciprocal of ",
                                         "the sine of ",
                                         "multiples of ",
                                         "the opposite of ",
                                         "beyond ",
                                         "before ",
                                         "after ",
                                         "past ",
                                         "quarter past ",
                                         "instead of ",
                                         "unequal to ",
                                         "false: ",
                                         "twice ",
                                         "all but "},
                             *const same[] = {"the area of the square is ",
                                              "a total of ",
                                              "the answer is ",
                                              "the point ",
                                              "the sum is ",
                                              "it costs ",
                                              "an area of ",
                                              "she has "};
    struct harness h = start();
    for (int value = 2; value < 40; value += 9) {
        char gold[16], s[TEXT];
        snprintf(gold, sizeof gold, "%d", value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            snprintf(s, sizeof s, "\\text{%s}%d", others[i], value);
            boxed(&h, gold, s, false);
        }
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            snprintf(s, sizeof s, "\\text{%s}%d", same[i], value);
            boxed(&h, gold, s, true);
        }
    }
    boxed(&h, "2", "\\text{ten to }5", false);
    end(&h);
}

/* Words after a number that compute with it, compare it or correct it: it is not the answer
 * alone. */
static void test_operated(void **state)
{
    (void)state;
    static const char *const others[] = {"minus 5",      "plus 5",         "times 3",       "multiplied by 3", "divided by 5",
                                         "over 5",       "squared",        "cubed",         "factorial",       "modulo 5",
                                         "choose 2",     "raised to 3",    "dozen",         "gross",           "halves",
                                         "tenths",       "hundredths",     "percent of 50", "more than 5",     "fewer than 90",
                                         "less than 90", "greater than 1", "at least",      "or more",         "or fewer",
                                         "in base 60",   "out of 90",      "by 5"},
                             *const same[] = {"apples", "in total",        "more apples", "days",
                                              "km",     "of the students", "left",        "dollars"},
                             *const corrections[] = {"? No, %d.", ". Actually, %d.", ". Correction: %d.", ", no, %d.",
                                                     ". Wait, it is %d."};
    static const struct pair values[] = {
        {"7", "12 minus 5"}, {"17", "12 plus 5"}, {"4", "12 divided by 3"}, {"144", "12 squared"}, {"144", "12 dozen"}};
    struct harness h = start();
    for (int value = 12; value < 40; value += 9) {
        char gold[16], s[TEXT];
        snprintf(gold, sizeof gold, "%d", value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            snprintf(s, sizeof s, "The answer is %d %s.", value, others[i]);
            judge(&h, gold, s, false);
        }
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            snprintf(s, sizeof s, "The answer is %d %s.", value, same[i]);
            judge(&h, gold, s, true);
        }
        for (size_t i = 0; i < sizeof corrections / sizeof *corrections; i++) {
            const int n = snprintf(s, sizeof s, "The answer is %d", value);
            snprintf(s + n, sizeof s - (size_t)n, corrections[i], value + 1);
            judge(&h, gold, s, false);
        }
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char s[TEXT];
        snprintf(s, sizeof s, "The answer is %s.", values[i].pred);
        judge(&h, values[i].gold, s, true);
    }
    judge(&h, "12", "The answer is the 12th prime.", false);
    judge(&h, "7", "The answer is divisible by 7.", false);
    judge(&h, "7\\text{th}", "The answer is 7th.", true);
    judge(&h, "12", "The answer is 12. Actually, we can check it.", true);
    end(&h);
}

static void test_half_days(void **state)
{
    (void)state;
    static const char *const written[] = {"%d:%02d %s", "%d{:}%02d\\text{ %s}", "\\text{%d:%02d %s}"}, *const halves[2][3] = {
                                                                                                           {"AM", "am", "a.m."},
                                                                                                           {"PM", "pm", "p.m."}};
    struct harness h = start();
    for (int hour = 1; hour <= 12; hour++)
        for (int k = 0; k < 54; k++) {
            const int minute = (hour * 25 + 5 * k) % 4 * 15, half = k % 2, other = k / 2 % 2;
            char gold[64], s[128], sentence[TEXT];
            snprintf(gold, sizeof gold, written[k % 3], hour, minute, halves[half][k / 4 % 3]);
            snprintf(s, sizeof s, written[k / 3 % 3], hour, minute, halves[other][k / 9 % 3]);
            boxed(&h, gold, s, half == other);
            snprintf(sentence, sizeof sentence, "The answer is %d:%02d %s.", hour, minute, halves[other][k / 9 % 3]);
            judge(&h, gold, sentence, half == other);
        }
    boxed(&h, "5\\text{ pm}", "5\\text{ Pm}", false);
    end(&h);
}

static void test_opposites(void **state)
{
    (void)state;
    static const char *const units[] = {"\\text{ km %s}", "\\text{ m/s %s}", "\\text{ units %s}", "^\\circ\\text{ %s}",
                                        "\\%%\\text{ %s}"};
    static const char *const ways[][2] = {{"north", "south"},
                                          {"east", "west"},
                                          {"up", "down"},
                                          {"left", "right"},
                                          {"to the left", "to the right"},
                                          {"upward", "downward"},
                                          {"clockwise", "counterclockwise"},
                                          {"inward", "outward"},
                                          {"profit", "loss"},
                                          {"increase", "decrease"},
                                          {"north of east", "east of north"}};
    struct harness h = start();
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
            for (int same = 0; same < 2; same++) {
                char gold[TEXT], s[TEXT], number[8];
                const int n = snprintf(number, sizeof number, "%d", (int)(3 + 7 * u + w));
                memcpy(gold, number, (size_t)n), memcpy(s, number, (size_t)n);
                snprintf(gold + n, sizeof gold - (size_t)n, units[u], ways[w][0]);
                snprintf(s + n, sizeof s - (size_t)n, units[u], ways[w][!same]);
                boxed(&h, gold, s, same);
            }
    boxed(&h, "20\\%", "20\\%\\text{ increase}", true);
    boxed(&h, "5\\text{ km}", "5\\text{ km north}", true);
    boxed(&h, "1990", "1990\\text{ BC}", false);
    end(&h);
}

static void test_jumps(void **state)
{
    (void)state;
    static const char *const inside[] = {"x", "3x", "x^2", "\\frac{x}{2}", "-x", "\\sqrt{x}", "xy", "n", "\\frac{n}{2}"};
    struct harness h = start();
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        char down[64], up[64], s[128];
        snprintf(down, sizeof down, "\\lfloor %s\\rfloor", inside[i]);
        snprintf(up, sizeof up, "\\left\\lceil %s\\right\\rceil", inside[i]);
        boxed(&h, inside[i], down, false);
        boxed(&h, inside[i], up, false);
        boxed(&h, up, down, false);
        boxed(&h, down, down, true);
        snprintf(s, sizeof s, "%s+1", down);
        boxed(&h, up, s, false);
        snprintf(s, sizeof s, "-\\lfloor -(%s)\\rfloor", inside[i]);
        boxed(&h, up, s, true);
    }
    boxed(&h, "0", "x \\bmod 1", false);
    boxed(&h, "1", "\\lim_{x\\to 1}\\lfloor x\\rfloor", false);
    boxed(&h, "x", "\\{x\\}", false);
    boxed(&h, "\\lfloor \\frac{n}{2} \\rfloor", "\\frac{2n-1+(-1)^n}{4}", true);
    end(&h);
}

static void test_functions_and_signs(void **state)
{
    (void)state;
    static const struct pair different[] = {
        {"g(f(x))", "f(g(x))"},
        {"\\frac{1}{f(x)}", "f^{-1}(x)"},
        {"1/f(2)", "f^{-1}(2)"},
        {"f(f(x))", "f^2(x)"},
        {"1/g", "g^{-1}"},
        {"F(b)-F(a)", "f(b)-f(a)"},
        {"(g\\circ f)(x)", "(f\\circ g)(x)"},
        {"a\\star b", "b\\star a"},
        {"\\nabla\\times F", "\\nabla\\cdot F"},
        {"\\nabla\\times\\vec F", "\\nabla\\cdot\\vec F"},
        {"(n!)!", "n!!"},
        {"720!", "6!!"},
        {"p\\to q", "p\\iff q"},
        {"q", "p\\implies q"},
        {"0", "0^+"},
        {"\\binom{7}{3}", "(7,3)"},
        {"(7,3)", "\\binom{7}{3}"},
        {"1:20", "2:40"},
        {"\\text{red and blue}", "\\text{red or blue}"},
        {"\\text{A and B}", "\\text{A or B}"},
        {"x=1\\text{ and }y=2", "x=1\\text{ or }y=2"},
        {"75", ",75"},
        {"750", "0,750"},
    };
    static const struct pair equal[] = {
        {"f(x)+g(x)", "g(x)+f(x)"},
        {"2f(x)", "f(x)\\cdot 2"},
        {"f(x+1)", "f(1+x)"},
        {"\\frac{h(a+b)}{2}", "\\frac{a+b}{2}h"},
        {"15", "5!!"},
        {"(n!)!!", "(n!)!!"},
        {"x!!!", "((x!)!)!"},
        {"x=5", "2x=10 \\iff x=5"},
        {"3", "x\\to 3"},
        {"x=1,2", "x=1\\text{ or }2"},
        {"0.75", ",75"},
        {"8:2", "8/2"},
    };
    static const char *const relations[] = {"a\\%s b\\pmod 5", "a\\%s b", "x\\%s A"}, *const signs[] = {"equiv", "sim", "subset"};
    struct harness h = start();
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        char plain[64], negated[64], sign[16];
        snprintf(plain, sizeof plain, relations[i], signs[i]);
        snprintf(sign, sizeof sign, "not\\%s", signs[i]);
        snprintf(negated, sizeof negated, relations[i], sign);
        boxed(&h, plain, negated, false);
        boxed(&h, negated, plain, false);
        boxed(&h, negated, negated, true);
    }
    TRY_PAIRS(&h, different, false);
    TRY_PAIRS(&h, equal, true);
    judge(&h, "red and blue", "The answer is red or blue.", false);
    end(&h);
}

/* Sentences that mention the answer are read as a whole; numbers that name something, and foreign
 * denials, do not count. */
static void test_no_claims(void **state)
{
    (void)state;
    static const char *const other[] = {"The wrong answer is 40.",
                                        "A common guess is that the answer is 40.",
                                        "The answer exceeds 40.",
                                        "The answer ends in 40.",
                                        "The answer has 40 digits.",
                                        "Had the answer been 40, we would be done.",
                                        "Assume the answer is 40. This contradicts the premise.",
                                        "I wish the answer were $40$.",
                                        "My friend says the answer is 40.",
                                        "It is a mistake to say the answer is 40.",
                                        "Is the answer 40?",
                                        "40 is too small to be the answer.",
                                        "Do not put 40 as the answer.",
                                        "The given answer 40 breaks the rule.",
                                        "I have 40 ideas but no answer.",
                                        "The answer is the square root of $40$.",
                                        "The answer is a multiple of $40$.",
                                        "The answer is $40$ or perhaps $50$.",
                                        "The answer is $40$ if $n$ is odd.",
                                        "The answer is 40 only when k is prime.",
                                        "The answer is 40 for each 7.",
                                        "The answer is 40% of y.",
                                        "The answer is $40$. Wait, I forgot a case.",
                                        "The answer is $40$. No, that is wrong.",
                                        "\\boxed{40} That is incorrect.",
                                        "The answer is 40. On reflection this is incorrect, and it should be 41.",
                                        "\"The answer is 40,\" said Tom. Ann showed that it is 41.",
                                        "Nobody should believe that the total is 40.",
                                        "The angle is slightly less than 40.",
                                        "The number is next after 40.",
                                        "It is ten to 40.",
                                        "The meeting is on April 40.",
                                        "$x \\neq \\boxed{40}$",
                                        "$x \\ne\\boxed{40}$",
                                        "x \xE2\x89\xA0 \\boxed{40}",
                                        "<!-- \\boxed{40} -->\nThe answer is 41.",
                                        "La risposta \xC3\xA8 la met\xC3\xA0 di 40.",
                                        "This uses Lemma 40.",
                                        "It comes from AMC 40.",
                                        "El resultado no es 40.",
                                        "Das Ergebnis ist nicht 40.",
                                        "Le r\xC3\xA9sultat n'est pas 40.",
                                        ("\xE7\xBB\x93\xE6\x9E\x9C\xE4\xB8\x8D\xE6\x98\xAF"
                                         "40\xE3\x80\x82")};
    struct harness h = start();
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) judge(&h, "40", other[i], false);
    end(&h);
}

static void test_claims(void **state)
{
    (void)state;
    static const char *const same[] = {"After adding both, we find that the answer is 40 apples.",
                                       "Therefore Tom has 40 apples, which is the answer.",
                                       "So the answer to the question is 40.",
                                       "The correct answer is therefore 40 because 8*5=40.",
                                       "The answer would be 40.",
                                       "40 is the correct answer.",
                                       "This gives an answer of 40.",
                                       "Our answer comes out to 40.",
                                       "The answer, then, is 40.",
                                       "Since both are even the answer is 40.",
                                       "To answer the question, there are 40.",
                                       "<think>Is it 3? No.</think> The answer is $40$.",
                                       "Final Answer: The largest number that could be there is 40.",
                                       "She pays **$40** for 16 glasses.",
                                       "The answer is 40 (from step 3).",
                                       "$a = 4$. <answer>40</answer>",
                                       "El resultado es 40.",
                                       "<!-- \\boxed{41} -->\nThe answer is 40.",
                                       "<!-- not closed, \\boxed{40}",
                                       "The answer is \"40\" apples.",
                                       "\"The answer is 40.\"",
                                       "The answer is 40. If this is wrong, tell me.",
                                       "The answer is 40. Note that 41 is false.",
                                       "41 is the number after 40.",
                                       "La risposta \xC3\xA8 40.",
                                       "Thus $x = 40$ is our answer."};
    struct harness h = start();
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) judge(&h, "40", same[i], true);
    judge(&h, "40\\pi", "<answer>40\\pi</answer>", true);
    judge(&h, "\\text{Friday}", "It is the day before Friday.", false);
    judge(&h, "\\text{Friday}", "It is anything except Friday.", false);
    judge(&h, "\\text{Friday}", "The party is on Friday.", true);
    judge(&h, "\\text{Tuesday}", "100 = 14*7 + 2, so it will be a Tuesday.", true);
    judge(&h, "\\text{Monday}", "100 = 14*7 + 2, so it will be a Tuesday.", false);
    judge(&h, "\\text{April 5}", "The meeting is on April 5.", true);
    judge(&h, "\\text{parabola}", "The curve is a parabola.", true);
    judge(&h, "\\text{parabola}", "The curve is not a parabola.", false);
    judge(&h, "\\text{D}", "D", true);
    judge(&h, "7", "The answer is seven score.", false);
    judge(&h, "2000", "The answer is two thousand.", true);
    judge(&h, "1000", "The answer is a thousand.", true);
    end(&h);
}

/* Values of several letters are not a set, those of one letter not a pair; a value that depends on
 * a case does not count. */
static void test_roles(void **state)
{
    (void)state;
    static const struct pair different[] = {
        {"\\{3,4\\}", "a=3\\text{ or }b=4"},
        {"\\{3,4\\}", "a=3, b=4"},
        {"(3,4)", "t=3\\text{ or }t=4"},
        {"t=3\\text{ or }t=4", "t\\in(3,4)"},
        {"\\text{no}", "\\text{no, unless }k=2"},
        {"9", "9\\text{ only when }k\\text{ is odd}"},
        {"\\text{(B)}", "\\text{(B) or (D)}"},
        {"\\text{(B)}", "\\text{(B) and (D)}"},
        {"2,000", "2,00"},
        {"2,000", "2,0"},
    };
    static const struct pair equal[] = {
        {"(3,4)", "a=3\\text{ and }b=4"},
        {"\\{3,4\\}", "t=3\\text{ or }t=4"},
        {"a=3\\text{ or }b=4", "\\{a=3,b=4\\}"},
        {"\\text{no}", "\\text{no, because }k=2"},
        {"\\frac{3}{8}", "0{,}375"},
        {"2{,}5", "2{.}5"},
        {"1250", "1{,}250"},
        {"3,5", "3{,}5"},
        {"2,000", "2, 000"},
        {"\\text{(B) orange}", "\\text{B}"},
    };
    struct harness h = start();
    TRY_PAIRS(&h, different, false);
    TRY_PAIRS(&h, equal, true);
    end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_denials),
        cmocka_unit_test(test_units_in_sentences),
        cmocka_unit_test(test_governed),
        cmocka_unit_test(test_operated),
        cmocka_unit_test(test_half_days),
        cmocka_unit_test(test_opposites),
        cmocka_unit_test(test_no_claims),
        cmocka_unit_test(test_claims),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_functions_and_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
