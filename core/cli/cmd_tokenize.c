/* tare tokenize MODEL: {"text"} -> {"ids"}, line by line. */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "data/tokenizer.h"
#include "model/adapter.h"
#include "settle/settle.h"

#include <errno.h>
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
    if (fwrite(k->line.data, 1, (size_t)k->line.size, stdout) != (size_t)k->line.size || fflush(stdout))
        FAIL(e, TARE_E_IO, "standard output cannot be written: %s", strerror(errno));
    return TARE_OK;
}

const char tokenize_usage[] =
    "usage: tare tokenize MODEL   reads {\"text\"}, writes {\"ids\"}; MODEL is a folder with tokenizer.json\n";

int cmd_tokenize(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') return cli_usage(tokenize_usage);
    struct err e = {0};
    struct tokenizing k = {0};
    char given[FS_PATH], folder[FS_PATH];
    tare_status status = settle_model(argv[1], given, &e);
    if (!status) status = adapter_tokenizer(given, NULL, folder, &e);
    if (!status) status = tokenizer_load(folder, &k.tokenizer, &e);
    if (!status) status = json_each_line(stdin, "standard input", tokenize_line, &k, &e);
    if (status) log_error(&e);
    token_ids_free(&k.ids);
    str_free(&k.line);
    tokenizer_free(k.tokenizer);
    return status ? err_exit_code(status) : 0;
}
