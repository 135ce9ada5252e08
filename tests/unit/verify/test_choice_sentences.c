/* Sentences that claim C, and those that are near them and do not: what leaves an option over,
 * signs and small letters, an option behind its value, other languages, quotations, withdrawals. */
#include "choice_list.h"

static const char *const CLAIMS_C[] = {"That leaves C.",
                                       "This leaves us with C.",
                                       "A and B are wrong, leaving only C.",
                                       "✅ C) All of the above",
                                       "🎯 C",
                                       "c",
                                       "c.",
                                       "c) photosynthesis",
                                       "C - The Great Gatsby",
                                       "C – gold",
                                       "Looking at the options, only C satisfies both conditions.",
                                       "Only C meets all the criteria.",
                                       "The most likely diagnosis is gout (option C).",
                                       "The speed is 10 m/s (choice C).",
                                       "正确答案是C,因为A和B都不对。",
                                       "选项A、B都不正确,答案是C。",
                                       "La respuesta correcta es la C y no la D.",
                                       "La réponse est C et non D.",
                                       "Die Antwort ist C und nicht D.",
                                       "Il n'y a pas de doute que la réponse est C.",
                                       "Non, la réponse C est correcte.",
                                       "No, la respuesta es la C.",
                                       "Ich würde Antwort C wählen, da Eisen magnetisch ist.",
                                       "I'm fairly confident it's C.",
                                       "The passage says so in line 4, therefore (C).",
                                       "Richtig ist C.",
                                       "La correcta es la C.",
                                       "C'est C.",
                                       "Correcta es la C.",
                                       "The answer is \"C\".",
                                       "So I write: \"The answer is C\".",
                                       "The answer is C. No other option works.",
                                       NULL};

static const char *const NOT_C[] = {"The train leaves C.",
                                    "That leaves A and C.",
                                    "That leaves C or D.",
                                    "That leaves C, but C is wrong too.",
                                    "👉 The answer is B.",
                                    "cats",
                                    "c is the speed of light",
                                    "C: What is the capital of France?",
                                    "C. Is it gold?",
                                    "Only C fails.",
                                    "Only A and C satisfy both conditions.",
                                    "Only C does not hold.",
                                    "The most likely diagnosis is not gout (option C).",
                                    "The first value is 3 (option C). The second is 4 (option D).",
                                    "Gout (option C) is a disease.",
                                    "Is it gout (option C)?",
                                    "答案可能是C。",
                                    "答案是A或者C。",
                                    "答案是C或者A。",
                                    "选项A、B、C都正确。",
                                    "Die Antwort ist C oder D.",
                                    "Die Antwort könnte C sein.",
                                    "A und C sind richtig.",
                                    "La réponse est C ou D.",
                                    "La respuesta es C o D.",
                                    "Je ne choisis pas la réponse C.",
                                    "Ce n'est pas la réponse C.",
                                    "Ich würde nicht Antwort C wählen.",
                                    "I'm not sure it's C.",
                                    "The passage says so, therefore not C.",
                                    "Falsch ist C.",
                                    "不应该选C。",
                                    "Ce n'est pas C.",
                                    "Format your answer as \"The answer is (C)\".",
                                    "Finish with the sentence \"The answer is C\".",
                                    "\"The answer is C,\" says Tom.",
                                    "The answer is C. Actually no. It is B.",
                                    "The answer is C. Hmm, wait.",
                                    "The answer is C. I made a mistake above.",
                                    NULL};

/* A is no article behind a noun of another language. */
static const char *const CLAIMS_A[] = {"Ich würde Antwort A wählen.", "La opción A es la correcta.", NULL};
static const char *const NOT_A[] = {"a dog", "I can answer A question at a time.", NULL};

static void claims_one(void **state)
{
    (void)state;
    try_list(CLAIMS_C, "C", true);
    try_list(CLAIMS_A, "A", true);
}

static void claims_none(void **state)
{
    (void)state;
    try_list(NOT_C, "C", false);
    try_list(NOT_A, "A", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_one), cmocka_unit_test(claims_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
