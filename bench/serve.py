"""Compares the throughput of `tare serve` at 1, 8 and 32 clients with one call of `tare generate` for the same prompts, alternating.

    python3 bench/serve.py build/tare MODEL [TOKENS=32] [ROUNDS=3]

There are 32 prompts, each with TOKENS new tokens, ignoring ends of sequence. A client sends one prompt after another. Prints new tokens per
second (the median of the rounds, with minimum and maximum) and the ratio to `tare generate`; the texts must be equal."""
import concurrent.futures
import http.client
import json
import statistics
import subprocess
import sys
import time

TARE, MODEL = sys.argv[1:3]
TOKENS, ROUNDS = (int(x) for x in (sys.argv[3:] + ["32", "3"][len(sys.argv) - 3:]))
PROMPTS = [f"Question {i}: what is {i} times {i + 7}? Answer:" for i in range(32)]


def generate():
    lines = "".join(json.dumps({"text": p}) + "\n" for p in PROMPTS)
    out = subprocess.run([TARE, "-q", "generate", MODEL, "--stats", "group_size=1", "temperature=0", "ignore_eos=true", "batch=32",
                          f"max_new_tokens={TOKENS}"], input=lines, capture_output=True, text=True, check=True)
    return json.loads(out.stderr)["seconds"], [json.loads(x)["completion"] for x in out.stdout.splitlines()]


def ask(address, prompt):
    c = http.client.HTTPConnection(address, timeout=600)
    body = {"model": "m", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "ignore_eos": True}
    c.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(c.getresponse().read())
    c.close()
    return answer["choices"][0]["text"]


def serve(address, clients):
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        began = time.monotonic()
        texts = list(pool.map(lambda p: ask(address, p), PROMPTS))
        return time.monotonic() - began, texts


def main():
    server = subprocess.Popen([TARE, "-q", "serve", "m=" + MODEL, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split("http://")[1].split("/")[0]
        ways = {"tare generate": generate, **{f"{n} clients": lambda n=n: serve(address, n) for n in (1, 8, 32)}}
        speeds, first = {name: [] for name in ways}, None
        for _ in range(ROUNDS):
            for name, way in ways.items():
                seconds, texts = way()
                first = first or texts
                assert texts == first, name
                speeds[name].append(len(PROMPTS) * TOKENS / seconds)
        whole = statistics.median(speeds["tare generate"])
        for name, s in speeds.items():
            print(f"{name:14} {statistics.median(s):8.1f} tokens/s ({min(s):.1f} to {max(s):.1f})   {statistics.median(s) / whole:.2f}")
    finally:
        server.terminate()
        server.wait()


main()
