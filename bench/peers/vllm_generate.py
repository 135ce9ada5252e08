"""Decoding by vLLM on the CPU: vllm_generate.py MODEL DTYPE BATCH LENGTH NEW THREADS
Prints {"rate": new tokens per second, from the time of NEW tokens minus that of one}."""
import json
import os
import random
import sys
import time

path, dtype, batch, length, new, threads = sys.argv[1:3] + [int(x) for x in sys.argv[3:]]
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "4")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def main():
    from vllm import LLM, SamplingParams
    model = LLM(model=path, dtype=dtype, max_model_len=512, max_num_seqs=batch, enable_prefix_caching=False, disable_log_stats=True)
    draw = random.Random(0)
    prompts = [{"prompt_token_ids": [draw.randrange(100, 49000) for _ in range(length)]} for _ in range(batch)]

    def timed(n):
        began = time.perf_counter()
        model.generate(prompts, SamplingParams(temperature=1.0, max_tokens=n, min_tokens=n, ignore_eos=True, detokenize=False), use_tqdm=False)
        return time.perf_counter() - began

    timed(4)
    print(json.dumps({"rate": batch * (new - 1) / max(1e-9, min(timed(new) for _ in range(2)) - min(timed(1) for _ in range(2)))}))


if __name__ == "__main__":
    main()
