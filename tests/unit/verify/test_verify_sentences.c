/* Sentences around a number, which math and number read in the same way. Each rule has its other direction in
 * the same list: texts that it must not break. */
#include "check.h"
#include "harness.h"

#include <unistd.h>

struct sentence_case {
    const char *completion, *gold;
    bool right;
};

static int try_with(const char *plugin, const struct sentence_case *c, size_t n)
{
    struct harness h = {0};
    int missed = 0;
    assert_int_equal(harness_open(&h, plugin, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        struct harness_verdict v;
        const tare_text said = {c[i].completion, (int64_t)strlen(c[i].completion)}, gold = {c[i].gold, (int64_t)strlen(c[i].gold)};
        assert_int_equal(harness_run(&h, said, gold, (tare_text){0}, &v), 0);
        if ((v.v.code == TARE_VERDICT_CORRECT) == c[i].right) continue;
        printf("  %s: \"%s\" against \"%s\": %s, \"%s\" (%s)\n", plugin, c[i].completion, c[i].gold, harness_code(v.v.code),
               v.extracted, v.note);
        missed++;
    }
    harness_close(&h);
    return missed;
}

/* math is left out where it is not built (FLINT is missing). */
static void try_sentences(const struct sentence_case *c, size_t n)
{
    char path[4096];
    const char *root = getenv("TARE_PLUGIN_PATH");
    snprintf(path, sizeof path, "%s/verifiers/math.so", root ? root : "plugins");
    const int missed = try_with("number", c, n) + (access(path, R_OK) ? 0 : try_with("math", c, n));
    assert_int_equal(missed, 0);
}
#define TRY_SENTENCES(CASES) try_sentences(CASES, sizeof(CASES) / sizeof *(CASES))

/* taken back by the next sentence */
static const struct sentence_case TAKEN_BACK[] = {
    {"The answer is 17. Actually no. Counting again, 19.", "17", false},
    {"The answer is 17. Hmm, no. It is 19.", "17", false},
    {"The answer is 17. Oh wait, I forgot one.", "17", false},
    {"The answer is 17. On second thought, it is 19.", "17", false},
    {"The answer is 17. I made a mistake in the last step.", "17", false},
    {"The answer is 21... no, sorry, 23.", "21", false},
    {"The answer is 17. No further steps are needed.", "17", true},
    {"The answer is 17. Actually, this can be checked by adding.", "17", true},
    {"The answer is 17. Well, that was easy!", "17", true},
    {"The answer is 17. I was right to use the formula.", "17", true},
    {"The answer is 42. No doubt about it.", "42", true},
};

static void test_taken_back(void **state)
{
    (void)state;
    TRY_SENTENCES(TAKEN_BACK);
}

/* announced in a report */
static const struct sentence_case REPORTED[] = {
    {"At first I thought the answer is 12. But since she gave away 3 more, it has to be 9.", "12", false},
    {"At first I thought the answer is 12. But since she gave away 3 more, it has to be 9.", "9", true},
    {"Initially I guessed that the answer is 12. It is 9.", "12", false},
    {"A student says the answer is 12. In fact it is 9.", "12", false},
    {"A common mistake is to say that the answer is 12.", "12", false},
    {"As I thought, the answer is 12.", "12", true},
    {"I think the answer is 12.", "12", true},
    {"Answer: 9. EDIT: I misread the question, the answer is 18.", "18", true},
    {"I first added the numbers. The answer is 12.", "12", true},
};

static void test_reported(void **state)
{
    (void)state;
    TRY_SENTENCES(REPORTED);
}

/* doubted, bounded or one of several, in other languages */
static const struct sentence_case ABROAD[] = {
    {"答案可能是 6,也可能是 8。", "6", false},
    {"Die Antwort könnte 6 sein.", "6", false},
    {"La réponse est peut-être 6.", "6", false},
    {"La respuesta podría ser 6 u 8.", "6", false},
    {"Die Antwort ist 6 oder 8.", "6", false},
    {"La respuesta es 6 o 8.", "6", false},
    {"Ответ, возможно, 6.", "6", false},
    {"答案是 6 或 8。", "6", false},
    {"Hay más de 50.", "50", false},
    {"Es sind mindestens 50.", "50", false},
    {"Il y en a plus de 50.", "50", false},
    {"一共超过50个。", "50", false},
    {"我不确定,大概是24。", "24", false},
    {"答案是 6。可能还有别的方法。", "6", true},
    {"Die Antwort ist 6. Vielleicht geht es auch einfacher.", "6", true},
    {"La réponse est 6 et non 8.", "6", true},
    {"La respuesta es 6 y se obtiene sumando.", "6", true},
    {"Die Antwort ist 6 und damit sind wir fertig.", "6", true},
    {"Ответ: 6.", "6", true},
    {"Hay 50 más.", "50", true},
    {"确定是24。", "24", true},
    {"Solution: There are 3 boxes with 4 each, so 12 in all.", "12", true},
    {"## Solution\n\n1. We add 5 and 7.\n2. That is 12.", "12", true},
    {"La solution est 12, car 3 fois 4 font 12.", "12", true},
    {"一共有12个苹果。", "12", true},
    {"共12个苹果,每个3元。", "3", true},
};

static void test_abroad(void **state)
{
    (void)state;
    TRY_SENTENCES(ABROAD);
}

/* numbers that are known already */
static const struct sentence_case KNOWN[] = {
    {"He is 45 miles from home at the end of those 4 hours.", "45", true},
    {"The train covers 150 km in the first 2 hours.", "150", true},
    {"She ate 3 of those 8 slices.", "3", true},
    {"20 of these 25 cards are red.", "20", true},
    {"There are 4 suits in a deck of 52 cards.", "4", true},
    {"The wall fell in 1989, 28 years after it was built.", "1989", true},
    {"The result is 12, 3 more than the last one.", "12", true},
    {"So his sister is 14 years old, while he is 9.", "14", true},
    {"The minimum is -2, which is reached at x = 3.", "-2", true},
    {"February has 28 days (29 in a leap year).", "28", true},
    {"It boils at -196 °C (77 K).", "-196", true},
    {"The result is 14. (Check: 14 / 2 = 7, and 7 - 3 = 4, as given.)", "14", true},
    {"So we get 12 + 5 = 17.\n\nTo verify, 17 - 5 = 12.", "17", true},
    {"Result: 40%\n\nExplanation: 20 of 50 is 2/5.", "40", true},
    {"She sold 5 of the 8 and kept 3.", "3", true},
    {"Adding 3 to those 5 gives 8.", "8", true},
    {"In those 3 days, he read 9 books.", "9", true},
    {"The sum of the 3 numbers is 12.", "12", true},
    {"He gave half of the 24 to Tom, leaving 12.", "12", true},
    {"There are 12 rows on 5 floors, which gives 60.", "60", true},
    {"After 3 hours, 8 are left.", "8", true},
    {"In 2020, 5 people came.", "5", true},
    {"While he is 9, she is 14.", "14", true},
    {"6 boxes of 20 pens, which makes 120.", "120", true},
    {"The 5 (3 cm long) sticks total 15.", "15", true},
    {"Check: 7 + 5 = 12.", "12", true},
    {"First find what is left. To check how many, subtract: 12 - 3 = 9.", "9", true},
};

static void test_known(void **state)
{
    (void)state;
    TRY_SENTENCES(KNOWN);
}

/* the end of a sentence that computes */
static const struct sentence_case CONCLUDED[] = {
    {"The answer is 30% of the total, and the total is 80, so 24.", "30", false},
    {"The answer is 30% of the total, and the total is 80, so 24.", "24", true},
    {"The answer is half of 48, so 24.", "24", true},
    {"The answer is 12, so each child gets 3 apples.", "12", true},
};

static void test_concluded(void **state)
{
    (void)state;
    TRY_SENTENCES(CONCLUDED);
}

/* all of a number */
static const struct sentence_case WHOLE[] = {
    {"It is 299 792 458 m/s.", "299792458", true},
    {"It is 299 792 458 m/s.", "458", false},
    {"The area is 40 cm^2.", "40", true},
    {"The area is 40 cm^2.", "2", false},
    {"g = 9.81 m s^{-2}.", "9.81", true},
    {"g = 9.81 m s^{-2}.", "2", false},
    {"There are 6.02 × 10^23 of them.", "6.02e23", true},
    {"That makes 1.2 × 10^3 grams.", "1200", true},
    {"In 2019 120 people came.", "120", true},
};

static void test_whole(void **state)
{
    (void)state;
    TRY_SENTENCES(WHOLE);
}

/* labels, requests, questions, bounds and ranges */
static const struct sentence_case NOT_CLAIMED[] = {
    {"See section 7.", "7", false},
    {"Step 3: Write down the result.", "3", false},
    {"Is the answer 11?", "11", false},
    {"On a scale from 1 to 10, how sure are you?", "10", false},
    {"There are more than 10 of them.", "10", false},
    {"The answer is less than 1000.", "1000", false},
    {"It costs between 2,000 and 3,000 dollars.", "3000", false},
    {"Find the value of 1 + 2 = 3.", "3", false},
    {"Give your answer as a number from 1 to 5.", "5", false},
    {"The answer is not 14.", "14", false},
    {"The answer is either 30 or 40.", "40", false},
    {"My guess would be 15 or 16.", "16", false},
    {"Please show your work and write the final number, e.g. 22, on the last line.", "22", false},
    {"¿La respuesta es 9?", "9", false},
    {"I would say it takes around 25 to 30 days.", "30", false},
    {"It rose from 25 to 30.", "30", true},
    {"This is 29.6, which is rounded from 29.6 to 30.", "30", true},
    {"二月没有31天。", "31", false},
    {"Water does not boil at 100 degrees on Mount Everest.", "100", false},
    {"He does not need 5 buses.", "5", false},
    {"12 more than twice 5", "12", false},
    {"Those who did not come are 12.", "12", true},
    {"He does not eat any, so 5 remain.", "5", true},
    {"The number of primes that are not above 10 is 4.", "4", true},
    {"He drove 65 miles more than his brother.", "65", true},
    {"We add them up, i.e. the answer is 5.", "5", true},
    {"He takes 1 or 2 each day, in total 16.", "16", true},
    {"Section 2 has 7 pages.", "7", true},
    {"It takes 3 steps.", "3", true},
    {"How many are left? 12 - 5 = 7", "7", true},
    {"The difference between 36 and 12 is 24.", "24", true},
    {"Between 36 and 48 lie 12 numbers.", "12", true},
    {"You need 5 buses, not 4.", "5", true},
};

static void test_not_claimed(void **state)
{
    (void)state;
    TRY_SENTENCES(NOT_CLAIMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_back),  cmocka_unit_test(test_reported),  cmocka_unit_test(test_abroad),
        cmocka_unit_test(test_known),       cmocka_unit_test(test_concluded), cmocka_unit_test(test_whole),
        cmocka_unit_test(test_not_claimed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
