/* ifeval: a response follows the instructions of its row, of the 25 kinds of IFEval (Zhou et al.
 * 2023, arXiv 2311.07911).
 *
 *   reward 1  if  all instructions are followed  else 0;  with partial = true: followed / all
 *
 * The row has instruction_id_list and kwargs as in the data set google/IFEval: a list of names, and
 * a list of as many objects with their arguments (null for arguments of other instructions). Each
 * check does the same as the published program. Where that program uses a trained model (sentences,
 * languages) or draws a number that the row lacks, docs/verifiers.md describes the replacement.
 * mode = loose is the paper's: an instruction also counts if it is followed by the response without
 * its stars, its first line, its last line, or several of these. The text is what follows the last
 * </think>, unless `thought` is on. Verdicts: correct; partial; wrong; no_answer (blank). */
#include "ifeval.h"
#include "common/verifier.h"

#include <stdlib.h>
#include <string.h>

enum { P_MODE, P_PARTIAL, P_LANGUAGE, P_THOUGHT, P_OPENED, N_PARAMS };
enum { VARIANTS = 8 };
static const char *const MODES[] = {"strict", "loose", NULL};
static const char *const LANGUAGES[] = {"own", "script", "skip", NULL};

static const tare_param PARAMS[N_PARAMS] = {
    [P_MODE] = TARE_CHOICE_PARAM("mode", "strict", "loose: stars, the first and the last line may be in the way", MODES, 0),
    [P_PARTIAL] = TARE_BOOL_PARAM("partial", "false", "the reward is the share of instructions that are followed", 0),
    [P_LANGUAGE] = TARE_CHOICE_PARAM(
        "language", "own",
        "language:response_language. own: for languages with a unique script, others are refused; script: all, by their script alone; skip: left out",
        LANGUAGES, 0),
    [P_OPENED] = OPENED_PARAM,
    [P_THOUGHT] = TARE_BOOL_PARAM("thought", "false", "look at the thought as well", 0),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    (void)error;
    *self = (void *)(uintptr_t)values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

/* The response, and with mode = loose its shortened forms; the data of some is allocated. */
struct variants {
    tare_text text[VARIANTS];
    char *bare; /* the whole and its parts without stars */
    int n;
};

static tare_text without_stars(tare_text t, char *out)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t.size; i++)
        if (t.data[i] != '*') out[n++] = t.data[i];
    return (tare_text){out, n};
}

static bool variants_make(tare_text t, bool loose, struct variants *v)
{
    *v = (struct variants){.text = {t}, .n = 1};
    if (!loose) return true;
    if (!(v->bare = malloc(4 * (size_t)t.size + 1))) return false;
    /* 0 and -1: a single line */
    const int64_t first = text_find(t, "\n") + 1, last = text_find_last(t, "\n");
    v->text[1] = uni_trim(text_slice(t, first ? first : t.size, t.size));
    v->text[2] = uni_trim(text_slice(t, 0, last < 0 ? 0 : last));
    v->text[3] = uni_trim(text_slice(t, first ? first : t.size, last < 0 ? 0 : last));
    for (int i = 0; i < 4; i++) v->text[4 + i] = without_stars(v->text[i], v->bare + i * t.size);
    v->n = VARIANTS;
    return true;
}

struct tally {
    int64_t all, followed;
    const char *missed; /* the first instruction that is not followed */
};

static tare_status judge_one(const tare_value *p, const struct variants *v, const char *id, const json_t *args, struct tally *n,
                             tare_error *error)
{
    const ifeval_check check = ifeval_find(id);
    bool followed = false;
    if (!check)
        return tare_fail(error, TARE_E_CONFIG, "the row names the unknown instruction '%.100s': must be one of IFEval's 25", id);
    if (check == check_language && p[P_LANGUAGE].i == LANGUAGE_SKIP) return TARE_OK;
    for (int i = 0; i < v->n && !followed; i++) {
        const struct ifeval_case c = {v->text[i], args, id, (enum ifeval_language)p[P_LANGUAGE].i};
        if (!uni_trim(c.text).size) continue;
        const tare_status s = check(&c, &followed, error);
        if (s) return s;
    }
    n->all++;
    n->followed += followed;
    if (!followed && !n->missed) n->missed = id;
    return TARE_OK;
}

static tare_status judge_row(const tare_value *p, const json_t *row, const struct variants *v, struct tally *n, tare_error *error)
{
    const json_t *ids = json_object_get(row, "instruction_id_list"), *kwargs = json_object_get(row, "kwargs"), *id;
    size_t i;
    if (!json_is_array(ids) || !json_array_size(ids) || !json_is_array(kwargs) || json_array_size(ids) != json_array_size(kwargs))
        return tare_fail(error, TARE_E_CONFIG,
                         "the row needs instruction_id_list and kwargs, two lists of the same length, as google/IFEval has them");
    json_array_foreach(ids, i, id)
    {
        const json_t *args = json_array_get(kwargs, i);
        if (!json_is_string(id) || !json_is_object(args))
            return tare_fail(error, TARE_E_CONFIG, "the row's instruction %zu is invalid: must be a name with an object in kwargs",
                             i + 1);
        const tare_status s = judge_one(p, v, json_string_value(id), args, n, error);
        if (s) return s;
    }
    return TARE_OK;
}

static tare_status decide_verdict(const tare_value *p, const struct tally *n, bool blank, tare_verdict *v)
{
    const tare_text missed = text_of(n->missed ? n->missed : "");
    const double share = n->all ? (double)n->followed / (double)n->all : 1;
    if (blank) return verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, missed, "the response is blank");
    if (n->followed == n->all) return verdict_set(v, TARE_VERDICT_CORRECT, 1, missed, "all instructions are followed");
    if (p[P_PARTIAL].i && n->followed)
        return verdict_set(v, TARE_VERDICT_PARTIAL, share, missed, "some instructions are not followed");
    return verdict_set(v, TARE_VERDICT_WRONG, 0, missed, "an instruction is not followed");
}

static tare_status verify_answer(const tare_value *p, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    const tare_text t = uni_valid(p[P_THOUGHT].i ? a->text : text_after_thought(a->text, p[P_OPENED].i));
    struct variants variants = {0};
    struct tally n = {0};
    json_t *row = a->row.size ? json_loadb(a->row.data, (size_t)a->row.size, JSON_ALLOW_NUL, NULL) : NULL;
    tare_status s = t.data && variants_make(t, p[P_MODE].i == 1, &variants) ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!s) s = judge_row(p, row, &variants, &n, error);
    if (!s) s = decide_verdict(p, &n, !uni_trim(t).size, v);
    free(variants.bare);
    free((void *)(uintptr_t)t.data);
    json_decref(row);
    return s;
}

USES(TARE_USES_ROW)
VERIFIER("ifeval", "a response follows the instructions of its row (IFEval)", verify_answer)
