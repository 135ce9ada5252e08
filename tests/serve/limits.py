"""Checks the refusals of `tare serve`, clients that leave it, and its end."""
import json
import os
import signal
import socket
import subprocess
import threading

from client import PATIENCE, Server, read_events, run

LONG = {"prompt": "go", "max_tokens": 19000, "ignore_eos": True}  # work for seconds; LONGER: for a minute
LONGER = {**LONG, "n": 8}
RUNNING, WAITING = 'tare_completions_running{model="tiny"}', 'tare_completions_waiting{model="tiny"}'


def test_requests():
    with Server("tiny=model", "--max-n", "8", "--max-body", "30000") as s:
        assert "JSON object" in s.refused(400, "invalid_json", raw="[1]")
        for raw in ("", "{", '{"a":1,"a":2}', "\xff".encode("latin-1"), "[" * 5000, '{"model":"tiny"} x'):
            s.refused(400, "invalid_json", raw=raw)
        assert "nearest is 'temperature'" in s.refused(400, "unknown_field", prompt="x", temprature=1)
        assert "unknown model 'none'" in s.refused(404, "model_not_found", model="none", prompt="x")
        s.refused(400, "invalid_value", raw='{"prompt":"x"}')
        s.refused(413, "too_large", prompt="x" * 30000)
        c = s.connect() # a client that sends the whole body before it reads
        c.request("POST", "/v1/completions", b"x" * 20000000, {"Content-Type": "application/json"})
        assert c.getresponse().status == 413
        c.close()
        c = s.connect() # of an unknown length
        c.request("POST", "/v1/completions", iter([b"x" * 8000] * 4), {"Content-Type": "application/json"}, encode_chunked=True)
        assert c.getresponse().status == 413
        c.close()
        for body in ({}, {"prompt": ""}, {"prompt": []}, {"prompt": [[]]}, {"prompt": 3}, {"prompt": ["x", 3]}, {"prompt": [1, "x"]},
                     {"prompt": [70000]}, {"prompt": [-1]}, {"prompt": {"a": 1}}):
            s.refused(400, "invalid_value", **body)
        for name, values in {"temperature": (-1, 0.001, "x", 1e9), "top_p": (0, 1.1, -1, True), "min_p": (-0.1, 2), "top_k": (-1, 1.5),
                             "n": (0, 9, 1.0), "seed": (0.5, "1"), "max_tokens": (-1, "x"), "stop": ("", [""], 3, ["x"] * 17, [None]),
                             "stop_token_ids": ([-1], 3, [70000]), "stream": (1,), "logprobs": (-1, 21, True), "echo": ("yes",),
                             "best_of": (2,), "frequency_penalty": (0.5,), "logit_bias": ({"1": 2},), "suffix": ("x",),
                             "stream_options": ({"include_usage": True}, {"x": 1}, 3), "response_format": ({"type": "json_object"},)}.items():
            for value in values:
                message = s.refused(400, "invalid_value", prompt="x", **{name: value})
                assert name in message, message
        s.refused(400, "invalid_value", prompt=["x"] * 3, n=3)
        s.refused(400, "context_length_exceeded", prompt="x" * 19999 + "y")
        chat = "/v1/chat/completions"
        for messages in (None, [], "x", [3], [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": 3}],
                         [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]):
            s.refused(400, "invalid_value", path=chat, messages=messages)
        user = [{"role": "user", "content": "x"}]
        s.refused(400, "invalid_value", path=chat, messages=user, top_logprobs=2)
        s.refused(400, "invalid_value", path=chat, messages=user, tools=[{"type": "function"}])
        s.refused(400, "unknown_field", path=chat, messages=user, prompt="x")
        s.refused(400, "invalid_value", path=chat, messages=[*user, {"role": "assistant", "content": " "}])
        for name in ("messages", "add_generation_prompt"):
            s.refused(400, "invalid_value", path=chat, messages=user, chat_template_kwargs={name: False})
        # a last message of the assistant is continued: the prompt ends with its last byte
        last = [*user, {"role": "assistant", "content": "y"}]
        assert s.chat(messages=last, max_tokens=1, return_token_ids=True)["choices"][0]["prompt_token_ids"][-1] == ord("y")
        # one limit, and it does not depend on the order of the members
        for limits in ({"max_tokens": 3, "max_completion_tokens": 1}, {"max_completion_tokens": 1, "max_tokens": 3}):
            assert "max_tokens" in s.refused(400, "invalid_value", path=chat, messages=user, **limits)
        for limits in ({"max_tokens": 2, "max_completion_tokens": 2}, {"max_completion_tokens": 2, "max_tokens": None}):
            assert s.chat(messages=user, ignore_eos=True, **limits)["usage"]["completion_tokens"] == 2
        # requests without work are accepted
        s.complete(prompt="x", max_tokens=2, user="me", best_of=1, frequency_penalty=0, presence_penalty=0.0, logit_bias={}, suffix=None, stop=None)
        s.chat(messages=user, max_tokens=2, tools=[], tool_choice="none", response_format={"type": "text"}, chat_template_kwargs={"a": 1})


def ask_as(s, host):
    c = s.connect()
    c.putrequest("GET", "/health", skip_host=True)
    c.putheader("Host", host)
    c.endheaders()
    status = c.getresponse().status
    c.close()
    return status


def test_hosts():
    """A page whose name was made to point to this machine reaches nothing."""
    with Server("tiny=model", "--allow-host", "models.test") as s:
        for host in ("localhost", "localhost:80", "127.0.0.1:1", "models.test:8080", "LOCALHOST"):
            assert ask_as(s, host) == 200, host
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "models.tes"):
            assert ask_as(s, host) == 421, host


def test_paths():
    with Server("tiny=model") as s:
        assert s.ask("GET", "/health")[:2] == (200, {"status": "ok"})
        assert s.ask("GET", "/nothing")[0] == 404 and s.ask("POST", "/v1/nothing", {})[0] == 404
        status, _, headers = s.ask("GET", "/v1/completions")
        assert status == 405 and headers["Allow"] == "POST"
        assert s.ask("POST", "/health", {})[0] == 405 and s.ask("DELETE", "/v1/models")[0] == 405
        message = s.refused(415, "unsupported_media_type", raw="prompt=x", headers={"Content-Type": "application/x-www-form-urlencoded"})
        assert "application/json" in message
        for kind in ("Application/JSON", "APPLICATION/JSON; charset=utf-8"):  # media types have no case (RFC 9110)
            assert s.ask("POST", "/v1/completions", {"model": "tiny", "prompt": "x", "max_tokens": 1}, {"Content-Type": kind})[0] == 200
        with socket.create_connection((s.host, s.port), PATIENCE) as c: # not HTTP
            c.sendall(b"\x16\x03\x01nothing\r\n\r\n")
            c.recv(1000)
        c = s.connect() # a chunked body, two requests on one connection
        for _ in range(2):
            c.request("POST", "/v1/completions", iter([b'{"model":"tiny",', b'"prompt":"x","max_', b'tokens":2}']),
                      {"Content-Type": "application/json"}, encode_chunked=True)
            assert json.loads(c.getresponse().read())["object"] == "text_completion"
        c.close()
        assert s.metric('tare_requests_total{status="404"}') == 2 and s.metric("tare_request_seconds_count") == 4


def test_key():
    with Server("tiny=model", environment={"TARE_SERVE_KEY": "secret-1"}) as s:
        for key in (None, "Bearer wrong", "Bearer secret-1x", "Bearer secret-", "Bearer ", "secret-1"):
            headers = {"Authorization": key} if key else {}
            s.refused(401, "invalid_api_key", prompt="x", headers=headers)
            assert s.ask("GET", "/v1/models", headers=headers)[0] == s.ask("GET", "/metrics", headers=headers)[0] == 401
        for scheme in ("Bearer", "bearer", "BEARER"):  # schemes have no case (RFC 9110)
            assert s.ask("GET", "/v1/models", headers={"Authorization": f"{scheme} secret-1"})[0] == 200
        assert s.ask("GET", "/health")[0] == 200
    with open("key", "w") as f:
        f.write("of-a-file\n")
    with Server("tiny=model", "--host", "0.0.0.0", "--key-file", "key") as s:
        assert s.ask("GET", "/v1/models", headers={"Authorization": "Bearer of-a-file"})[0] == 200


def fails(wanted, words, *arguments):
    """The command ends with this status before it serves anything."""
    done = subprocess.run([os.environ["TARE"], "serve", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == wanted and words in done.stderr, (arguments, done)


def test_arguments():
    fails(3, "needs a key", "model", "--host", "0.0.0.0", "--port", "0")
    open("empty", "w").close()
    fails(3, "the key must not be empty", "model", "--key-file", "empty")
    fails(3, "two models have the name 'a'", "a=model", "a=other")
    fails(3, "invalid model name", "a b=model")
    fails(3, "unknown option --prot", "model", "--prot", "1")
    fails(3, "from 0 to 65535", "model", "--port", "70000")
    fails(3, "missing value", "model", "--port")
    fails(3, "has no key 'rollout.temperature'", "model", "rollout.temperature=1")
    fails(3, "MODEL is missing", "--port", "0")
    for folder in ("none-there", "empty"):
        fails(1, f"{folder}: no such folder; name the folder of a Hugging Face model, an adapter or a run ('a={folder}' is read as NAME=MODEL; "
              "a key is section.key=value)", f"a={folder}")
    with Server("tiny=model") as s:
        fails(3, "cannot listen on", "model", "--port", str(s.port))


def test_a_client_leaves():
    """A client that disconnects frees its place, whether it read a stream or waited for an answer."""
    with Server("tiny=model", "rollout.batch=1") as s:
        c, r = s.begin("/v1/completions", **LONGER)
        assert r.readline().startswith(b"data: ")
        r.close()
        c.close()
        s.until("tare_requests_cancelled_total", 1)
        c = s.connect()
        c.request("POST", "/v1/completions", json.dumps({"model": "tiny", **LONGER}), {"Content-Type": "application/json"})
        s.until(RUNNING, 1)
        c.close()
        s.until("tare_requests_cancelled_total", 2)
        s.until(RUNNING, 0)
        assert s.complete(prompt="x", max_tokens=3)["usage"]["completion_tokens"] <= 3
        assert s.metric('tare_cache_tokens_used{model="tiny"}') == 0


def test_many_half_requests():
    """More connections with half a request than may be open, and then their clients leave: the server answers again at once, not only after
    their idle time-out."""
    with Server("tiny=model", "--max-connections", "8", "--idle", str(PATIENCE * 4)) as s:
        half = [socket.create_connection((s.host, s.port), PATIENCE) for _ in range(20)]
        for c in half:
            c.sendall(b"POST /v1/")
        for c in half[8:]: # they wait in the system's queue, because eight are open
            c.settimeout(0.2)
        try:
            seen = half[-1].recv(1)
            assert False, seen
        except socket.timeout:
            pass
        for c in half:
            c.close()
        assert s.ask("GET", "/health")[0] == 200


def test_queue():
    with Server("tiny=model", "rollout.batch=1", "--queue", "1") as s:
        s.refused(400, "invalid_value", prompt="x", n=3)
        first, r = s.begin("/v1/completions", **LONG)
        assert r.readline().startswith(b"data: ")
        waits = []
        thread = threading.Thread(target=lambda: waits.append(s.complete(prompt="x", max_tokens=3)))
        thread.start()
        s.until(WAITING, 1)
        status, answer, headers = s.ask("POST", "/v1/completions", {"model": "tiny", "prompt": "x"})
        assert status == 429 and answer["error"]["code"] == "queue_full" and headers["Retry-After"] == "1"
        r.close()
        first.close()
        thread.join(PATIENCE)
        assert waits and waits[0]["usage"]["completion_tokens"] <= 3


def test_timeout():
    """A request that takes too long is ended: an answer with 504; a stream, too, or, once it has a token, with an error as its last event. The
    time to the first token differs between machines."""
    for seconds in (1, 4, 16):
        with Server("tiny=model", "--timeout", str(seconds), "rollout.batch=8") as s:
            s.refused(504, "timeout", **LONGER)
            c, r = s.begin("/v1/completions", **LONGER)
            began = r.status == 200
            if began:
                events = list(read_events(r))
                assert events[-1]["error"]["code"] == "timeout" and len(events) > 1
            else:
                assert r.status == 504 and json.loads(r.read())["error"]["code"] == "timeout"
            c.close()
            assert s.metric("tare_requests_timed_out_total") == 2
        if began:
            return
    raise AssertionError("no stream began within 16 s")


def test_stop():
    """SIGTERM: running requests are answered to their end, new ones are refused, the status is 0."""
    with Server("tiny=model") as s:
        c, r = s.begin("/v1/completions", **{**LONG, "max_tokens": 4000}, return_token_ids=True)
        assert r.readline().startswith(b"data: ")
        s.process.send_signal(signal.SIGTERM)
        r.readline()
        ids = [i for event in read_events(r) for i in event["choices"][0]["token_ids"]]
        assert len(ids) > 3900, len(ids)
        c.close()
        assert s.process.wait(PATIENCE) == 0
    with Server("tiny=model", "--drain", "0") as s:
        c, r = s.begin("/v1/completions", **LONGER)
        assert r.readline().startswith(b"data: ")
        s.process.send_signal(signal.SIGINT)
        r.readline()
        events = list(read_events(r))
        assert events[-1]["error"]["code"] == "stopping"
        c.close()
        assert s.process.wait(PATIENCE) == 0


def test_stop_at_once():
    """A second signal ends the process, once the first one has been handled."""
    with Server("tiny=model") as s:
        c, r = s.begin("/v1/completions", **LONGER)
        assert r.readline().startswith(b"data: ")
        s.process.send_signal(signal.SIGTERM)
        s.until_said("stopping: ")
        s.process.send_signal(signal.SIGTERM)
        s.status = 130
        assert s.process.wait(PATIENCE) == 130
        c.close()


run([test_requests, test_hosts, test_paths, test_key, test_arguments, test_a_client_leaves, test_many_half_requests, test_queue, test_timeout, test_stop,
     test_stop_at_once])
