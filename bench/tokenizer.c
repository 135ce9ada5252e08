/* Encodes a file's texts (split at blank lines) six times, prints the seconds of the fastest pass
 * and writes the ids as int32.
 *   cc -O2 -Icore -Isdk/include bench/tokenizer.c build/libtare_data.a build/libtare_base.a \
 *      -ljansson -lpcre2-8 -lutf8proc -lxxhash -lm
 * Used by bench/tokenizer.py. */
#include "data/tokenizer.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#include <string.h>

static tare_status encode_all(const struct tokenizer *t, const struct str *text, struct token_ids *ids, struct err *e)
{
    const char *p = text->data, *end = p + text->size;
    for (;;) {
        const char *cut = strstr(p, "\n\n");
        TRY(tokenizer_encode(t, p, (cut ? cut : end) - p, ids, e));
        if (!cut) return TARE_OK;
        p = cut + 2;
    }
}

static tare_status run(char **argv, struct err *e)
{
    struct tokenizer *t = NULL;
    OWNED(str_free) struct str text = {0};
    OWNED(token_ids_free) struct token_ids ids = {0};
    double best = 1e30;
    TRY(tokenizer_load(argv[1], &t, e));
    TRY(fs_read_all(argv[2], &text, e));
    for (int pass = 0; pass < 6; pass++) {
        ids.n = 0;
        const double begin = clock_seconds();
        TRY(encode_all(t, &text, &ids, e));
        const double seconds = clock_seconds() - begin;
        if (seconds < best) best = seconds;
    }
    TRY(fs_write_atomic(argv[3], ids.data, ids.n * (int64_t)sizeof *ids.data, e));
    printf("%.6f\n", best);
    tokenizer_free(t);
    return TARE_OK;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    if (argc != 4) return fputs("usage: tokenizer FOLDER TEXT IDS\n", stderr), 2;
    if (run(argv, &e)) return log_error(&e), 1;
    return 0;
}
