/* Validates every cell's inputs before the first run, so that a bad path in the last cell is not
 * found hours later. */
#include "sweep/sweep.h"

#include <string.h>

/* Hashes the keys that decide which files a cell reads and which plugins it opens. Of cells with
 * equal hashes, only one is checked in full. */
static uint64_t hash_read(const struct config *c)
{
    const char *const paths[] = {c->model.path,           c->model.base,       c->model.reference,
                                 c->model.warm_start,     c->data.train,       c->data.eval,
                                 c->data.chat_template,   c->eval.difficulty,  c->eval.complex_rules,
                                 c->process_reward.model, c->verifier.plugins, c->run.plugins};
    const bool wants[] = {c->loss.kl_coef > 0, c->process_reward.implicit};
    uint64_t h = fs_hash(wants, sizeof wants, (uint64_t)c->data.limit + 31 * (uint64_t)c->eval.rows);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) h = fs_hash(paths[i], (int64_t)strlen(paths[i]) + 1, h);
    return h;
}

tare_status sweep_check_cells(struct sweep *s, int64_t first, int64_t end, sweep_check check, struct err *e)
{
    uint64_t *seen;
    int64_t n = 0;
    if (!check) return TARE_OK;
    TRY(arena_new(&s->arena, &seen, end - first, e));
    for (int64_t i = first; i < end; i++) {
        OWNED(config_free) struct config c = {0};
        if (s->jobs[i].state != SWEEP_PENDING) continue; /* finished cells need no check */
        TRY(sweep_load_cell(s, i, &c, e));
        const uint64_t h = hash_read(&c);
        int64_t at = 0;
        while (at < n && seen[at] != h) at++;
        const bool met = at < n;
        if (!met) seen[n++] = h;
        if (check(&c, met, e)) return sweep_name_cell(s, i, e);
    }
    return TARE_OK;
}
