/* The completion in a row of the data set: a trace (luffy.c) or a demonstration (relift.c). */
#include "loop/row_completion.h"

tare_status row_completion_encode(const struct run *r, const struct row *row, int64_t prompt, struct token_ids *out, struct err *e)
{
    const int64_t begin = out->n;
    int32_t end;
    TRY(tokenizer_encode(r->engine.tokenizer, row->completion.data, row->completion.size, out, e));
    TRY(engine_end_id(&r->engine, &end, e));
    TRY(token_ids_add(out, end, e));
    const int64_t n = out->n - begin, most = r->config->rollout.max_new_tokens;
    if (n > most || prompt + n > r->engine.model->shape.max_position)
        FAIL(
            e, TARE_E_RANGE,
            "%s: the completion has %lld tokens; rollout.max_new_tokens is %lld, the context %lld. `tare data check FILE model=FOLDER max_tokens=N write=OUT` drops such rows",
            row->where, (long long)n, (long long)most, (long long)r->engine.model->shape.max_position);
    return TARE_OK;
}
