/* Tool calls in the text of an act, in the syntax of the model's family:
 *
 *   hermes   <tool_call>{"name": "f", "arguments": {...}}</tool_call>        Hermes, Qwen 2.5, Qwen 3
 *   llama    the whole act is {"name": "f", "parameters": {...}}             Llama 3.1 and later
 *   xml      <tool_call><function=f><parameter=k>value</parameter></function></tool_call>
 *                                                                      Qwen3-Coder, Qwen 3.5
 *
 * Calls that cannot be read are counted, not repaired. Text within a thought (CHAT_THOUGHTS)
 * calls nothing. */
#ifndef TARE_CORE_EPISODES_CALLS_H
#define TARE_CORE_EPISODES_CALLS_H

#include "base/arena.h"
#include "base/json.h"
#include "config/choices.h"

#include <tare/draft/environment.h>

struct calls {
    const tare_call *const *call; /* [n] arguments: a JSON object */
    int64_t n, n_unparsed;
};

struct call_reader {
    enum call_syntax syntax; /* CALLS_HERMES, CALLS_LLAMA or CALLS_XML */
    bool in_thought;         /* the prompt has opened a thought */
    const json_t *tools;     /* a list of schemas, which give the types of xml's values, or NULL */
};
/* Memory is of the arena. */
tare_status calls_read(struct call_reader by, tare_text act, struct arena *a, struct calls *out, struct err *e);

#endif
