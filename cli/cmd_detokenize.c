/* tare detokenize MODEL [skip_special=true]: {"ids"} -> {"text"}, line by line. */
#include "base/json.h"
#include "cli/cli.h"
#include "data/tokenizer.h"

#include <string.h>

struct detokenizing {
    struct tokenizer *tokenizer;
    struct token_ids ids;
    struct str text, line;
    bool skip_special;
};

static tare_status read_ids(struct detokenizing *k, const json_t *object, const char *where, struct err *e)
{
    const json_t *list = json_object_get(object, "ids"), *v;
    size_t i;
    if (!json_is_array(list)) FAIL(e, TARE_E_INVALID, "%s: \"ids\" must be a list", where);
    k->ids.n = 0;
    json_array_foreach(list, i, v)
    {
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id > INT32_MAX) FAIL(e, TARE_E_INVALID, "%s: \"ids\"[%zu]: must be the id of a token", where, i);
        TRY(token_ids_add(&k->ids, (int32_t)id, e));
    }
    return TARE_OK;
}

static tare_status detokenize_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct detokenizing *k = ctx;
    TRY(read_ids(k, object, where, e));
    str_clear(&k->text);
    str_clear(&k->line);
    TRY(tokenizer_decode(k->tokenizer, k->ids.data, k->ids.n, k->skip_special, &k->text, e));
    OWNED(json_decrefp) json_t *out = json_pack("{s:o}", "text", json_stringn(k->text.data, (size_t)k->text.size));
    if (!out) FAIL(e, TARE_E_NOMEM, "%s: no memory for the text", where);
    TRY(json_print(out, &k->line, e));
    TRY(str_add(&k->line, "\n", 1, e));
    return cli_print(&k->line, e);
}

const char detokenize_usage[] =
    "usage: tare detokenize MODEL [skip_special=true]\n"
    "Reads {\"ids\":[...]} and writes {\"text\"}, line by line. Bytes that are not UTF-8 become U+FFFD.\n";

static void detokenizing_free(struct detokenizing *k)
{
    token_ids_free(&k->ids);
    str_free(&k->text);
    str_free(&k->line);
    tokenizer_free(k->tokenizer);
}

int cmd_detokenize(int argc, char **argv)
{
    OWNED(detokenizing_free) struct detokenizing k = {0};
    k.skip_special = argc == 3 && !strcmp(argv[2], "skip_special=true");
    if (argc < 2 || argv[1][0] == '-' || argc > 3 || (argc == 3 && !k.skip_special && strcmp(argv[2], "skip_special=false") != 0))
        return cli_usage(detokenize_usage);
    struct err e = {0};
    tare_status status = cli_tokenizer(argv[1], &k.tokenizer, &e);
    if (!status) status = json_each_line(stdin, "standard input", detokenize_line, &k, &e);
    return cli_end(status, &e);
}
