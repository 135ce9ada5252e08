"""Models for inference: completions, logprobs, embeddings."""

import ctypes as c
import json
import weakref

from tare_sdk import abi

from . import library
from .arrays import numbers, numpy, buffer
from .handle import Handle


def _text(value, name):
    if not isinstance(value, str):
        raise TypeError("%s: a text is expected, not %r" % (name, type(value).__name__))
    data = value.encode("utf-8", "surrogatepass")
    return abi.Text(data, len(data))


class Model(Handle):
    """A Hugging Face folder, or the folder of a run (its newest checkpoint, with the prompts of its config.ini). settings: the keys of `tare
    generate`, by keyword: dtype="bf16", threads=4, temperature=0.7."""

    _what = "model"

    def __init__(self, folder, **settings):
        super().__init__()
        made = c.c_void_p()
        library.call("model_open", library.path("folder", folder), *library.settings(settings), c.byref(made))
        self._held.handle = made.value
        self._end = weakref.finalize(self, self._held.end, library.plain("model_close"))
        self._end.atexit = False  # the process ends
        facts = library.Facts()
        library.call("model_facts", made.value, c.byref(facts))
        self.vocab, self.hidden, self.layers, self.context = facts.vocab, facts.hidden, facts.layers, facts.context

    def close(self):
        self._end()

    def generate(self, prompts, **settings):
        """Completions as dicts of id, sample, completion, ids, logprobs, finish, in the order of the prompts; group_size of them for each. A prompt is
        a text, which is rendered as a question of the training data is; a list of chat messages; a list of token ids; or a dict as `tare generate`
        reads it. settings: group_size, max_new_tokens, temperature, top_p, top_k, min_p, stop_ids, ignore_eos, seed, for this call."""
        if isinstance(prompts, (str, dict)):
            raise TypeError("prompts: a list of prompts is expected, not one %s" % type(prompts).__name__)
        lines = "".join(json.dumps(_prompt(p, i)) + "\n" for i, p in enumerate(prompts))
        made = library.Given()
        with self._use() as handle:
            library.call("generate", handle, c.byref(_text(lines, "prompts")), c.byref(library.Settings(*library.settings(settings))), c.byref(made))
        return [json.loads(line) for line in made.take().decode().split("\n") if line]

    def score(self, lines, temperature=1.0):
        """Returns [(logprobs, entropies)], arrays of one number for each token except the first:
        under the softmax at the temperature, in nats. A line is a list of token ids, or a text,
        which is encoded.
        """
        if isinstance(lines, str):
            raise TypeError("lines: a list of lines is expected, not one text")
        ids, begin = [], [0]
        for i, line in enumerate(lines):
            ids += self.encode(line) if isinstance(line, str) else [int(x) for x in numbers(line, c.c_int32, "line %d" % i)[0][: len(line)]]
            begin.append(len(ids))
        n = len(begin) - 1
        (logprob, at), (entropy, entropy_at) = buffer(c.c_float, len(ids)), buffer(c.c_float, len(ids))
        flat, ids_at, _ = numbers(ids, c.c_int32, "ids")
        marks, marks_at, _ = numbers(begin, c.c_int64, "begin")
        with self._use() as handle:
            library.call("score", handle, c.byref(library.Lines(ids_at, marks_at, n, float(temperature))), at, entropy_at)
        del flat, marks
        cut = [(b - i, e - i - 1) for i, (b, e) in enumerate(zip(begin, begin[1:]))]
        return [(logprob[b:e], entropy[b:e]) for b, e in cut]

    def embed(self, texts):
        """Returns mean-pooled last hidden states, an array [len(texts), hidden]: the embeddings by
        which the encoder `policy` clusters prompts.
        """
        if isinstance(texts, str):
            raise TypeError("texts: a list of texts is expected, not one text")
        given = [_text(t, "text %d" % i) for i, t in enumerate(texts)]
        array, at = buffer(c.c_float, len(given), self.hidden)
        with self._use() as handle:
            library.call("embed", handle, (abi.Text * max(len(given), 1))(*given), len(given), at)
        return array if numpy is not None else [list(array[i * self.hidden: (i + 1) * self.hidden]) for i in range(len(given))]

    def encode(self, text):
        """Encodes a text as token ids."""
        made, n = c.c_void_p(), c.c_int64()
        with self._use() as handle:
            library.call("encode", handle, _text(text, "text"), c.byref(made), c.byref(n))
        data = library.Given(made.value, 4 * n.value).take()
        return list((c.c_int32 * n.value).from_buffer_copy(data)) if n.value else []

    def decode(self, ids):
        """Decodes token ids; bytes that are not valid UTF-8 become U+FFFD."""
        array, at, n = numbers(ids, c.c_int32, "ids")
        made = library.Given()
        with self._use() as handle:
            library.call("decode", handle, at, n, c.byref(made))
        del array
        return made.take().decode()


def _prompt(given, i):
    if isinstance(given, dict):
        return given
    if isinstance(given, str):
        return {"id": i, "question": given}
    given = list(given)
    if given and all(isinstance(x, dict) for x in given):
        return {"id": i, "messages": given}
    ids, _, n = numbers(given, c.c_int32, "prompt %d" % i)
    return {"id": i, "ids": [int(x) for x in ids[:n]]}
