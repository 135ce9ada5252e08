/* What a chat template writes after an answer, compared with the texts and ids that transformers gives
 * (data/episodes/suffix of the reference data). The small tokenizers of the tree give other ids. */
#include "base/fs.h"
#include "base/json.h"
#include "check.h"
#include "data/prompt.h"

#include <string.h>

static struct err e;

struct family {
    const char *rows, *folder, *chat_template, *end; /* end: of a turn */
    int64_t least;
};

static bool is_usual(const json_t *row, const char *content)
{
    const json_t *how = json_object_get(row, "sampled_how"), *suffix = json_object_get(row, "suffix");
    return (!how || json_is_null(how)) && !json_is_string(json_object_get(row, "tools")) && !strstr(content, "<|") &&
           json_is_array(json_object_get(suffix, "marker")) && json_is_string(json_object_get(row, "suffix_text"));
}

/* t: NULL: only the texts. */
static void compare(const struct prompts *p, const struct tokenizer *t, const json_t *row, const struct family *f)
{
    const json_t *m = json_array_get(json_object_get(row, "observation"), 0), *ids;
    const char *role = json_string_value(json_object_get(m, "role")), *id = json_string_value(json_object_get(row, "id"));
    const char *content = json_string_value(json_object_get(m, "content")), *want;
    struct str text = {0};
    struct token_ids got = {0};
    const struct prompt_message said = {.role = role, .text = {content, (int64_t)strlen(content)}};
    assert_ok(prompts_after_answer(p, NULL, (struct prompt_turn){.m = &said, .n = 1}, &text, &e), &e);
    if (strncmp(text.data, f->end, strlen(f->end)) != 0) fail_msg("%s: begins with %.40s", id, text.data);
    want = json_string_value(json_object_get(row, "suffix_text"));
    if (strcmp(text.data + strlen(f->end), want) != 0) fail_msg("%s: %s, expected %s", id, text.data + strlen(f->end), want);
    if (!t) {
        str_free(&text);
        return;
    }
    assert_ok(tokenizer_encode(t, want, (int64_t)strlen(want), &got, &e), &e);
    ids = json_object_get(json_object_get(row, "suffix"), "marker");
    assert_int_equal(got.n, json_array_size(ids));
    for (int64_t k = 0; k < got.n; k++)
        if (got.data[k] != json_integer_value(json_array_get(ids, (size_t)k))) fail_msg("%s: token %lld", id, (long long)k);
    token_ids_free(&got);
    str_free(&text);
}

static void run(const struct family *f)
{
    char rows[4096], folder[4096], file[8192] = "";
    struct tokenizer *t;
    struct prompts *p;
    struct str text = {0};
    int64_t n = 0;
    snprintf(rows, sizeof rows, "%s", shared_or_skip(f->rows));
    snprintf(folder, sizeof folder, "%s", shared_or_skip(f->folder));
    const bool whole = shared_is_whole(rows) && shared_is_whole(folder);
    if (f->chat_template) snprintf(file, sizeof file, "%s/%s", folder, f->chat_template);
    const struct data_config config = {.prompt = PROMPT_CHAT, .chat_template = file};
    assert_ok(tokenizer_load(folder, &t, &e), &e);
    assert_ok(prompts_new(&config, folder, t, &p, &e), &e);
    assert_ok(fs_read_all(rows, &text, &e), &e);
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *row;
        assert_ok(json_parse(line, (int64_t)strlen(line), rows, &row, &e), &e);
        const json_t *observation = json_object_get(row, "observation");
        const char *content = json_string_value(json_object_get(json_array_get(observation, 0), "content"));
        if (json_array_size(observation) == 1 && content && is_usual(row, content)) {
            compare(p, whole ? t : NULL, row, f);
            n++;
        }
        json_decref(row);
    }
    if (n < (whole ? f->least : 3)) fail_msg("only %lld rows were compared", (long long)n);
    prompts_free(p);
    tokenizer_free(t);
    str_free(&text);
}

static void llama_3(void **state)
{
    (void)state;
    run(&(struct family){"data/episodes/suffix/llama-3.jsonl", "models/tokenizers/llama-3", "chat_template.llama-3.jinja",
                         "<|eot_id|>", 25});
}

static void smollm2(void **state)
{
    (void)state;
    run(&(struct family){"data/episodes/suffix/smollm2.jsonl", "models/tokenizers/smollm2", NULL, "<|im_end|>", 25});
}

static void qwen2_5(void **state)
{
    (void)state;
    run(&(struct family){"data/episodes/suffix/qwen2.5-instruct.jsonl", "models/tokenizers/qwen2.5", "chat_template.instruct.jinja",
                         "<|im_end|>", 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama_3), cmocka_unit_test(smollm2), cmocka_unit_test(qwen2_5)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
