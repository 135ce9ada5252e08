/* Where the answer of a text is: what is found must be complete, stated, and the last word on it. Each
 * rule has its other direction in the same list: texts that it must not break. */
#include "pairs.h"

struct found_case {
    const char *completion, *gold;
    bool right;
};

static void try_cases(const struct found_case *c, size_t n, const char *const *settings)
{
    struct harness h = opened(settings);
    int missed = 0;
    for (size_t i = 0; i < n; i++) {
        struct harness_verdict v;
        assert_int_equal(harness_run(&h, text(c[i].completion), text(c[i].gold), (tare_text){0}, &v), 0);
        if ((v.v.code == TARE_VERDICT_CORRECT) == c[i].right) continue;
        printf("  \"%s\" against \"%s\": %s, \"%s\" (%s)\n", c[i].completion, c[i].gold, harness_code(v.v.code), v.extracted,
               v.note);
        missed++;
    }
    harness_close(&h);
    assert_int_equal(missed, 0);
}
#define TRY_CASES(CASES, SETTINGS) try_cases(CASES, sizeof(CASES) / sizeof *(CASES), SETTINGS)

static const struct found_case TEXTS_CUT_OFF[] = {
    {"So there are 40 +", "40", false},
    {"So there are 40 people and we", "40", false},
    {"So $x = 40 + ", "40", false},
    {"Each of the 8", "8", false},
    {"First, consider the 3 boxes with", "3", false},
    {"The answer is 12 -", "12", false},
    {"#### 12 *", "12", false},
    {"Therefore $x = 12 +", "12", false},
    {"So we have $x = 12$ and $y =", "12", false},
    {"So we get \\(x = 12", "12", false},
    {"The total is 12 and", "12", false},
    {"Thus the result is $12$, so", "12", false},
    {"We get 12 \\times", "12", false},
    {"We obtain $12^2 = 144$. Next, subtract the", "144", false},
    {"1. We first add.\n2.", "2", false},
    {"So 15 + 27 = 42, and then we multiply 42 by", "42", false},
    {"We have $x = 42 \\cdot", "42", false},
    {"… = 42, and then we multiply 42 by", "42", false},
    {"So there are 12 apples", "12", true},
    {"The answer is 12", "12", true},
    {"#### 12", "12", true},
    {"**12**", "12", true},
    {"x = 12", "12", true},
    {"Therefore $x = 12$", "12", true},
    {"The total is $12$ in", "12", true},
    {"She earns $12", "12", true},
    {"1. First we add 5 and 5.\n2. Then we add 2 to get 12", "12", true},
    {"12.", "12", true},
    {"\\boxed{12} and", "12", true},
    {"The answer is 12.\n\nNext, we", "12", true},
};

static void test_texts_cut_off(void **state)
{
    (void)state;
    TRY_CASES(TEXTS_CUT_OFF, NULL);
}

static const struct found_case REQUESTS[] = {
    {"\\boxed{\\text{Find }3+4}", "7", false},
    {"Answer: Find $3+4$", "7", false},
    {"\\boxed{\\text{Determine the value of }3+4}", "7", false},
    {"Answer: Determine the value of $3+4$", "7", false},
    {"\\boxed{\\text{What is }3+4}", "7", false},
    {"Answer: What is $3+4$", "7", false},
    {"\\boxed{\\text{Find the value of }3+4}", "7", false},
    {"Answer: Find the value of $3+4$", "7", false},
    {"\\boxed{\\text{Solve for }3+4}", "7", false},
    {"Answer: Solve for $3+4$", "7", false},
    {"\\boxed{\\text{Factor }3+4}", "7", false},
    {"Answer: Factor $3+4$", "7", false},
    {"\\boxed{\\text{Compute }3+4}", "7", false},
    {"Answer: Compute $3+4$", "7", false},
    {"\\boxed{\\text{Calculate }3+4}", "7", false},
    {"Answer: Calculate $3+4$", "7", false},
    {"\\boxed{\\text{Work out }3+4}", "7", false},
    {"Answer: Work out $3+4$", "7", false},
    {"\\boxed{\\text{How much is }3+4}", "7", false},
    {"Answer: How much is $3+4$", "7", false},
    {"\\boxed{\\text{Give the value of }3+4}", "7", false},
    {"Answer: Give the value of $3+4$", "7", false},
    {"\\boxed{\\text{State the value of }3+4}", "7", false},
    {"Answer: State the value of $3+4$", "7", false},
    {"\\boxed{\\text{We find }7}", "7", true},
    {"The answer is 7, found by counting.", "7", true},
    {"Answer: 7", "7", true},
    {"\\boxed{\\text{Factor}}", "\\text{Factor}", true},
};

static void test_requests(void **state)
{
    (void)state;
    TRY_CASES(REQUESTS, NULL);
}

static const struct found_case REPORTS_AND_CORRECTIONS[] = {
    {"A common mistake is to answer \\boxed{24}. The correct count is 12.", "24", false},
    {"I first wrote \\boxed{24}. This double counts. The correct answer is 12.", "24", false},
    {"So \\boxed{24}.\n\nActually, the correct answer is 12.", "24", false},
    {"The naive count gives \\boxed{24}, which double counts", "24", false},
    {"It is tempting to say $\\boxed{24}$. However, that ignores order.", "24", false},
    {"So \\boxed{24}. Hmm, I made an arithmetic error. The answer is 12.", "24", false},
    {"A common mistake is to answer \\boxed{24}. The correct count is 12.", "12", true},
    {"I first wrote \\boxed{24}. This double counts. The correct answer is 12.", "12", true},
    {"So \\boxed{24}.\n\nActually, the correct answer is 12.", "12", true},
    {"So \\boxed{24}. Hmm, I made an arithmetic error. The answer is 12.", "12", true},
    {"Is it $\\boxed{4}$?", "4", false},
    {"Assume the answer is $\\boxed{4}$. Then we get a contradiction.", "4", false},
    {"Suppose for contradiction that $n=\\boxed{4}$", "4", false},
    {"If the answer were \\boxed{4}, then the total would be 8. So it is 5.", "4", false},
    {"Please put your answer as \\boxed{4} only if you are sure.", "4", false},
    {"Replace \\boxed{4} with the correct answer.", "4", false},
    {"#### 4\n\nActually it is 5.", "4", false},
    {"Previous answer: \\boxed{4}\nCorrected answer: 5", "4", false},
    {"~~\\boxed{4}~~ 5", "4", false},
    {"$\\cancel{\\boxed{4}}$ 5", "4", false},
    {"Final answer: 4. Hmm, let me recheck. 2+3 is 5, so it is 5.", "4", false},
    {"\\boxed{4}. I'm not sure; it may be 5.", "4", false},
    {"#### 4\n\nActually it is 5.", "5", true},
    {"Previous answer: \\boxed{4}\nCorrected answer: 5", "5", true},
    {"~~\\boxed{4}~~ 5", "5", true},
    {"$\\cancel{\\boxed{4}}$ 5", "5", true},
    {"Final answer: 4. Hmm, let me recheck. 2+3 is 5, so it is 5.", "5", true},
    {"If the two numbers were equal, the answer is \\boxed{12}.", "12", true},
    {"The common mistake is to answer 24, but the correct answer is \\boxed{12}.", "12", true},
    {"Suppose $n=3$. Then the answer is \\boxed{12}.", "12", true},
    {"The answer is \\boxed{12}. A common wrong answer is 24.", "12", true},
    {"\\boxed{12}\n\nActually, this agrees with the table.", "12", true},
    {"We claim the answer is $\\boxed{12}$.", "12", true},
    {"If x = 3, the answer is \\boxed{12}.", "12", true},
    {"Tom got 5 wrong answers, so the number of right answers is \\boxed{12}.", "12", true},
    {"\\boxed{12}\n\nHowever, if order mattered it would be 24 arrangements.", "12", true},
    {"From the previous part, the sum is \\boxed{12}.", "12", true},
};

static void test_reports_and_corrections(void **state)
{
    (void)state;
    TRY_CASES(REPORTS_AND_CORRECTIONS, NULL);
}

static const struct found_case BLOCKS[] = {
    {"```python\n# \\boxed{285}\nprint(sum(range(1,10)))\n```\nRun this program.", "285", false},
    {"```python\nprint(r'\\boxed{285}')\n```", "285", false},
    {"```python\nfor i in range(1, 10):\n    print(i)\n```", "10", false},
    {"```python\nx = f(3) # 9\n```", "9", false},
    {"```python\nfor i in range(1, 10): pass\n```", "10", false},
    {"```python\nwhile x < 7: 10\n```", "10", false},
    {"Final Answer:\n```python\n58\n```", "58", true},
    {"The output is:\n```\n58\n```", "58", true},
    {"```\n58\n```", "58", true},
    {"The answer is 58.\n```python\nprint(12)\n```", "58", true},
    {"```python\nprint(50+8)\n```\nSo the answer is \\boxed{58}.", "58", true},
    {"Output:\n```text\n58\n```", "58", true},
};

static void test_blocks(void **state)
{
    (void)state;
    TRY_CASES(BLOCKS, NULL);
}

static const struct found_case MAIN_CLAUSES[] = {
    {"She needs 5 buses, not 4", "5", true},
    {"She needs 5 buses and not 4.", "5", true},
    {"She needs 5 buses rather than 4.", "5", true},
    {"Thus $x=5$, not $4$", "5", true},
    {"we find that $x = 5$ when $y = 2$", "5", true},
    {"there are 5 solutions with $1 \\le n \\le 100$", "5", true},
    {"She needs 5 buses because 4 buses would only carry 200", "5", true},
    {"Thus $x=5$ instead of $4$.", "5", true},
    {"So the least such $n$ is $12$ (since $11$ fails).", "12", true},
    {"the maximum of $f$ on $[0,1]$ is $\\frac12$, attained at $x=\\frac14$", "\\frac12", true},
    {"The area is 36 square units.\n\nLet me know if you have more questions about problem 4!", "36", true},
    {"The area is 36.\n\nHope this helps with question 3!", "36", true},
    {"She needs 5 buses, not 4", "4", false},
    {"Thus $x=5$, not $4$", "4", false},
    {"The cost for 3 pens is 15.", "15", true},
    {"Since 5 + 5 = 10, she has 15.", "15", true},
    {"There were 20, and when 5 are removed, 15 remain.", "15", true},
    {"If you sum the 5 and 10 you get 15.", "15", true},
    {"The total with 3 extra is 15 dollars.", "15", true},
    {"The maximum value is 6, which occurs when x = 3.", "6", true},
    {"The maximum is $6$, and it is attained at $x = 3$.", "6", true},
    {"There are 25 primes among the numbers from 1 to 100.", "25", true},
    {"There are 30 students. Each of them needs", "30", false},
    {"Find the sum: $1+2+3+4$", "10", false},
    {"What is $1+2+3+4$?", "10", false},
    {"What remains is $5$.", "5", true},
    {"We find $5$.", "5", true},
};

static void test_main_clauses(void **state)
{
    (void)state;
    TRY_CASES(MAIN_CLAUSES, NULL);
}

static const struct found_case LANGUAGES[] = {
    {"**Réponse : 12**", "12", true},
    {"**Réponse : 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**Réponse : 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**La réponse est 12**", "12", true},
    {"**La réponse est 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**La réponse est 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**Die Antwort ist 12**", "12", true},
    {"**Die Antwort ist 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**Die Antwort ist 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**La respuesta es 12**", "12", true},
    {"**La respuesta es 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**La respuesta es 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**Ответ: 12**", "12", true},
    {"**Ответ: 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**Ответ: 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**答案：12**", "12", true},
    {"**答案：12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**答案：12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**答え：12**", "12", true},
    {"**答え：12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**答え：12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**정답: 12**", "12", true},
    {"**정답: 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**정답: 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**Antwort: 12**", "12", true},
    {"**Antwort: 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**Antwort: 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"**Respuesta: 12**", "12", true},
    {"**Respuesta: 12**\n\nCheck: 12 + 5 = 17.", "12", true},
    {"**Respuesta: 12**\n\nCheck: 12 + 5 = 17.", "17", false},
    {"Die Antwort ist 12.", "12", true},
    {"Die Antwort ist 12.\n\nCheck: 12 + 5 = 17.", "12", true},
    {"Die Antwort ist 12.\n\nCheck: 12 + 5 = 17.", "17", false},
    {"答案是12。", "12", true},
    {"答案是12。\n\nCheck: 12 + 5 = 17.", "12", true},
    {"答案是12。\n\nCheck: 12 + 5 = 17.", "17", false},
    {"答えは12です。", "12", true},
    {"答えは12です。\n\nCheck: 12 + 5 = 17.", "12", true},
    {"答えは12です。\n\nCheck: 12 + 5 = 17.", "17", false},
    {"정답은 12입니다.", "12", true},
    {"정답은 12입니다.\n\nCheck: 12 + 5 = 17.", "12", true},
    {"정답은 12입니다.\n\nCheck: 12 + 5 = 17.", "17", false},
    {"La risposta è 12.", "12", true},
    {"La risposta è 12.\n\nCheck: 12 + 5 = 17.", "12", true},
    {"La risposta è 12.\n\nCheck: 12 + 5 = 17.", "17", false},
    {"A resposta é 12.", "12", true},
    {"A resposta é 12.\n\nCheck: 12 + 5 = 17.", "12", true},
    {"A resposta é 12.\n\nCheck: 12 + 5 = 17.", "17", false},
    {"Odpowiedź: 12", "12", true},
    {"Odpowiedź: 12\n\nCheck: 12 + 5 = 17.", "12", true},
    {"Odpowiedź: 12\n\nCheck: 12 + 5 = 17.", "17", false},
    {"Cevap: 12", "12", true},
    {"Cevap: 12\n\nCheck: 12 + 5 = 17.", "12", true},
    {"Cevap: 12\n\nCheck: 12 + 5 = 17.", "17", false},
    {"Die Antwort ist nicht 12.", "12", false},
    {"La réponse n'est pas 12.", "12", false},
    {"答案不是12。", "12", false},
};

static void test_languages(void **state)
{
    (void)state;
    TRY_CASES(LANGUAGES, NULL);
}

static const struct found_case ANCHORS_WITH_SIGNS[] = {
    {"Done.\n\n✅ Final Answer: **58**", "58", true},
    {"Done.\n\n→ The answer is 58.", "58", true},
    {"Done.\n\n\\textbf{Final Answer: 58}", "58", true},
    {"Done.\n\nHere's the final answer: 58", "58", true},
    {"Done.\n\n👉 The answer is 58.", "58", true},
    {"Done.\n\n➡️ Final Answer: 58", "58", true},
    {"Done.\n\n✔ Answer: 58", "58", true},
    {"Done.\n\n• Final Answer: 58", "58", true},
    {"Done.\n\n📌 Answer: 58", "58", true},
    {"Done.\n\n🎯 **Answer: 58**", "58", true},
    {"Done.\n\n— Final Answer: 58", "58", true},
    {"Done.\n\n⇒ The answer is 58.", "58", true},
    {"Done.\n\n■ Final Answer: 58", "58", true},
    {"Done.\n\n① Final Answer: 58", "58", true},
    {"Done.\n\n… Final Answer: 58", "58", true},
    {"Done.\n\n### ✅ Final Answer: 58", "58", true},
    {"Done.\n\n✅ Final Answer: $58$", "58", true},
    {"Done.\n\n\xEF\xBB\xBF"
     "Final Answer: 58",
     "58", true},
    {"Done.\n\n\xE2\x80\x8B"
     "Final Answer: 58",
     "58", true},
    {"Done.\n\n所以 the answer is 58", "58", true},
    {"Done.\n\n\\textbf{Final Answer:} 58", "58", true},
    {"Done.\n\n<b>Final Answer: 58</b>", "58", true},
    {"Done.\n\n(Final Answer) 58", "58", true},
    {"Done.\n\n**Final Answer**\n\n> 58", "58", true},
    {"Done.\n\nThe answer works out to be 58", "58", true},
    {"Done.\n\nI'm confident that the answer is 58.", "58", true},
    {"Done.\n\nFinal Answer: 58</s>", "58", true},
    {"Done.\n\nThe answer is 58 — done.", "58", true},
    {"Done.\n\nThe answer is 58…", "58", true},
    {"Done.\n\nAnswer: 58 (✓)", "58", true},
    {"Done.\n\n✅ Final Answer\n\n58", "58", true},
    {"Done.\n\n✅ Final Answer:\n\n$$58$$", "58", true},
    {"Done.\n\n✅ Final Answer: \\boxed{58}", "58", true},
    {"Done.\n\n✅ Total: 58", "58", true},
    {"Done.\n\n✅ **58**", "58", true},
    {"Done.\n\nFinal Answer: 58 ✅", "58", true},
    {"Done.\n\n#### ✅ 58", "58", true},
    {"Done.\n\n<answer>✅58</answer>", "58", true},
    {"Done.\n\n* Final Answer: 58", "58", true},
    {"Done.\n\n> Final Answer: 58", "58", true},
    {"Done.\n\n1. Final Answer: 58", "58", true},
    {"Done.\n\nFinal Answer: \"58\"", "58", true},
    {"Done.\n\nFinal Answer: “58”", "58", true},
    {"Done.\n\n[Answer]: 58", "58", true},
    {"Done.\n\n| Final Answer | 58 |", "58", true},
    {"Done.\n\nAnswer = 58", "58", true},
    {"Done.\n\nAnswer - 58", "58", true},
    {"Done.\n\nThe answer must be 58", "58", true},
    {"Done.\n\nFinal Answer: 58<|im_end|>", "58", true},
};

static void test_anchors_with_signs(void **state)
{
    (void)state;
    TRY_CASES(ANCHORS_WITH_SIGNS, NULL);
}

static void test_guesses_off(void **state)
{
    (void)state;
    static const struct found_case cases[] = {
        {"The answer is 18.", "18", true},   {"#### 18", "18", true},       {"Final answer: 18", "18", true},
        {"<answer>18</answer>", "18", true}, {"\\boxed{18}", "18", true},   {"Die Antwort ist 18.", "18", true},
        {"She has 18 apples.", "18", false}, {"So $x = 18$.", "18", false},
    };
    TRY_CASES(cases, ((const char *const[]){"plain=false", NULL}));
}

static void test_evaluated(void **state)
{
    (void)state;
    static const struct found_case cases[] = {
        {"\\boxed{\\sum_{k=1}^{100} k}", "5050", false},
        {"\\boxed{\\int_0^1 x^2 dx}", "\\frac13", false},
        {"\\boxed{\\gcd(12,18)}", "6", false},
        {"\\boxed{7^{2023} \\bmod 10}", "3", false},
        {"\\boxed{\\lim_{x \\to 0} \\frac{\\sin x}{x}}", "1", false},
        {"\\boxed{123 \\cdot 456}", "56088", false},
        {"\\boxed{\\frac{d}{dx}(x^2+3x)}", "2x+3", false},
        {"\\boxed{\\prod_{k=1}^4 k}", "24", false},
        {"\\sum_{k=1}^{100} k", "5050", false},
        {"So we get\n\\int_{0}^{2} x dx", "2", false},
        {"\\sum_{k=1}^{100} k = 5050", "5050", true},
        {"\\sum_{k=1}^{100} k is 5050.", "5050", true},
        {"\\boxed{\\sum_{k=1}^{100} k = 5050}", "5050", true},
        {"\\boxed{3 \\times 10^5}", "300000", true},
        {"\\boxed{2^{10}}", "1024", true},
        {"\\boxed{x \\equiv 3 \\pmod 7}", "x \\equiv 3 \\pmod 7", true},
        {"\\boxed{2 \\cdot 3^5}", "2 \\cdot 3^5", true},
        {"\\boxed{5050}", "5050", true},
    };
    TRY_CASES(cases, ((const char *const[]){"evaluated=true", NULL}));
}

static void test_opened(void **state)
{
    (void)state;
    static const struct found_case cases[] = {
        {"5+5=10, so maybe \\boxed{10}. But wait, is it", "10", false},
        {"5+5=10, so maybe 10", "10", false},
        {"5+5=10.</think>\\boxed{10}", "10", true},
        {"<think>5+5=10.</think>The answer is 10.", "10", true},
        {"5+5=10.</think>", "10", false},
    };
    TRY_CASES(cases, ((const char *const[]){"opened=true", NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_cut_off),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_reports_and_corrections),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_main_clauses),
        cmocka_unit_test(test_languages),
        cmocka_unit_test(test_anchors_with_signs),
        cmocka_unit_test(test_guesses_off),
        cmocka_unit_test(test_evaluated),
        cmocka_unit_test(test_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
