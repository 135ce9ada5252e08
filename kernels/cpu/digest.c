/* Digests (definition: ref/digest.c). A task is a run of words; their digests may be added in any
 * order. */
enum { DIGEST_RUN = 1 << 16 }; /* words */

struct digest_args {
    const struct op_digest *o;
    uint64_t *sums;
};

static uint64_t digest_words(const uint32_t *word, int64_t n, uint64_t first)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += digest_word(word[i], first + (uint64_t)i);
    return sum;
}

static void digest_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct digest_args *a = arg;
    const int64_t words = a->o->bytes / 4;
    for (int64_t run = begin; run < end; run++) {
        const int64_t at = run * DIGEST_RUN, n = words - at < DIGEST_RUN ? words - at : DIGEST_RUN;
        a->sums[run] = digest_words((const uint32_t *)a->o->data + at, n, (uint64_t)(a->o->first + at));
    }
}

static void cpu_digest(const struct kctx *c, const struct op_digest *o)
{
    const int64_t words = o->bytes / 4, tail = o->bytes % 4, runs = (words + DIGEST_RUN - 1) / DIGEST_RUN;
    const struct digest_args a = {o, scratch(c, 2 * runs + 2)};
    uint32_t last = 0;
    if (!a.sums) return;
    spans(c, runs, DIGEST_RUN, 1, digest_run, &a);
    for (int64_t run = 0; run < runs; run++) *o->out += a.sums[run];
    memcpy(&last, (const char *)o->data + 4 * words, (size_t)tail);
    if (tail) *o->out += digest_word(last, (uint64_t)(o->first + words));
    arena_reset(c->scratch);
}
