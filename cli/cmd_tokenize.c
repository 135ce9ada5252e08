/* tare tokenize MODEL: {"text"} -> {"ids"}, line by line. */
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "data/tokenizer.h"
#include "model/adapter.h"
#include "settle/settle.h"

#include <string.h>

struct tokenizing {
    struct tokenizer *tokenizer;
    struct token_ids ids;
    struct str line;
};

static tare_status tokenize_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct tokenizing *k = ctx;
    tare_text text;
    TRY(json_get_text(object, "text", where, &text, e));
    k->ids.n = 0;
    str_clear(&k->line);
    if (tokenizer_encode(k->tokenizer, text.data, text.size, &k->ids, e)) return err_prefix(e, "%s", where);
    TRY(str_add(&k->line, "{\"ids\":[", -1, e));
    for (int64_t i = 0; i < k->ids.n; i++) TRY(str_addf(&k->line, e, i ? ",%d" : "%d", k->ids.data[i]));
    TRY(str_add(&k->line, "]}\n", -1, e));
    return cli_print(&k->line, e);
}

const char tokenize_usage[] = "usage: tare tokenize MODEL\n"
                              "Reads {\"text\"} and writes {\"ids\"}, line by line. MODEL is a folder with tokenizer.json.\n";

tare_status cli_tokenizer(const char *model, struct tokenizer **out, struct err *e)
{
    char given[FS_PATH], folder[FS_PATH];
    TRY(settle_model(model, given, e));
    TRY(adapter_tokenizer(given, NULL, folder, e));
    TRY(checkpoint_check_texts(folder, e));
    return tokenizer_load(folder, out, e);
}

static void tokenizing_free(struct tokenizing *k)
{
    token_ids_free(&k->ids);
    str_free(&k->line);
    tokenizer_free(k->tokenizer);
}

int cmd_tokenize(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') return cli_usage(tokenize_usage);
    struct err e = {0};
    OWNED(tokenizing_free) struct tokenizing k = {0};
    tare_status status = cli_tokenizer(argv[1], &k.tokenizer, &e);
    if (!status) status = json_each_line(stdin, "standard input", tokenize_line, &k, &e);
    return cli_end(status, &e);
}
