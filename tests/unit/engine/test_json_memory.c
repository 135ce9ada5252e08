/* JSON written by the engine when each of jansson's allocations fails once: the text is unchanged,
 * or there is an error, but never a text that lacks a part. libtare.so cannot end its host's
 * process for that (json_begin), and jansson would omit the part silently. */
#include "check.h"
#include "folder.h"

#include "base/json.h"
#include "data/tokenizer.h"
#include "model/adapter.h"
#include "model/hf_config.h"
#include "model/model.h"
#include "observe/manifest.h"
#include "template/chat.h"

#include <stdlib.h>
#include <string.h>

static struct {
    long until; /* this call fails; below 0: it has failed, or none does */
    bool off;
    long live; /* blocks */
} memory = {.until = -1};

static void give_back(void *p)
{
    memory.live -= p != NULL;
    free(p);
}

static void *allocate_or_fail(size_t n)
{
    if (!memory.off && memory.until >= 0 && memory.until-- == 0) return NULL;
    memory.live++;
    return malloc(n);
}

/* If the buffer of a string that is being read cannot grow, jansson reads beyond it: not tested
 * here (docs/dev/reliability.md). */
json_t *__real_json_loadb(const char *text, size_t n, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *error);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *error)
{
    const bool before = memory.off;
    memory.off = true;
    json_t *j = __real_json_loadb(text, n, flags, error);
    memory.off = before;
    return j;
}

static const char *folder;
static struct pool *pool;

static int open_folder(void **state)
{
    struct err e = {0};
    (void)state;
    json_set_alloc_funcs(allocate_or_fail, give_back);
    return !(folder = make_test_folder("tare-json-memory")) || pool_new(1, &pool, &e);
}

static int remove_folder(void **state)
{
    (void)state;
    pool_free(pool);
    return (int)fs_remove_tree(folder, NULL);
}

/* Appends NAME and the text of that file of the folder, or "-" if it is missing. */
static void add_file(struct str *out, const char *name)
{
    char path[FS_PATH];
    struct str text = {0};
    struct err e = {0};
    assert_ok(fs_join(path, folder, name, &e), &e);
    if (fs_exists(path)) assert_ok(fs_read_all(path, &text, &e), &e);
    assert_ok(str_addf(out, &e, "%s: %s\n", name, text.data ? text.data : "-"), &e);
    str_free(&text);
}

typedef tare_status (*writer)(struct str *out, struct err *e);

/* Repeats the work with a failing allocation at each point in turn, until none fails. */
static void every_call(writer write, long least)
{
    OWNED(str_free) struct str want = {0}, got = {0};
    struct err e = {0};
    long failed = 0, k = 0;
    assert_ok(write(&want, &e), &e);
    assert_true(want.size > 0);
    for (bool reached = true; reached; k++) {
        struct err why = {0};
        str_clear(&got);
        memory.until = k;
        const long before = memory.live;
        const tare_status status = write(&got, &why);
        if (memory.live != before) fail_msg("call %ld (%s): %ld blocks are not given back", k, why.message, memory.live - before);
        reached = memory.until < 0;
        memory.until = -1;
        if (status && !why.message[0]) fail_msg("call %ld fails without a message", k);
        if (!status && (got.size != want.size || memcmp(got.data, want.data, (size_t)want.size)))
            fail_msg("without the memory of call %ld: %s\ninstead of: %s", k, got.data, want.data);
        failed += status != TARE_OK;
    }
    if (failed < least) fail_msg("only %ld of %ld calls made it fail", failed, k);
}

/* ---- written JSON */

static struct model *m;

static tare_status write_config(struct str *out, struct err *e)
{
    TRY(hf_config_save(m, folder, DTYPE_BF16, e));
    add_file(out, "config.json");
    add_file(out, "generation_config.json");
    return TARE_OK;
}

static struct model *open_model(const struct lora_spec *lora, const struct model_config *c)
{
    char path[FS_PATH];
    struct err e = {0};
    const struct kernels *k;
    struct model *opened;
    snprintf(path, sizeof path, "%s/tests/data/models/tiny/qwen3", getenv("SOURCE"));
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    assert_ok(
        model_open(
            &(struct model_source){.folder = path, .config = c, .lora = lora, .trains = lora != NULL, .kernels = k, .pool = pool},
            &opened, &e),
        &e);
    return opened;
}

static void config_of_a_model(void **state)
{
    const struct model_config other = {.rope_theta = 123, .max_position_embeddings = 77};
    (void)state;
    m = open_model(NULL, &other);
    m->folder[0] = 0; /* generation_config.json is generated, not copied */
    m->n_eos = 2;
    m->eos[1] = 3;
    every_call(write_config, 10);
    model_free(m);
}

static tare_status write_adapter(struct str *out, struct err *e)
{
    TRY(adapter_write(m, folder, DTYPE_F32, e));
    add_file(out, "adapter_config.json");
    add_file(out, "base.json");
    return TARE_OK;
}

static void configs_of_an_adapter(void **state)
{
    const struct lora_spec spec = {.rank = 2, .alpha = 4, .targets = LORA_ALL};
    const struct model_config c = {0};
    (void)state;
    m = open_model(&spec, &c);
    every_call(write_adapter, 40);
    model_free(m);
}

static tare_status write_tokenizer(struct str *out, struct err *e)
{
    TRY(tokenizer_write_bytes(folder, e));
    add_file(out, "tokenizer.json");
    add_file(out, "tokenizer_config.json");
    return TARE_OK;
}

static void tokenizer_of_bytes(void **state)
{
    (void)state;
    every_call(write_tokenizer, 500);
}

static const char *previous;

static tare_status write_manifest(struct str *out, struct err *e)
{
    static const struct manifest_plugin PLUGINS[] = {{"estimator", "grpo", "1", "/a/grpo.so", 1, NULL},
                                                     {"verifier", "exact", "1", "/b/exact.so", 2, NULL}};
    OWNED(json_decrefp) json_t *models = NULL;
    memory.off = true;
    models = json_pack("{s:{s:s}}", "model.path", "path", "/c");
    memory.off = false;
    const struct manifest x = {
        .kernels = "avx2", .threads = 2, .ranks = 1, .plugins = PLUGINS, .n_plugins = 2, .model = "base", .models = models};
    TRY(manifest_print(&x, previous, 4, out, e));
    char *started = out->data; /* the clock of each process advances meanwhile */
    while ((started = strstr(started, "\"started\": \""))) memset(started += 12, 'x', 20);
    return TARE_OK;
}

static void a_manifest(void **state)
{
    (void)state;
    previous = NULL;
    every_call(write_manifest, 60);
    previous = "{\"tare\": \"0\", \"kept\": [1, 2]}";
    every_call(write_manifest, 60);
    previous = "{\"tare\": \"0\", \"resumed\": [{\"step\": 1}]}";
    every_call(write_manifest, 60);
}

static struct chat *chat;
static json_t *messages;

static tare_status render_text(struct str *out, struct err *e)
{
    return chat_render(chat, messages, true, NULL, out, e);
}

static void a_chat(void **state)
{
    static const char TEMPLATE[] =
        "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}{{ tools is none }}",
                      CONFIG[] = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}";
    char path[FS_PATH], config[FS_PATH];
    struct err e = {0};
    (void)state;
    assert_ok(fs_join(path, folder, "chat_template.jinja", &e), &e);
    assert_ok(fs_write_atomic(path, TEMPLATE, sizeof TEMPLATE - 1, &e), &e);
    assert_ok(fs_join(config, folder, "tokenizer_config.json", &e), &e);
    assert_ok(fs_write_atomic(config, CONFIG, sizeof CONFIG - 1, &e), &e);
    assert_ok(chat_load(folder, NULL, &chat, &e), &e);
    messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "hello");
    every_call(render_text, 5);
    json_decref(messages);
    chat_free(chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(config_of_a_model), cmocka_unit_test(configs_of_an_adapter),
                                       cmocka_unit_test(tokenizer_of_bytes), cmocka_unit_test(a_manifest),
                                       cmocka_unit_test(a_chat)};
    return cmocka_run_group_tests(tests, open_folder, remove_folder);
}
