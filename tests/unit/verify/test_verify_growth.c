/* The time of a verdict is at most linear in the completion: 68 shapes of text from 1 KB to 512 KB,
 * the slope of log time over log size. */
#include "check.h"
#include "harness.h"

#include <math.h>
#include <stdbool.h>
#include <time.h>

/* The thread sanitizer tracks every byte that a search inside PCRE2 might read, to the end of the
 * text: times are meaningless there. */
#ifdef __SANITIZE_THREAD__
enum { TIMES_OF_PCRE2 = 0 };
#else
enum { TIMES_OF_PCRE2 = 1 };
#endif

enum { SIZES = 4, LARGEST = 512 << 10, QUICK = 256 << 10 };

/* head, then repetitions of unit, then tail, up to the size */
static const struct shape {
    const char *head, *unit, *tail;
} SHAPES[] = {
    {"", "x", ""},
    {"", " ", ""},
    {"", "\n", ""},
    {"", "1", ""},
    {"", "1 ", ""},
    {"", "1,", ""},
    {"", "1.", ""},
    {"", "1/", ""},
    {"", "1,234,", ""},
    {"", "-", ""},
    {"", "- 1", ""},
    {"", "(", ""},
    {"", ")", ""},
    {"", "((B) ", ""},
    {"", "(*", ""},
    {"", "( B ", ""},
    {"", "()", ""},
    {"", "[", ""},
    {"", "{", ""},
    {"", "}", ""},
    {"", "{}", ""},
    {"", "{{}", ""},
    {"", "\\", ""},
    {"", "\\\\", ""},
    {"", "\\frac", ""},
    {"", "\\frac{", ""},
    {"", "\\frac{1}{", ""},
    {"", "\\boxed", ""},
    {"", "\\boxed{", ""},
    {"", "\\boxed{B} ", ""},
    {"", "\\boxed{1}, ", ""},
    {"", "\\boxed{\\fbox{", "B}"},
    {"\\boxed{", "B", "}"},
    {"\\boxed{", "{", "}"},
    {"\\boxed{", "_{", "}"},
    {"\\boxed{", "x^{", "}"},
    {"\\boxed{", "{}_1{", "}"},
    {"\\boxed{", "\\overline{", "}"},
    {"\\boxed{", "\\lim_{x\\to 0}", "x}"},
    {"\\boxed{", "x (", "}"},
    {"", "\\text{", ""},
    {"", "$", ""},
    {"", "$1$ ", ""},
    {"", "$$", ""},
    {"", "$ $1", ""},
    {"", "$1$, and ", ""},
    {"", "\\(", ""},
    {"", "\\(1\\)", ""},
    {"", "\\[1", ""},
    {"", "the answer is ", ""},
    {"", "the answer is (", ""},
    {"", "The final answer is ", "42"},
    {"", "final answer is 1. ", ""},
    {"", "answer:", ""},
    {"answer:", " ", "B"},
    {"answer: ", "42 is ", ""},
    {"", "option B ", "is correct"},
    {"", "answer (**** ", ""},
    {"", "I choose ", ""},
    {"", "#### ", ""},
    {"", "####1\n", ""},
    {"", "<answer>", ""},
    {"", "<answer>1</answer>", ""},
    {"", "</think>", ""},
    {"", "<|im_end|>", ""},
    {"", "\xE7\xAD\x94\xE6\xA1\x88", ""},
    {"", "\xFF", ""},
    {"", "A or ", "B"},
};

/* Uses whole units only, so that every size ends in the same way; *size becomes the actual size. */
static char *fill(const struct shape *s, int64_t *size)
{
    const int64_t head = (int64_t)strlen(s->head), unit = (int64_t)strlen(s->unit), tail = (int64_t)strlen(s->tail),
                  units = (*size - head - tail) / unit * unit;
    char *text = malloc((size_t)*size);
    *size = head + units + tail;
    memcpy(text, s->head, (size_t)head);
    memcpy(text + head, s->unit, (size_t)unit);
    for (int64_t done = unit; done < units; done *= 2)
        memcpy(text + head + done, text + head, (size_t)(done < units - done ? done : units - done));
    memcpy(text + head + units, s->tail, (size_t)tail);
    return text;
}

static double seconds_of(struct harness *h, tare_text completion, const char *answer, const char *row, int times)
{
    struct harness_verdict v;
    struct timespec a, b;
    double best = INFINITY;
    for (int k = 0; k < times; k++) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        assert_int_equal(
            harness_run(h, completion, (tare_text){answer, (int64_t)strlen(answer)}, (tare_text){row, (int64_t)strlen(row)}, &v),
            0);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        best = fmin(best, (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec));
    }
    return best;
}

static double slope_of(const double t[SIZES])
{
    return log(fmax(t[SIZES - 1], 1e-3) / fmax(t[SIZES - 2], 1e-3)) / log(16);
}

/* Estimates the slope from a text of 64 times the size: t = c n^s. Times below a millisecond are
 * noise, and 20 ms is the limit for work on an answer of at most 16 KB once it is found. */
static int grow(const char *name, const char *answer, const char *row)
{
    struct harness h = {0};
    const int64_t largest = getenv("TARE_TEST_QUICK") ? QUICK : LARGEST;
    double worst_slope = 0, worst = 0;
    const char *slowest = "";
    int bad = 0;
    if (harness_open(&h, name, NULL)) return printf("%s is not built\n", name), 0;
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++) {
        double t[SIZES];
        for (int i = 0; i < SIZES; i++) {
            int64_t size = largest >> 4 * (SIZES - 1 - i);
            char *text = fill(&SHAPES[k], &size);
            t[i] = seconds_of(&h, (tare_text){text, size}, answer, row, size > QUICK / 16 ? 1 : 3);
            free(text);
        }
        /* measure again if it is steep: another process may have slowed the measurement */
        double slope = slope_of(t);
        for (int again = 0; again < 5 && slope > 1.3 && t[SIZES - 1] > 0.02; again++) {
            int64_t size = largest;
            char *text = fill(&SHAPES[k], &size);
            t[SIZES - 1] = fmin(t[SIZES - 1], seconds_of(&h, (tare_text){text, size}, answer, row, 1));
            free(text);
            slope = slope_of(t);
        }
        if (t[SIZES - 1] > worst) worst = t[SIZES - 1], slowest = SHAPES[k].unit;
        worst_slope = fmax(worst_slope, slope);
        if (slope > 1.3 && t[SIZES - 1] > 0.02) {
            printf("  %s: '%s%s%s': %.2g, %.2g, %.2g, %.2g s: slope %.2f\n", name, SHAPES[k].head, SHAPES[k].unit, SHAPES[k].tail,
                   t[0], t[1], t[2], t[3], slope);
            bad++;
        }
    }
    printf("%-8s %zu shapes to %lld KB: largest slope %.2f, slowest %.1f ms ('%s')\n", name, sizeof SHAPES / sizeof *SHAPES,
           (long long)(largest >> 10), worst_slope, 1e3 * worst, slowest);
    harness_close(&h);
    return bad;
}

/* A row with every kind of instruction of the verifier ifeval. */
static const char INSTRUCTIONS[] =
    "{\"instruction_id_list\":[\"keywords:existence\",\"keywords:frequency\",\"keywords:forbidden_words\",\"keywords:letter_"
    "frequency\","
    "\"language:response_language\",\"length_constraints:number_sentences\",\"length_constraints:number_paragraphs\","
    "\"length_constraints:number_words\",\"length_constraints:nth_paragraph_first_word\",\"detectable_content:number_"
    "placeholders\","
    "\"detectable_content:postscript\",\"detectable_format:number_bullet_lists\",\"detectable_format:constrained_response\","
    "\"detectable_format:number_highlighted_sections\",\"detectable_format:multiple_sections\",\"detectable_format:json_format\","
    "\"detectable_format:title\",\"combination:two_responses\",\"combination:repeat_prompt\",\"startend:end_checker\","
    "\"startend:quotation\",\"change_case:capital_word_frequency\",\"change_case:english_capital\",\"change_case:english_"
    "lowercase\","
    "\"punctuation:no_comma\"],\"kwargs\":[{\"keywords\":[\"zebra\"]},{\"keyword\":\"a\",\"frequency\":9,\"relation\":\"at "
    "least\"},"
    "{\"forbidden_words\":[\"zebra\"]},{\"letter\":\"a\",\"let_frequency\":9,\"let_relation\":\"at least\"},{\"language\":\"ko\"},"
    "{\"num_sentences\":9,\"relation\":\"at least\"},{\"num_paragraphs\":3},{\"num_words\":9,\"relation\":\"at least\"},"
    "{\"num_paragraphs\":3,\"nth_paragraph\":2,\"first_word\":\"a\"},{\"num_placeholders\":99999999},{\"postscript_marker\":\"P.S."
    "\"},"
    "{\"num_bullets\":3},{},{\"num_highlights\":3},{\"section_spliter\":\"Section\",\"num_sections\":99999999},{},{},{},"
    "{\"prompt_to_repeat\":\"a\"},{\"end_phrase\":\"a\"},{},{\"capital_frequency\":9,\"capital_relation\":\"at least\"},{},{},{}]}";

static void test_growth(void **state)
{
    (void)state;
    int bad = grow("choice", "B", "{\"choices\":[\"the first one\",\"the answer is\",\"third\"]}");
    bad += grow("number", "42", "{}");
    bad += grow("exact", "42", "{}");
    bad += grow("math", "42", "{}");
    if (TIMES_OF_PCRE2) bad += grow("ifeval", "", INSTRUCTIONS);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_growth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
