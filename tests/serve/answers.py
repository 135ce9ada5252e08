"""Checks the answers of `tare serve`: the tokens are those of `tare generate`, alone or among others, complete or as a stream."""
import concurrent.futures
import json
import os
import shutil
import subprocess

from client import Server, run, tare

PROMPTS = ["1+1=", "The quick brown fox", "é and 漢字", "a", "What is 7 times 6? " * 3]
TARE = os.environ["TARE"]


def test_as_generate():
    for temperature, seed in ((0, 0), (1, 0), (0.7, 5)):
        wanted = tare("generate", [{"text": p} for p in PROMPTS], f"temperature={temperature}", f"seed={seed}", "group_size=3",
                      "max_new_tokens=20")
        with Server("tiny=model") as s:
            got = s.complete(prompt=PROMPTS, temperature=temperature, seed=seed, n=3, max_tokens=20, logprobs=0, return_token_ids=True)
        assert len(got["choices"]) == len(wanted) == 3 * len(PROMPTS)
        for i, (w, g) in enumerate(zip(wanted, got["choices"])):
            assert g["index"] == i and g["text"] == w["completion"], (w, g)
            assert g["token_ids"] == w["ids"] and g["finish_reason"] == w["finish"], (w, g)
            assert g["logprobs"]["token_logprobs"] == w["logprobs"], (w, g)
        assert got["usage"]["completion_tokens"] == sum(len(w["ids"]) for w in wanted)


def test_int8_as_generate():
    wanted = [tare("generate", [{"text": "1+1="}], f"weights={w}", "temperature=0", "group_size=1", "max_new_tokens=8")[0] for w in ("int8", "dtype")]
    with Server("tiny=model", "model.weights=int8") as s:
        got = s.complete(prompt="1+1=", temperature=0, max_tokens=8, logprobs=0)["choices"][0]
    assert got["logprobs"]["token_logprobs"] == wanted[0]["logprobs"] != wanted[1]["logprobs"], (got, wanted)


def test_chat_as_generate():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2+3?"}]
    wanted = tare("generate", [{"messages": messages}], "temperature=1", "seed=3", "max_new_tokens=12")[0]
    parts = [messages[0], {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2+3?"}]}]
    with Server("tiny=model") as s:
        for given in (messages, parts):
            got = s.chat(messages=given, temperature=1, seed=3, max_tokens=12, logprobs=True, top_logprobs=2, return_token_ids=True)
            choice = got["choices"][0]
            assert got["object"] == "chat.completion" and choice["message"]["role"] == "assistant"
            assert choice["message"]["content"] == wanted["completion"] and choice["token_ids"] == wanted["ids"], (wanted, choice)
            content = choice["logprobs"]["content"]
            assert [t["logprob"] for t in content] == wanted["logprobs"]
            assert all(len(t["top_logprobs"]) == 2 and t["top_logprobs"][0]["logprob"] >= t["top_logprobs"][1]["logprob"] for t in content)
            assert [bytes(t["bytes"]) for t in content if len(t["bytes"]) == 1] == [bytes([i]) for i in wanted["ids"] if i < 256]
    with Server("tiny=model", "model.max_position_embeddings=150") as s:
        # Up to the end of the context.
        assert s.chat(messages=messages, ignore_eos=True)["usage"]["total_tokens"] == 150


def test_prompt_logprobs():
    """echo: the logprobs of the prompt's tokens equal those of `tare score`, as lm-evaluation-harness requests them."""
    for p in PROMPTS:
        ids = tare("tokenize", [{"text": p}])[0]["ids"]
        wanted = tare("score", [{"ids": ids}])[0]["logprobs"]
        with Server("tiny=model") as s:
            for prompt in (p, ids, [ids]):
                got = s.complete(prompt=prompt, echo=True, logprobs=1, max_tokens=1, temperature=0)["choices"][0]
                lists = got["logprobs"]
                assert lists["token_logprobs"][:-1] == [None] + wanted, (lists["token_logprobs"], wanted)
                assert got["text"].startswith(p) and len(lists["tokens"]) == len(ids) + 1
                for logprob, top in list(zip(lists["token_logprobs"], lists["top_logprobs"]))[1:]:
                    assert logprob in top.values() and 1 <= len(top) <= 2 and max(top.values()) >= logprob
                assert lists["text_offset"] == sorted(lists["text_offset"]) and lists["text_offset"][0] == 0
            only = s.complete(prompt=p, echo=True, logprobs=1, max_tokens=0)
            assert only["choices"][0]["logprobs"]["token_logprobs"] == [None] + wanted
            assert only["choices"][0]["text"] == p and only["usage"]["completion_tokens"] == 0
    long = "x" * 2500  # computed in several passes
    ids = tare("tokenize", [{"text": long}])[0]["ids"]
    wanted = tare("score", [{"ids": ids}])[0]["logprobs"]
    with Server("tiny=model") as s:
        got = s.complete(prompt=[long, "short"], echo=True, logprobs=1, max_tokens=1, temperature=0)["choices"]
    assert got[0]["logprobs"]["token_logprobs"][:-1] == [None] + wanted


def requests():
    """Many kinds of requests, a name and a body each."""
    for i in range(24):
        yield {"prompt": PROMPTS[i % 5] + "!" * (i % 7), "temperature": (0, 1, 0.5)[i % 3], "seed": i, "max_tokens": 5 + 13 * (i % 6),
               "n": 1 + i % 3, "top_p": (1, 0.9)[i % 2], "top_k": (0, 20)[i % 2], "logprobs": i % 4, "echo": i % 5 == 0, "ignore_eos": i % 2 == 0}


def test_batch_invariance():
    """A request's answer is bit-identical alone and among others, with enough cache for all, and with so little that some are preempted. The last
    request alone preempts some, however late the others come: its eight completions together outgrow the cache."""
    bodies = [*requests(), {"prompt": "a", "n": 8, "max_tokens": 120, "temperature": 1, "seed": 9, "ignore_eos": True, "logprobs": 1}]
    with Server("tiny=model") as s:
        alone = [s.complete(**b)["choices"] for b in bodies]
    for arguments in ([], ["rollout.batch=3"], ["rollout.kv_tokens=320", "rollout.batch=16"]):
        with Server("tiny=model", *arguments) as s, concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            together = list(pool.map(lambda b: s.complete(**b)["choices"], bodies))
            assert together == alone, arguments
            if "rollout.batch=16" in arguments:
                assert s.metric('tare_preemptions_total{model="tiny"}') > 0


def joined(events, chat):
    """Choices assembled from the chunks of a stream."""
    choices = {}
    for event in events:
        assert event["object"] == ("chat.completion.chunk" if chat else "text_completion")
        for c in event["choices"]:
            whole = choices.setdefault(c["index"], {"text": "", "tokens": [], "logprobs": [], "finish": None})
            assert whole["finish"] is None, "a chunk after the last"
            whole["text"] += c["delta"].get("content", "") if chat else c["text"]
            if c["logprobs"] and chat:
                whole["logprobs"] += [t["logprob"] for t in c["logprobs"]["content"]]
            elif c["logprobs"]:
                whole["logprobs"] += c["logprobs"]["token_logprobs"]
            whole["finish"] = c["finish_reason"]
    return choices


def test_streams():
    with Server("tiny=model") as s:
        for i, body in enumerate(requests()):
            whole = s.complete(**body)
            events = s.stream("/v1/completions", **body, stream_options={"include_usage": True})
            assert events[-1]["choices"] == [] and events[-1]["usage"] == whole["usage"]
            choices = joined(events[:-1], False)
            for c in whole["choices"]:
                got = choices[c["index"]]
                assert got["text"] == c["text"] and got["finish"] == c["finish_reason"], (body, got, c)
                assert got["logprobs"] == (c["logprobs"]["token_logprobs"] if c["logprobs"] else []), (body, got, c)
        messages = [{"role": "user", "content": "Tell me 漢字."}]
        body = {"messages": messages, "n": 2, "max_tokens": 60, "logprobs": True, "top_logprobs": 3, "seed": 8}
        whole, events = s.chat(**body), s.stream("/v1/chat/completions", **body)
        assert events[0]["choices"][0]["delta"]["role"] == "assistant"
        for i, got in joined(events, True).items():
            c = whole["choices"][i]
            assert got["text"] == c["message"]["content"] and got["finish"] == c["finish_reason"]
            assert got["logprobs"] == [t["logprob"] for t in c["logprobs"]["content"]]


def test_parts_of_characters():
    """Tokens are bytes here: a stream has whole characters, which together equal the decoded ids."""
    with Server("tiny=model") as s:
        body = {"prompt": "漢字", "max_tokens": 400, "temperature": 1.3, "ignore_eos": True, "seed": 4}
        whole = s.complete(**body, return_token_ids=True)["choices"][0]
        assert any(i >= 0xC0 for i in whole["token_ids"] if i < 256)
        wanted = tare("detokenize", [{"ids": [i for i in whole["token_ids"] if i < 256]}])[0]["text"]
        assert whole["text"] == wanted
        assert joined(s.stream("/v1/completions", **body), False)[0]["text"] == wanted


def test_stop():
    """A stop string over several tokens ends the text before it, and no part of it appears in a stream."""
    with Server("tiny=model") as s:
        body = {"prompt": "go", "max_tokens": 200, "seed": 11, "ignore_eos": True}
        plain = s.complete(**body)["choices"][0]["text"]
        for at, n in ((5, 3), (20, 2), (40, 5), (0, 1)):
            stop = plain[at:at + n]
            first = plain.find(stop)
            for given in (stop, ["never there at all", stop], [stop + "zz-not", stop]):
                got = s.complete(**body, stop=given, logprobs=0)
                choice = got["choices"][0]
                assert choice["text"] == plain[:first] and choice["finish_reason"] == "stop", (stop, choice, plain)
                assert got["usage"]["completion_tokens"] < 200
                streamed = joined(s.stream("/v1/completions", **body, stop=given), False)[0]
                assert streamed["text"] == plain[:first] and streamed["finish"] == "stop"
        ids = s.complete(**body, return_token_ids=True)["choices"][0]["token_ids"]
        got = s.complete(**body, stop_token_ids=[ids[9]], return_token_ids=True)["choices"][0]
        assert got["token_ids"] == ids[:ids.index(ids[9]) + 1] and got["finish_reason"] == "stop"
        assert s.complete(**{**body, "seed": None})["choices"][0]["text"] == s.complete(**{**body, "seed": 0})["choices"][0]["text"]


def test_several_models():
    with Server("a=model", "other", "run.seed=5") as s:
        names = [m["id"] for m in s.ask("GET", "/v1/models")[1]["data"]]
        assert names == ["a", "other"], names
        assert s.ask("GET", "/v1/models/other")[1]["id"] == "other" and s.ask("GET", "/v1/models/b")[0] == 404
        body = {"prompt": "x", "max_tokens": 30, "ignore_eos": True}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda i: s.complete(**body, model=("a", "other")[i % 2])["choices"][0]["text"], range(8)))
        assert len(set(texts)) == 2 and texts[0] == texts[2] != texts[1] == texts[3]
        assert s.complete(**body, model="a", seed=5)["choices"][0]["text"] == texts[0]


def test_a_run():
    """The chat template of a run's configuration is used; data.system and data.suffix are added to no request, and the server prints that."""
    shutil.copytree("model", "own")
    with open("own/config.ini", "w") as f:
        f.write("[data]\ntrain = builtin:arithmetic/train\nsystem = Be brief.\nsuffix = Think first.\n")
    body = {"messages": [{"role": "user", "content": "What is 2+3?"}], "max_tokens": 1}
    with Server("tiny=model") as s:
        wanted = s.chat(**body)["usage"]["prompt_tokens"]
    with Server("tiny=own") as s:
        assert s.chat(**body)["usage"]["prompt_tokens"] == wanted
        said = s.said()
    assert "requests bring their own messages, so the run's data.system and data.suffix are not added" in said, said
    assert "system and suffix as in" not in said and "was trained without a chat template" not in said, said
    with open("own/config.ini", "w") as f:
        f.write("[data]\ntrain = builtin:arithmetic/train\nprompt = plain\n")
    with Server("tiny=own") as s:
        s.chat(**body)
        said = s.said()
    assert "this model was trained without a chat template; send its prompts to /v1/completions" in said, said


run([test_as_generate, test_int8_as_generate, test_chat_as_generate, test_prompt_logprobs, test_batch_invariance, test_streams,
     test_parts_of_characters, test_stop, test_several_models, test_a_run])
