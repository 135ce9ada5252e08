"""Tests common clients against `tare serve`: the openai package, and lm-evaluation-harness with its local-completions.

    python3 -m venv venv && venv/bin/pip install openai "lm-eval[api]" transformers
    venv/bin/python bench/serve_clients.py build/tare MODEL [openai] [lm_eval]

MODEL is a folder with a tokenizer. If packages are named, only those run. The part of a missing package is skipped with a message. Greedy
answers are compared with those of `tare generate`, the harness's loglikelihoods with `tare score`."""
import asyncio
import json
import subprocess
import sys

TARE, MODEL = sys.argv[1:3]
QUESTIONS = ["7 * 6 =", "The capital of France is", "1, 2, 3,", "def add(a, b):", "éléphant", "漢字"]
CHOICES = [" 42", " Paris", " 4, 5", "\n    return a + b", " est", " kanji"]


def tare(verb, lines, *arguments):
    text = "".join(json.dumps(x) + "\n" for x in lines)
    out = subprocess.run([TARE, "-q", verb, MODEL, *(["group_size=1"] if verb == "generate" else []), *arguments], input=text, capture_output=True, text=True, check=True)
    return [json.loads(x) for x in out.stdout.splitlines()]


def with_openai(url):
    import openai
    client = openai.OpenAI(base_url=url, api_key="none")
    assert [m.id for m in client.models.list()] == ["m"]
    wanted = [x["completion"] for x in tare("generate", [{"text": q} for q in QUESTIONS], "temperature=0", "max_new_tokens=24")]
    got = client.completions.create(model="m", prompt=QUESTIONS, temperature=0, max_tokens=24, logprobs=3)
    assert [c.text for c in got.choices] == wanted, ([c.text for c in got.choices], wanted)
    assert all(len(c.logprobs.tokens) == len(c.logprobs.token_logprobs) == len(c.logprobs.top_logprobs) for c in got.choices)
    messages = [{"role": "user", "content": "What is 7 times 6?"}]
    body = dict(model="m", messages=messages, temperature=0, max_tokens=24)
    try:
        whole = client.chat.completions.create(**body, logprobs=True, top_logprobs=2)
    except openai.BadRequestError as e:
        assert e.code == "no_chat_template", e
        print("openai: the model has no chat template, so chat is left out")
    else:
        wanted = tare("generate", [{"messages": messages}], "temperature=0", "max_new_tokens=24")[0]["completion"]
        assert whole.choices[0].message.content == wanted
        parts = client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True})
        chunks = list(parts)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == wanted
        assert chunks[-1].usage == whole.usage

    async def together():
        several = openai.AsyncOpenAI(base_url=url, api_key="none")
        asked = [several.completions.create(model="m", prompt=q, seed=i, max_tokens=24, n=2) for i, q in enumerate(QUESTIONS * 5)]
        return await asyncio.gather(*asked)

    for i, answer in enumerate(asyncio.run(together())):
        alone = client.completions.create(model="m", prompt=QUESTIONS[i % len(QUESTIONS)], seed=i, max_tokens=24, n=2)
        assert [c.text for c in answer.choices] == [c.text for c in alone.choices], i
    for bad, kind in (({"model": "none"}, openai.NotFoundError), ({"temperature": -1}, openai.BadRequestError)):
        try:
            client.completions.create(**{"model": "m", "prompt": "x", **bad})
        except kind:
            continue
        raise AssertionError(bad)
    return f"openai {openai.__version__}: completions, chat, a stream, 30 requests at once, errors"


def with_harness(url):
    import importlib.metadata
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    from lm_eval.api.instance import Instance
    lm = LocalCompletionsAPI(model="m", base_url=url + "/completions", tokenizer=MODEL, tokenizer_backend="huggingface", num_concurrent=4,
                             max_retries=1)
    pairs = [(q, c) for q in QUESTIONS for c in CHOICES]
    got = lm.loglikelihood([Instance("loglikelihood", {}, p, i) for i, p in enumerate(pairs)])
    worst = 0
    for (question, choice), (logprob, greedy) in zip(pairs, got):
        whole, context = (tare("tokenize", [{"text": t}])[0]["ids"] for t in (question + choice, question))
        scored = tare("score", [{"ids": whole}])[0]["logprobs"]
        worst = max(worst, abs(logprob - sum(scored[len(context) - 1:])))
    assert worst < 1e-4, worst
    wanted = [x["completion"] for x in tare("generate", [{"text": q} for q in QUESTIONS], "temperature=0", "max_new_tokens=16")]
    asked = [Instance("generate_until", {}, (q, {"until": [], "max_gen_toks": 16, "temperature": 0}), i) for i, q in enumerate(QUESTIONS)]
    assert lm.generate_until(asked) == wanted
    version = importlib.metadata.version("lm_eval")
    return f"lm-eval {version}: {len(pairs)} loglikelihoods within {worst:.1e} of tare score's, greedy texts equal"


def main():
    server = subprocess.Popen([TARE, "serve", "m=" + MODEL, "--port", "0"], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().split(" at ")[1].strip()
    try:
        return clients(url)
    finally:
        server.terminate()
        server.wait()


def clients(url):
    for part, package in ((with_openai, "openai"), (with_harness, "lm_eval")):
        if sys.argv[3:] and package not in sys.argv[3:]:
            continue
        try:
            __import__(package)
        except ImportError:
            print(f"{package}: not installed, left out")
            continue
        print(part(url), flush=True)
    return 0


sys.exit(main())
