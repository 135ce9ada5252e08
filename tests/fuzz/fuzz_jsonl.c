/* libFuzzer target: untrusted data files are loaded and checked. */
#include "data/dataset.h"
#include "memory_file.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fields of rows, in accepted forms and in some that are refused. */
static const char *const ROW_PARTS[] = {
    "{\"question\":\"1+1=\",\"answer\":\"2\"}",
    "{\"prompt\":\"p\",\"answer\":7,\"completion\":\"c\",\"reward\":1}",
    "{\"prompt\":[{\"role\":\"user\",\"content\":\"p\"}],\"answer\":\"a\"}",
    "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"}],\"answer\":\"a\"}",
    "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"r\"}]}",
    "{\"question\":\"q\",\"choices\":[\"x\",\"y\",\"z\"],\"answer\":\"B\"}",
    "{\"question\":\"q\",\"choices\":[\"x\",\"y\"],\"answer\":1}",
    "{\"question\":\"q\",\"choices\":{\"text\":[\"x\",\"y\"],\"label\":[\"A\",\"B\"]},\"answer\":\"y\"}",
    "{\"id\":\"a\",\"level\":\"Level 5\",\"subject\":\"s\"}",
    "{\"id\":7,\"level\":3,\"subject\":\"\"}",
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}",
    "{\"role\":\"user\",\"content\":\"\"}",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\u2028\"",
    "\"A\"",
    "\"a\"",
    "\"Level 5\"",
    "\"user\"",
    "[]",
    "{}",
    "null",
    "true",
    "0",
    "-1",
    "0.10",
    "1.0",
};

static tare_status quiet(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    (void)ctx, (void)where, (void)id, (void)e;
    return *reason ? TARE_OK : TARE_E_GENERIC;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dataset d;
    struct err e = {0}, unused = {0};
    struct dataset_check check = {.report = quiet};
    struct memory_file file = memory_file();
    memory_file_add(&file, data, size);
    const tare_status status = dataset_load(file.path, 0, &d, &e);
    if (dataset_check(file.path, &check, &unused) == TARE_E_GENERIC) abort();
    if (!status) {
        for (int64_t i = 0; i < d.n; i++)
            if (!d.rows[i].question.size || str_utf8_error(d.rows[i].question.data, d.rows[i].question.size)) abort();
        dataset_free(&d);
    }
    memory_file_close(&file);
    return 0;
}

static size_t change_row(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    const struct parts parts = PARTS(ROW_PARTS);
    return mutate_json(part, n, room, &parts, c);
}

/* Writes the line twice, or a new one before it. */
static size_t add_row(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    const char *text = ROW_PARTS[chance_below(c, 8)];
    const size_t more = chance_below(c, 2) ? n : strlen(text);
    if (n + more + 1 > room) return n;
    memmove(part + more + 1, part, n);
    if (more != n || !n) memcpy(part, text, more);
    part[more] = '\n';
    return n + more + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct chance c;
    size_t lines = 1;
    chance_begin(&c, seed);
    if (chance_below(&c, 6) == 0) return LLVMFuzzerMutate(data, size, max_size);
    for (size_t i = 0; i < size; i++) lines += data[i] == '\n';
    struct span row = {data, size, max_size, 0, 0};
    for (size_t wanted = chance_below(&c, lines); wanted; row.begin++) wanted -= data[row.begin] == '\n';
    while (row.begin + row.n < size && data[row.begin + row.n] != '\n') row.n++;
    return mutate_span(&row, chance_below(&c, 8) ? change_row : add_row, &c);
}
