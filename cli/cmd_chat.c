/* tare chat MODEL [template=FILE]: {"messages","add_generation_prompt"} -> {"text"}, line by line.
 */
#include "base/fs.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "model/adapter.h"
#include "settle/settle.h"
#include "template/chat.h"

#include <string.h>

struct chatting {
    struct chat *chat;
    struct str text, line, kwargs;
};

static tare_status chat_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct chatting *k = ctx;
    const json_t *messages = json_object_get(object, "messages"), *prompt = json_object_get(object, "add_generation_prompt");
    if (!json_is_array(messages)) FAIL(e, TARE_E_INVALID, "%s: \"messages\" must be a list", where);
    if (prompt && !json_is_boolean(prompt)) FAIL(e, TARE_E_INVALID, "%s: \"add_generation_prompt\" must be true or false", where);
    OWNED(json_decrefp)
    /* tools, documents and other members are variables of the template */
    json_t *extra = json_copy((json_t *)object);
    if (!extra) FAIL(e, TARE_E_NOMEM, "%s: no memory", where);
    const bool on = json_is_true(json_object_get(object, "continue_final_message"));
    const json_t *kwargs = json_object_get(object, "chat_template_kwargs");
    if (on && json_is_true(prompt))
        FAIL(e, TARE_E_INVALID, "%s: \"continue_final_message\" and \"add_generation_prompt\" cannot both be true", where);
    if (kwargs && json_is_object(kwargs) && json_object_update(extra, (json_t *)(uintptr_t)kwargs))
        FAIL(e, TARE_E_NOMEM, "%s: no memory", where);
    static const char *const OWN[] = {"messages", "add_generation_prompt", "continue_final_message", "chat_template_kwargs"};
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++) json_object_del(extra, OWN[i]);
    str_clear(&k->text);
    str_clear(&k->line);
    if (on ? chat_continue(k->chat, messages, extra, &k->text, e)
           : chat_render(k->chat, messages, json_is_true(prompt), extra, &k->text, e))
        return err_prefix(e, "%s", where);
    OWNED(json_decrefp) json_t *out = json_pack("{s:o}", "text", json_stringn(k->text.data, (size_t)k->text.size));
    if (!out) FAIL(e, TARE_E_NOMEM, "%s: no memory for the text", where);
    TRY(json_print(out, &k->line, e));
    TRY(str_add(&k->line, "\n", 1, e));
    return cli_print(&k->line, e);
}

const char chat_usage[] =
    "usage: tare chat MODEL [template=FILE]\n"
    "Reads {\"messages\":[...],\"add_generation_prompt\":true} (or \"continue_final_message\":true) and writes {\"text\"}, line by line.\n"
    "Other members, and those of \"chat_template_kwargs\", are variables of the template. MODEL is a Hugging Face folder, or\n"
    "the folder of a run, whose data.chat_template applies unless template= is given.\n";

/* Finds the chat template and its variables that a run's configuration names; "" if none, or if
 * MODEL is not a run. */
static tare_status template_of_run(const char *model, char *file, struct str *kwargs, struct err *e)
{
    char path[FS_PATH];
    OWNED(config_free) struct config c = {0};
    file[0] = 0;
    TRY(fs_join(path, model, "config.ini", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(config_load(&c, path, NULL, 0, e));
    snprintf(file, FS_PATH, "%s", c.data.chat_template);
    return str_add(kwargs, c.data.chat_template_kwargs, -1, e);
}

static void chatting_free(struct chatting *k)
{
    str_free(&k->text);
    str_free(&k->line);
    str_free(&k->kwargs);
    chat_free(k->chat);
}

int cmd_chat(int argc, char **argv)
{
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || (argc == 3 && strncmp(argv[2], "template=", 9) != 0))
        return cli_usage(chat_usage);
    struct err e = {0};
    OWNED(chatting_free) struct chatting k = {0};
    char given[FS_PATH], folder[FS_PATH], file[FS_PATH] = "";
    tare_status status = settle_model(argv[1], given, &e);
    if (!status) status = adapter_tokenizer(given, NULL, folder, &e);
    if (!status) status = checkpoint_check_texts(folder, &e);
    if (!status && argc < 3) status = template_of_run(argv[1], file, &k.kwargs, &e);
    if (!status) status = chat_load(folder, argc == 3 ? argv[2] + 9 : *file ? file : NULL, &k.chat, &e);
    if (!status) status = chat_set_kwargs(k.chat, k.kwargs.data, &e);
    if (!status) status = json_each_line(stdin, "standard input", chat_line, &k, &e);
    return cli_end(status, &e);
}
