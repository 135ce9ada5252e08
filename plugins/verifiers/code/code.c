/* code: runs a Python program against its tests in a sandbox (sandbox.h).
 *
 *   reward 1  if  all tests pass  else 0;  with partial = true: passed / all
 *
 * The program is the last fenced block after the last </think> that is labelled as Python, else the
 * last one without a label; blocks of text, output, JSON or other languages are none. A text without
 * blocks is the program itself, or holds it between <answer> tags. The row's tests are either input and expected output, or Python code that runs after
 * the program in the same process and raises on failure (assert). Outputs are compared outside,
 * beyond the program's reach. Test code shares a process with the program: a random number printed
 * at the very end proves that it ran to the end, so sys.exit(0) passes nothing, but a program
 * written to deceive its tests can. Each test runs in a separate process. Limits on CPU time,
 * memory, output and files are counted; the wall clock stops programs that wait. PYTHONHASHSEED is
 * 0. Verdicts: correct; wrong; partial; timeout (of the first failing test); no_answer (no
 * program).
 */
#include "common/fences.h"
#include "common/verifier.h"
#include "sandbox.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { P_FIELD, P_PARTIAL, P_WORDS, P_CPU, P_WALL, P_MEMORY, P_OUTPUT, P_FILES, P_SANDBOX, P_PYTHON, P_OPENED, N_PARAMS };
/* a program is passed as an argument, which Linux limits to 128 KB */
enum { PROGRAM_MAX = 120000, MARK = 32 };
static const char *const SANDBOXES[] = {"full", "limits", NULL};

#define MEGABYTES(KEY, DEFAULT, MIN, DOC)                                                                                          \
    {                                                                                                                              \
        .key = KEY, .type = TARE_PARAM_INT, .fallback = DEFAULT, .min = MIN, .max = 1 << 20,                                       \
        .flags = TARE_PARAM_MIN | TARE_PARAM_MAX, .unit = "MB", .doc = DOC                                                         \
    }

static const tare_param PARAMS[N_PARAMS] = {
    [P_OPENED] = OPENED_PARAM,
    [P_FIELD] = TARE_STRING_PARAM("field", "tests", "the row's field that holds its tests", 0),
    [P_PARTIAL] =
        TARE_BOOL_PARAM("partial", "false",
                        "the reward is the share of tests that pass; false: the first test that fails ends the verification", 0),
    [P_WORDS] = TARE_BOOL_PARAM("words", "false", "outputs are compared word by word, not line by line", 0),
    [P_CPU] = {.key = "cpu",
               .fallback = "5",
               .doc = "CPU time of one test",
               .unit = "s",
               .min = 1,
               .max = 3600,
               .type = TARE_PARAM_INT,
               .flags = TARE_PARAM_MIN | TARE_PARAM_MAX},
    [P_WALL] =
        {.key = "wall",
         .fallback = "30",
         .doc =
             "time of one test by the clock, for programs that wait; verifier.timeout holds for all tests of a completion together",
         .unit = "s",
         .min = 0,
         .max = 86400,
         .type = TARE_PARAM_FLOAT,
         .flags = TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_ABOVE_MIN},
    [P_MEMORY] = MEGABYTES("memory", "512", 32, "memory of a program (address space)"),
    [P_OUTPUT] = MEGABYTES("output", "1", 1, "size of a program's standard output"),
    [P_FILES] = MEGABYTES("files", "16", 1, "total size of a program's files, which are in memory"),
    [P_SANDBOX] = TARE_CHOICE_PARAM(
        "sandbox", "full",
        "full: namespaces, system calls, limits; limits: without namespaces, where the machine gives none. Programs can then read this user's files",
        SANDBOXES, 0),
    [P_PYTHON] = TARE_STRING_PARAM("python", "python3", "the interpreter of the programs: a name in PATH, or a file", 0),
};

struct code {
    const tare_value *values;
    struct sandbox sandbox;
};

static void destroy(void *self)
{
    free(self);
}

/* Runs a program of one line, so that a sandbox that cannot be set up is reported before the
 * run. */
static tare_status try_it(const struct sandbox *s, tare_error *error)
{
    struct sandbox_result r;
    tare_status status = sandbox_run(s, text_of("print(6 * 7)"), (tare_text){"", 0}, 0, &r, error);
    if (!status && (r.end != SANDBOX_EXITED || r.size != 3 || memcmp(r.output, "42\n", 3) != 0))
        status = tare_fail(
            error, TARE_E_CONFIG,
            "a first program, print(6 * 7), did not run in the sandbox (%s%d); python = %s may need more than memory = %lld MB",
            r.end == SANDBOX_EXITED ? "exit status " : "end ", r.end == SANDBOX_EXITED ? r.status : (int)r.end, s->python,
            (long long)(s->memory >> 20));
    free(r.output);
    return status;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct code *c = malloc(sizeof *c);
    if (!c) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *c = (struct code){.values = values,
                       .sandbox = {.host = setup->host,
                                   .mode = (int)values[P_SANDBOX].i,
                                   .cpu = (double)values[P_CPU].i,
                                   .wall = values[P_WALL].f,
                                   .memory = values[P_MEMORY].i << 20,
                                   .output = values[P_OUTPUT].i << 20,
                                   .files = values[P_FILES].i << 20}};
    tare_status s = sandbox_find(&c->sandbox, values[P_PYTHON].s, error);
    if (!s) s = try_it(&c->sandbox, error);
    if (s)
        destroy(c);
    else
        *self = c;
    return s;
}

enum outcome { PASSED, FAILED, LATE };
struct test_outcome {
    enum outcome outcome;
    const char *why;
};

static struct test_outcome outcome_of(const struct sandbox_result *r)
{
    if (r->end == SANDBOX_LATE) return (struct test_outcome){LATE, "a test took too long"};
    if (r->end == SANDBOX_TOO_MUCH) return (struct test_outcome){FAILED, "a test wrote too much"};
    if (r->end == SANDBOX_KILLED) return (struct test_outcome){FAILED, "a test ended by a signal"};
    return r->status ? (struct test_outcome){FAILED, "a test ended with an error"} : (struct test_outcome){PASSED, NULL};
}

static tare_status by_output(const struct code *c, tare_text program, const json_t *test, int64_t deadline,
                             struct test_outcome *out, tare_error *error)
{
    const json_t *in = json_object_get(test, "input"), *want = json_object_get(test, "output");
    struct sandbox_result r;
    const tare_status s =
        sandbox_run(&c->sandbox, program, (tare_text){json_string_value(in), (int64_t)json_string_length(in)}, deadline, &r, error);
    if (!s) *out = outcome_of(&r);
    if (!s && out->outcome == PASSED &&
        !tests_same((tare_text){r.output, r.size}, (tare_text){json_string_value(want), (int64_t)json_string_length(want)},
                    c->values[P_WORDS].i))
        *out = (struct test_outcome){FAILED, "a test has another output"};
    free(r.output);
    return s;
}

/* Makes `if __name__ == "__main__":` false, as for a test that imports the program. */
static void skip_main(char *program, int64_t n)
{
    const tare_text t = {program, n};
    for (int64_t i = 0; i < n; i++) {
        if ((i && program[i - 1] != '\n') || !text_starts(t, i, "if __name__", false)) continue;
        int64_t k = i + 11;
        while (k < n && strchr(" =", program[k]) && program[k]) k++;
        if (text_starts(t, k + 1, "__main__", false)) memcpy(program + i + 3, "\"tested\"", 8);
    }
}

/* Runs the program followed by the test and a secret number, which is printed last. */
static tare_status by_program(const struct code *c, tare_text program, const json_t *test, int64_t deadline,
                              struct test_outcome *out, tare_error *error)
{
    static const char END[] = "\nimport sys\nsys.stdout.flush()\nsys.__stdout__.write('%s')\nsys.__stdout__.flush()\n";
    uint64_t number[2];
    char mark[MARK + 1];
    struct sandbox_result r;
    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number) return tare_fail(error, TARE_E_IO, "no random number");
    snprintf(mark, sizeof mark, "%016llx%016llx", (unsigned long long)number[0], (unsigned long long)number[1]);
    const size_t capacity = (size_t)program.size + json_string_length(test) + sizeof END + MARK + 2;
    char *all = malloc(capacity);
    if (!all) return tare_fail(error, TARE_E_NOMEM, "no memory");
    memcpy(all, program.data, (size_t)program.size);
    skip_main(all, program.size);
    int64_t n = program.size;
    n += snprintf(all + n, capacity - (size_t)n, "\n%s", json_string_value(test));
    n += snprintf(all + n, capacity - (size_t)n, END, mark);
    const tare_status s =
        n < PROGRAM_MAX + 8000
            ? sandbox_run(&c->sandbox, (tare_text){all, n}, (tare_text){"", 0}, deadline, &r, error)
            : tare_fail(error, TARE_E_RANGE, "a test of the row is too long; program and test have at most 128 KB");
    free(all);
    if (n >= PROGRAM_MAX + 8000) return s;
    if (!s) *out = outcome_of(&r);
    if (!s && out->outcome == PASSED && (r.size < MARK || memcmp(r.output + r.size - MARK, mark, MARK) != 0))
        *out = (struct test_outcome){FAILED, "the program ended before its tests did"};
    free(r.output);
    return s;
}

static tare_status decide_verdict(const struct code *c, tare_text program, int64_t passed, int64_t all, struct test_outcome first,
                                  tare_verdict *v)
{
    if (passed == all) return verdict_set(v, TARE_VERDICT_CORRECT, 1, program, "all tests pass");
    if (passed && c->values[P_PARTIAL].i)
        return verdict_set(v, TARE_VERDICT_PARTIAL, (double)passed / (double)all, program, first.why);
    return verdict_set(v, first.outcome == LATE ? TARE_VERDICT_TIMED_OUT : TARE_VERDICT_WRONG, 0, program, first.why);
}

static tare_status run_tests(const struct code *c, const struct tests *t, tare_text program, int64_t deadline, tare_verdict *v,
                             tare_error *error)
{
    const int64_t all = (int64_t)json_array_size(t->list);
    struct test_outcome first = {PASSED, NULL};
    int64_t passed = 0;
    for (int64_t i = 0; i < all && (c->values[P_PARTIAL].i || passed == i); i++) {
        struct test_outcome one = {PASSED, NULL};
        const json_t *test = json_array_get(t->list, (size_t)i);
        const tare_status s = (t->programs ? by_program : by_output)(c, program, test, deadline, &one, error);
        if (s) return s;
        passed += one.outcome == PASSED;
        if (one.outcome && !first.outcome) first = one;
    }
    return decide_verdict(c, program, passed, all, first, v);
}

static tare_status verify_answer(const struct code *c, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    char *copy = malloc((size_t)a->text.size + 1);
    if (!copy) return tare_fail(error, TARE_E_NOMEM, "no memory to read a completion");
    struct tests t;
    tare_status s = tests_read(a->row, c->values[P_FIELD].s, &t, error);
    const tare_text program =
        fence_value(text_after_thought(a->text, c->values[P_OPENED].i), t.programs ? FENCE_FUNCTIONS : FENCE_PYTHON, copy);
    if (s)
        ;
    else if (!program.size)
        s = verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, program, "there is no program");
    else if (program.size > PROGRAM_MAX || memchr(program.data, 0, (size_t)program.size))
        s = verdict_set(v, TARE_VERDICT_WRONG, 0, (tare_text){"", 0}, "the program is longer than 120 KB, or has a zero byte");
    else
        s = run_tests(c, &t, program, a->deadline_ns, v, error);
    tests_free(&t);
    free(copy);
    return s;
}

USES(0)
VERIFIER("code", "a Python program passes its tests, in a sandbox", verify_answer)
