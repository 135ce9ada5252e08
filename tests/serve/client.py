"""A server of `tare serve` and a plain client of it, for tests/e2e/serve*.sh."""
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import traceback

PATIENCE = 300 # seconds after which something hangs; no check depends on the speed


class Server:
    """tare serve with these arguments at a free port of this machine."""

    def __init__(self, *arguments, environment=None):
        self.log, self.status = open("serve.log", "w"), 0 # the expected exit status
        self.process = subprocess.Popen([os.environ["TARE"], "serve", *arguments, "--port", "0"], stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, env={**os.environ, **(environment or {})})
        line = self.process.stdout.readline()
        assert line.startswith("tare serves "), (line, self.said())
        self.host, port = line.split("http://")[1].split("/v1")[0].rsplit(":", 1)
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM if kind is None else signal.SIGKILL)
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        if kind is None:
            assert status == self.status, (status, self.said()[-2000:])

    def connect(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None):
        """(status, JSON or text, headers)"""
        c = self.connect()
        given = {"Content-Type": "application/json"} if body is not None else {}
        given.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        c.request(method, path, body, given)
        r = c.getresponse()
        text = r.read().decode()
        c.close()
        kind = r.headers.get("Content-Type", "")
        return r.status, json.loads(text) if kind.startswith("application/json") else text, r.headers

    def post(self, path, **body):
        """The JSON of a successful answer."""
        status, answer, _ = self.ask("POST", path, body)
        assert status == 200, (status, answer)
        return answer

    def complete(self, **body):
        return self.post("/v1/completions", **{"model": "tiny", **body})

    def chat(self, **body):
        return self.post("/v1/chat/completions", **{"model": "tiny", **body})

    def refused(self, wanted, code, path="/v1/completions", raw=None, headers=None, **body):
        """The message of a refusal with this status and code."""
        status, answer, _ = self.ask("POST", path, raw if raw is not None else {"model": "tiny", **body}, headers)
        assert status == wanted, (wanted, status, answer)
        error = answer["error"]
        assert error["code"] == code and set(error) == {"message", "type", "param", "code"}, answer
        return error["message"]

    def begin(self, path, **body):
        """A stream: the connection and its response, unread."""
        c = self.connect()
        c.request("POST", path, json.dumps({"model": "tiny", "stream": True, **body}), {"Content-Type": "application/json"})
        return c, c.getresponse()

    def stream(self, path, **body):
        """All events of a stream."""
        c, r = self.begin(path, **body)
        assert r.status == 200 and r.headers["Content-Type"] == "text/event-stream", (r.status, r.read())
        events = list(read_events(r))
        c.close()
        return events

    def metric(self, name):
        for line in self.ask("GET", "/metrics")[1].splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise AssertionError("no metric " + name)

    def until(self, name, value):
        """Waits until a metric has this value."""
        give_up = time.monotonic() + PATIENCE
        while self.metric(name) != value:
            assert time.monotonic() < give_up, (name, self.metric(name), value)
            time.sleep(0.01)

    def said(self):
        with open("serve.log") as f:
            return f.read()

    def until_said(self, words):
        """Waits for a message of the server."""
        give_up = time.monotonic() + PATIENCE
        while words not in self.said():
            assert time.monotonic() < give_up, words
            time.sleep(0.01)


def tare(verb, lines, *arguments):
    """The program's output for these lines of JSON with the folder model/."""
    text = "".join(json.dumps(x) + "\n" for x in lines)
    out = subprocess.run([os.environ["TARE"], "-q", verb, "model", *arguments], input=text, capture_output=True, text=True, check=True)
    return [json.loads(x) for x in out.stdout.splitlines()]


def read_events(response):
    """The JSON of each event, up to [DONE]."""
    while line := response.readline():
        if line.strip():
            assert line.startswith(b"data: "), line
            if line.strip() == b"data: [DONE]":
                assert not response.read().strip()
                return
            yield json.loads(line[6:])
    raise AssertionError("the stream ended without [DONE]")


def run(cases):
    """Runs functions and prints those that failed. Returns the exit status of the script."""
    failed = 0
    for case in cases:
        try:
            began = time.monotonic()
            case()
            print(f"{case.__name__}: {time.monotonic() - began:.1f} s")
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print("FAILED:", case.__name__)
            failed += 1
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(failed > 0)
