"""Greedy decoding by llama.cpp, all sequences in one call per token: llamacpp_generate.py FILE.gguf DTYPE BATCH LENGTH NEW THREADS
DTYPE must be the file's. Prints {"rate": new tokens per second after the prompt, without the selection of tokens (by numpy)}."""
import ctypes
import json
import sys
import time

import llama_cpp as llama
import numpy as np

path, _, batch, length, new, threads = sys.argv[1:3] + [int(x) for x in sys.argv[3:]]
quiet = llama.llama_log_callback(lambda *_: None)
llama.llama_log_set(quiet, ctypes.c_void_p(0))
llama.llama_backend_init()
model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
params = llama.llama_context_default_params()
params.n_ctx = batch * (length + new + 64)
params.n_batch = max(512, batch * length)
params.n_seq_max = batch
params.n_threads = params.n_threads_batch = threads
if hasattr(params, "kv_unified"):
    params.kv_unified = False
context = llama.llama_init_from_model(model, params)
vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model))
tokens = np.random.default_rng(0).integers(100, vocab - 1, (batch, length))
work = llama.llama_batch_init(max(batch * length, batch), 0, 1)


def decode(rows):
    work.n_tokens = len(rows)
    for i, (token, position, sequence, wanted) in enumerate(rows):
        work.token[i], work.pos[i], work.n_seq_id[i], work.logits[i] = int(token), position, 1, wanted
        work.seq_id[i][0] = sequence
    began = time.perf_counter()
    if llama.llama_decode(context, work):
        sys.exit("llama_decode failed")
    return time.perf_counter() - began


def choose(indices):
    return [int(np.argmax(np.ctypeslib.as_array(llama.llama_get_logits_ith(context, i), (vocab,)))) for i in indices]


rates = []
for _ in range(3):
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    decode([(tokens[b, p], p, b, p == length - 1) for b in range(batch) for p in range(length)])
    last = choose(b * length + length - 1 for b in range(batch))
    seconds = 0.0
    for step in range(new - 1):
        seconds += decode([(last[b], length + step, b, 1) for b in range(batch)])
        last = choose(range(batch))
    rates.append(batch * (new - 1) / seconds)
print(json.dumps({"rate": sorted(rates[1:])[-1]}))
