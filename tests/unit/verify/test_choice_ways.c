/* Ways to name one option, in English and other languages, and texts that name none or several: each
 * rule of the verifier choice has cases on both sides. The options are w, x, y and z. */
#include "check.h"
#include "harness.h"

/* B */
static const char *const ONE[] = {
    "B\n\nBecause it is.",
    "**B**\n\nBecause it is.",
    "I would pick B, as it fits best.",
    "Therefore, B.",
    "I'd go with (B).",
    "Ans: B",
    "Answer = B",
    "I'd pick B",
    "I would choose B, since it is best.",
    "Let's go with B.",
    "It must be B.",
    "So it's B.",
    "So B.",
    "Hence (B).",
    "\xE2\x86\x92 B",
    "So, option B.",
    "B seems best.",
    "The answer has to be B.",
    "Letter: B",
    "Option B",
    "Selected: B",
    "Prediction: B",
    "Ans. B",
    "A: B",
    "Answer \xE2\x80\x93 B",
    "Answer \xE2\x86\x92 B",
    "'B'",
    "It is B",
    "x is the answer",
    "Option B.",
    "B.\nBecause it is.",
    "The answer is B because a train moves.",
    "I choose B.",
    "My choice is B.",
    "B is correct.",
    "The answer must be B.",
    "The correct option is x.",
    "\xE2\x9C\x85 Answer: B",
    "[[B]]",
    "Die Antwort ist B.",
    "Jawaban: B",
    "R\xC3\xA9ponse : B",
    "La respuesta correcta es B",
    "\xE7\xAD\x94\xE3\x81\x88\xE3\x81\xAF"
    "B\xE3\x81\xA7\xE3\x81\x99\xE3\x80\x82",
    "\xEC\xA0\x95\xEB\x8B\xB5: B",
    "Resposta: B",
    "Risposta: B",
    "Odpowied\xC5\xBA: B",
    "\xE0\xB8\x84\xE0\xB8\xB3\xE0\xB8\x95\xE0\xB8\xAD\xE0\xB8\x9A: B",
    "\xE5\x9B\x9E\xE7\xAD\x94\xEF\xBC\x9A"
    "B",
    "\xE9\x80\x89"
    "B\xE3\x80\x82",
    "\xE9\x80\x89\xE6\x8B\xA9"
    "B",
    "\xE6\x95\x85\xE9\x80\x89\xEF\xBC\x9A"
    "B",
    "\xE6\x95\x85\xE9\x80\x89"
    "B\xE3\x80\x82",
    "\xE5\x9B\xA0\xE6\xAD\xA4\xE9\x80\x89\xE9\xA1\xB9"
    "B\xE6\xAD\xA3\xE7\xA1\xAE",
    "\xE7\xAD\x94\xE6\xA1\x88\xEF\xBC\x9A"
    "B",
    "\xE7\xAD\x94\xE6\xA1\x88\xE6\x98\xAF"
    "B\xE3\x80\x82",
    "\xE6\xAD\xA3\xE7\xA1\xAE\xE7\xAD\x94\xE6\xA1\x88\xE6\x98\xAF B",
    "Antwort: B",
    "Respuesta: B",
    "La r\xC3\xA9ponse est B.",
    "\xD0\x9E\xD1\x82\xD0\xB2\xD0\xB5\xD1\x82: B",
    "\xE7\xAD\x94\xE3\x81\x88\xEF\xBC\x9A"
    "B",
    "Die richtige Antwort ist B.",
    "La bonne r\xC3\xA9ponse est B.",
    "La respuesta correcta es la B.",
    "\xD0\x9F\xD1\x80\xD0\xB0\xD0\xB2\xD0\xB8\xD0\xBB\xD1\x8C\xD0\xBD\xD1\x8B\xD0\xB9 \xD0\xBE\xD1\x82\xD0\xB2\xD0\xB5\xD1\x82: B",
    "I would go with B.",
    "Hence B.",
    "So, B.",
    "{\"answer\": \"B\"}",
    "The most appropriate answer among these is B: Venus",
    "\\boxed{B}",
    "<answer>B</answer>",
    "#### B",
    "One might think the answer is A, but it is B.",
    "The answer is A. Actually, no: it should be B.",
    "The answer is A. No wait, B.",
    "The answer is A. Hmm, that is wrong. So B is right.",
    "The answer is A, I thought at first, but in fact it is B.",
    "So \\boxed{A}. Actually, the correct answer is B.",
    "The answer is B, not C.",
    "The answer is B rather than A.",
    "The answer is B. A and C are wrong.",
    "It is not A but B.",
    "Final Answer: **B**",
    "**Final Answer**\n\nB",
    "## Answer\nB",
    "The answer is:\n\n(B)",
    "$\\boxed{\\text{B}}$",
    "The answer isn't A; it's B.",
    "B it is.",
    "I'm going with B.",
    "My answer: B",
    "\xE7\xAD\x94\xE6\xA1\x88\xE9\x80\x89"
    "B",
    "\xE5\xBA\x94\xE9\x80\x89"
    "B",
    "\xC4\x90\xC3\xA1p \xC3\xA1n: B",
    "Cevap: B",
    "Svar: B",
    "Antwoord: B",
    "V\xC3\xA1lasz: B",
    "Vastaus: B",
    "R\xC4\x83spuns: B",
    "\xE0\xA4\x89\xE0\xA4\xA4\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA4\xB0: B",
    "\xD8\xA7\xD9\x84\xD8\xA5\xD8\xAC\xD8\xA7\xD8\xA8\xD8\xA9: B",
    "\xD7\xAA\xD7\xA9\xD7\x95\xD7\x91\xD7\x94: B",
    "\xCE\x91\xCF\x80\xCE\xAC\xCE\xBD\xCF\x84\xCE\xB7\xCF\x83\xCE\xB7: B",
    "\xD0\x92\xD1\x96\xD0\xB4\xD0\xBF\xD0\xBE\xD0\xB2\xD1\x96\xD0\xB4\xD1\x8C: B",
    "La risposta corretta \xC3\xA8 B.",
    "A resposta correta \xC3\xA9 B.",
    "A alternativa correta \xC3\xA9 a letra B.",
    "\xEC\xA0\x95\xEB\x8B\xB5\xEC\x9D\x80 B\xEC\x9E\x85\xEB\x8B\x88\xEB\x8B\xA4.",
    "\xE3\x82\x88\xE3\x81\xA3\xE3\x81\xA6\xE3\x80\x81\xE7\xAD\x94\xE3\x81\x88\xE3\x81\xAF"
    "B\xE3\x81\xA7\xE3\x81\x82\xE3\x82\x8B\xE3\x80\x82",
    "\xE6\xAD\xA3\xE8\xA7\xA3\xE3\x81\xAF"
    "B\xE3\x81\xA7\xE3\x81\x99",
    "La opci\xC3\xB3n correcta es B.",
    "Poprawna odpowied\xC5\xBA to B.",
    "Option (B) is the best fit.",
    "Among the choices, B best describes the process.",
    "(B)",
    "B)",
    "**Answer:** (B) x",
    "The correct answer is **B) x**.",
    "The correct answer is option B: x.",
    "Thus, the best answer is B.",
    "Correct answer: B",
    "Based on the passage, B.",
    "After elimination, the answer is B.",
    "I believe the answer is B.",
    "I think it's B.",
    "The answer should be (b).",
    "Answer:B",
    "answer is b)",
    "Since A and C are false, the answer is B.",
    "We can rule out A, C and D, so the answer is B.",
    "B, because A and C are wrong.",
    "The right choice here would be B.",
    NULL,
};

/* not A: several options, denials, reports, questions, withdrawals */
static const char *const NOT_A[] = {
    "The answer is A, B and C",
    "Answer: A C",
    "(A) and (C)",
    "Final answer: A B C D",
    "Answer: A) w and C) y",
    "The answer is A, or maybe C.",
    "The answer is A; C",
    "The answer is A as well as C.",
    "(A), (C)",
    "The answer is A. The answer is also C.",
    "The answer is A (w), B (x) and C (y)",
    "<answer>A B C D</answer>",
    "The answer is A, B, and C.",
    "The answer is A and C.",
    "Answer: A, B, C",
    "\\boxed{A, C}",
    "\\boxed{A,B,C}",
    "A and B",
    "The answer is (A) and (B).",
    "The answer could be A, B, or C.",
    "<answer>A, C</answer>",
    "Answer: A. w and C. y",
    "Both A and C are correct.",
    "Many people say the answer is A. That is wrong.",
    "The answer isn't \\boxed{A}.",
    "\\boxed{A} is wrong.",
    "The wrong answer is A.",
    "It is not true that the answer is A.",
    "The answer is A?",
    "A student claims the answer is A.",
    "The answer is not A.",
    "Is it A?",
    "If the answer is A, we get a contradiction.",
    "Suppose the answer is A.",
    "The answer is A. Wait, that's wrong.",
    "A common mistake is to answer \\boxed{A}.",
    "~~The answer is A~~",
    "The answer is A/C",
    "A or C",
    "Plan A failed",
    "Option A is wrong.",
    "A is incorrect.",
    "The answer might be A.",
    "\xE7\xAD\x94\xE6\xA1\x88\xE4\xB8\x8D\xE6\x98\xAF"
    "A\xE3\x80\x82",
    "La r\xC3\xA9ponse n'est pas A.",
    "Die Antwort ist nicht A.",
    "A cat sat.",
    "I do not know.",
    "A\nB\nC\nD",
    "Neither A nor B.",
    "The answer is either A or B",
    "\xE7\xAD\x94\xE6\xA1\x88\xE6\x98\xAF"
    "A\xE5\x92\x8C"
    "C",
    "\xE7\xAD\x94\xE6\xA1\x88\xEF\xBC\x9A"
    "A\xE3\x80\x81"
    "C",
    "Answer: A|B|C|D",
    NULL,
};

/* Options by their texts, which match before words of denial and without LaTeX. */
static const struct {
    const char *completion, *row, *answer;
    bool right;
} TEXTS[] = {
    {"The answer is: none of the above.", "{\"choices\": [\"x1\", \"y1\", \"z1\", \"None of the above\"]}", "D", true},
    {"None of the above", "{\"choices\": [\"x1\", \"y1\", \"z1\", \"None of the above\"]}", "D", true},
    {"The answer is none of the above.", "{\"choices\": [\"x1\", \"y1\", \"z1\", \"None of the above\"]}", "D", true},
    {"The correct choice is **None of the above**.", "{\"choices\": [\"x1\", \"y1\", \"z1\", \"None of the above\"]}", "D", true},
    {"The answer is 12 apples.", "{\"choices\": [\"11\", \"12\", \"13\"]}", "B", true},
    {"\\boxed{12\\text{ cm}}", "{\"choices\": [\"11 cm\", \"12 cm\"]}", "B", true},
    {"The answer is both A and B.", "{\"choices\": [\"2\", \"3\", \"Both A and B\", \"Neither A nor B\"]}", "C", true},
    {"Answer: Both A and B", "{\"choices\": [\"2\", \"3\", \"Both A and B\", \"Neither A nor B\"]}", "C", true},
    {"The answer is neither A nor B.", "{\"choices\": [\"2\", \"3\", \"Both A and B\", \"Neither A nor B\"]}", "D", true},
    {"The answer is A and B.", "{\"choices\": [\"2\", \"3\", \"4\", \"5\"]}", "A", false},
    {"The answer is not Paris.", "{\"choices\": [\"Paris\", \"Rome\"]}", "A", false},
    {"The capital is Paris, so the answer is Paris.", "{\"choices\": [\"Paris\", \"Rome\"]}", "A", true},
    {"The answer is red and blue.", "{\"choices\": [\"red\", \"blue\"]}", "A", false},
    {"The answer is 12 or 13.", "{\"choices\": [\"11\", \"12\"]}", "B", false},
    {"Paris is the correct answer.", "{\"choices\": [\"Paris\", \"Rome\"]}", "A", true},
    {"Rome is not the answer.", "{\"choices\": [\"Paris\", \"Rome\"]}", "B", false},
    {"La respuesta es Paris.", "{\"choices\": [\"Paris\", \"Rome\"]}", "A", true},
    {"The answer is B.", "{\"choices\": [\"B\", \"A\"]}", "B", true},
    {"Answer: 12%", "{\"choices\": [\"12%\", \"13%\"]}", "A", true},
    {"\\boxed{\\text{None of the above}}", "{\"choices\": [\"a1\", \"None of the above\"]}", "B", true},
    {"I choose Paris.", "{\"choices\": [\"Paris\", \"Rome\"]}", "A", true},
};

static bool is_right(struct harness *h, const char *completion, const char *answer, const char *row, struct harness_verdict *v)
{
    const tare_text t = {completion, (int64_t)strlen(completion)}, a = {answer, (int64_t)strlen(answer)},
                    r = {row, (int64_t)strlen(row)};
    assert_int_equal(harness_run(h, t, a, r, v), 0);
    return v->v.code == TARE_VERDICT_CORRECT;
}

static void try_list(const char *const *list, const char *answer, bool right)
{
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "choice", NULL), 0);
    for (; *list; list++)
        if (is_right(&h, *list, answer, "{\"choices\":[\"w\",\"x\",\"y\",\"z\"]}", &v) != right)
            fail_msg("\"%s\" against %s: \"%s\" (%s)", *list, answer, v.extracted, v.note);
    harness_close(&h);
}

static void names_one(void **state)
{
    (void)state;
    try_list(ONE, "B", true);
}

static void names_none_or_several(void **state)
{
    (void)state;
    try_list(NOT_A, "A", false);
}

static void names_by_text(void **state)
{
    (void)state;
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "choice", NULL), 0);
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (is_right(&h, TEXTS[i].completion, TEXTS[i].answer, TEXTS[i].row, &v) != TEXTS[i].right)
            fail_msg("\"%s\" of %s: \"%s\" (%s)", TEXTS[i].completion, TEXTS[i].row, v.extracted, v.note);
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_one), cmocka_unit_test(names_none_or_several),
                                       cmocka_unit_test(names_by_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
