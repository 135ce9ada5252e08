#!/usr/bin/env python3
"""Compares tare's tokenizers with Hugging Face `tokenizers` on random and hostile strings: ids and decoded texts.

usage: bench/tokenizer_differential.py TARE COUNT [--seed N] [--out FILE] [FOLDER...]
TARE is the program. Each FOLDER holds a tokenizer.json; without a FOLDER, small tokenizers of every kind found in tokenizer.json files of
SentencePiece models are trained here on the texts of docs/ (`KINDS` below). COUNT strings go through each. The ids must be equal, and so
must the texts of a tenth of these ids and of COUNT / 5 lists of random ids. Otherwise prints the first differences; exit status 1.
Another --seed (1) gives other strings; --out FILE writes every difference as a line of JSON.
--write OUT writes the small tokenizers and 40 rows each in the form of tests/data/data/tokenizer, and compares nothing.
Requires: pip install tokenizers
"""
import glob
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

MARK = "\u2581"
BYTES = [f"<0x{b:02X}>" for b in range(256)]
MORE = "Größe naïve café Ærø Привет мир 日本語の文 中文字符 한국어 العربية ελληνικά ½ ﬁ ① 𝒳 e\u0301 🙂👍🏽 x²+y²=z² →∑√ "
SPANS = [(0, 0x7F), (0x80, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x900, 0xD7F), (0x1100, 0x11FF), (0x2000, 0x206F), (0x2150, 0x218B),
         (0x2460, 0x24FF), (0x2580, 0x259F), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xACFF), (0xF900, 0xFAFF), (0xFE00, 0xFFFD),
         (0x10000, 0x100FF), (0x1D400, 0x1D4FF), (0x1F300, 0x1F6FF), (0xE0000, 0xE01FF)]


def corpus():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs")
    lines = []
    for path in sorted(glob.glob(os.path.join(here, "*.md"))):
        with open(path, encoding="utf-8") as f:
            lines += f.read().splitlines()
    return [line for line in lines if line] + [MORE] * 20


def special(content, **flags):
    return AddedToken(content, **{"special": True, "normalized": False, **flags})


scale = 1  # scale of vocabularies
BATCH = 50000
kept = None  # the file of --out
stopped = []  # set by SIGTERM: stop after the current batch and print the counts


def bpe(size, bytes_from=0, unk="<unk>", fuse=True, ignore_merges=False):
    """A BPE model on characters with a deliberately small alphabet: other characters use the fallback."""
    size = int(259 + (size - 259) * scale)
    tokens = ["<unk>", "<s>", "</s>"] + BYTES[bytes_from:]
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Replace(" ", MARK)
    t.pre_tokenizer = pre_tokenizers.Split(MARK, "merged_with_next")
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, limit_alphabet=int(120 * scale), show_progress=False))
    model = json.loads(t.to_str())["model"]
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    return Tokenizer(models.BPE(vocab=model["vocab"], merges=merges, unk_token=unk, fuse_unk=fuse, byte_fallback=True,
                                ignore_merges=ignore_merges))


def unigram(size, bytes_too):
    size = int(size * scale)
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Replace(" ", MARK)
    t.pre_tokenizer = pre_tokenizers.Split(MARK, "merged_with_next")
    tokens = ["<unk>", "<s>", "</s>"] + (BYTES if bytes_too else [])
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=size, special_tokens=tokens, unk_token="<unk>",
                                                            show_progress=False))
    vocab = [tuple(p) for p in json.loads(t.to_str())["model"]["vocab"]]
    return Tokenizer(models.Unigram(vocab, 0, bytes_too))


def spell(t, strip, metaspace=None):
    if metaspace:
        t.decoder = decoders.Metaspace(MARK, metaspace)
        return
    parts = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    t.decoder = decoders.Sequence(parts + ([decoders.Strip(" ", 1, 0)] if strip else []))


def legacy():
    return normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])


def llama2(**flags):
    t = bpe(flags.pop("size", 900), **flags)
    t.normalizer = legacy()
    spell(t, True)
    t.add_tokens([special("<s>"), special("</s>")])
    return t


def llama1():
    """Normalized special tokens, which are found in the normal form, which begins with the mark."""
    t = bpe(900)
    t.normalizer = legacy()
    spell(t, True)
    t.add_tokens([special("<s>", normalized=True, special=False), AddedToken("plain word", normalized=True)])
    return t


def phi3():
    t = llama2()
    t.add_tokens([special(c, rstrip=True) for c in ("<|endoftext|>", "<|assistant|>", "<|end|>", "<|user|>")])
    t.add_tokens([special("<|both|>", lstrip=True, rstrip=True), special("<|left|>", lstrip=True), special("\n\n"), special("\n")])
    return t


def mistral(scheme, split):
    t = bpe(900)
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, scheme, split)
    spell(t, scheme != "never")
    t.add_tokens([special("[INST]"), special("[/INST]"), special("</s>", rstrip=True)])
    return t


def gemma():
    t = bpe(1100)
    t.normalizer = normalizers.Replace(" ", MARK)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    spell(t, False)
    t.add_tokens([special("<start_of_turn>"), special("<end_of_turn>"), special("<bos>")])
    t.add_tokens([AddedToken(c, normalized=False) for c in ["\n" * n for n in range(1, 9)] + [MARK * n for n in range(2, 9)] + ["\t\t"]])
    return t


def old_metaspace():
    """The form of files before prepend_scheme: add_prefix_space, no split."""
    t = bpe(900)
    spell(t, True, "always")
    j = json.loads(t.to_str())
    old = {"type": "Metaspace", "replacement": MARK, "add_prefix_space": True}
    j["pre_tokenizer"], j["decoder"] = old, dict(old)
    return Tokenizer.from_str(json.dumps(j))


def t5():
    t = unigram(900, False)
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), MARK)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "always", True)])
    spell(t, False, "always")
    t.add_tokens([special("<extra_id_0>", lstrip=True), special("</s>")])
    return t


def unigram_bytes():
    t = unigram(900, True)
    t.pre_tokenizer = pre_tokenizers.Metaspace(MARK, "first", False)
    spell(t, True)
    t.add_tokens([special("<s>")])
    return t


def cuts(behavior):
    t = bpe(900)
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Replace(" ", MARK)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(f"{MARK}|[aeiou]+"), behavior), pre_tokenizers.Digits(True)])
    spell(t, False)
    return t


KINDS = {
    "llama2": llama2, "llama1": llama1, "phi3": phi3, "gemma": gemma, "old_metaspace": old_metaspace, "t5": t5,
    "unigram_bytes": unigram_bytes,
    "mistral": lambda: mistral("first", False), "mistral_always": lambda: mistral("always", False),
    "mistral_split": lambda: mistral("always", True), "mistral_never": lambda: mistral("never", True),
    "some_bytes": lambda: llama2(bytes_from=200), "some_bytes_apart": lambda: llama2(bytes_from=200, fuse=False),
    "no_unknown": lambda: llama2(bytes_from=200, unk=None), "whole": lambda: llama2(ignore_merges=True),
    "removed": lambda: cuts("removed"), "with_previous": lambda: cuts("merged_with_previous"),
    "with_next": lambda: cuts("merged_with_next"),
}
WRITTEN = ["phi3", "gemma", "mistral", "t5"]


def strings(rng, t, n):
    """Random concatenations of fragments; the fragments are drawn once for all n, which makes this fast."""
    words = [w for line in corpus() for w in line.split(" ")]
    added = [a.content for a in t.get_added_tokens_decoder().values()]
    joints = ["", " ", " ", "  ", "\n", "\n\n", "\t", MARK, MARK + " ", "\u00a0", "\u3000", "\u2028", "\r\n", "   "]
    pool = []
    for _ in range(min(40000, 20 * n + 100)):
        kind = rng.random()
        if kind < 0.45:
            piece = rng.choice(words)
        elif kind < 0.6 and added:
            piece = rng.choice(added)
        elif kind < 0.65:
            piece = rng.choice(BYTES + ["<0x", "<s", "<|", "<unk>"])
        else:
            low, high = rng.choice(SPANS)
            piece = "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 4)))
        pool.append((piece + rng.choice(joints)).replace("\0", ""))
    sizes = rng.choices([1, 2, 3, 5, 8, 20], k=n)
    drawn = rng.choices(pool, k=sum(sizes))
    at = 0
    for size in sizes:
        yield "".join(drawn[at:at + size])
        at += size


def ask(tare, verb, folder, rows):
    """Runs the process with its output in a file, since it reads while the next lines are written."""
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen([tare, verb, folder], stdin=subprocess.PIPE, stdout=out) as p:
            p.stdin.write("\n".join(rows).encode() + b"\n")
        if p.returncode:
            sys.exit(f"tare {verb} {folder}: exit status {p.returncode}")
        out.seek(0)
        return out.read().split(b"\n")[:-1]


def compare(tare, name, folder, count, seed):
    """Differences: ids, texts of the ids, texts of random ids."""
    t = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    rng = random.Random(seed)
    size = max(t.get_vocab().values()) + 1
    wrong = [0, 0, 0]

    def tell(k, what, there, here):
        wrong[k] += 1
        if kept:
            print(json.dumps({"tokenizer": name, "input": what, "there": there, "here": here}), file=kept, flush=True)
        if wrong[k] <= 3:
            print(f"{name}: {what!r}\n  there {there!r}\n  here  {here!r}", flush=True)

    for begin in range(0, count, BATCH):
        if stopped:
            count = begin
            break
        texts = list(strings(rng, t, min(BATCH, count - begin)))
        want = [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
        for text, ids, line in zip(texts, want, ask(tare, "tokenize", folder, [json.dumps({"text": s}) for s in texts])):
            if b'"ids":%s' % json.dumps(ids, separators=(",", ":")).encode() not in line and json.loads(line)["ids"] != ids:
                tell(0, text, ids, json.loads(line)["ids"])
        few = len(texts) // 10  # decode a tenth of the ids, and as many random lists of each kind
        lists = want[:few] + [rng.choices(range(size), k=rng.randint(0, 12)) for _ in range(few)] + [rng.choices(range(3, 259), k=rng.randint(0, 6)) for _ in range(few)]
        there = t.decode_batch(lists, skip_special_tokens=False)
        here = ask(tare, "detokenize", folder, [json.dumps({"ids": ids}) for ids in lists])
        for i, (ids, text, line) in enumerate(zip(lists, there, here)):
            if json.loads(line)["text"] != text:
                tell(1 if i < few else 2, ids, text, json.loads(line)["text"])
    print(f"{name:18s} {count} strings; differences: {wrong[0]} ids, {wrong[1]} texts, {wrong[2]} texts of random ids", flush=True)
    return sum(wrong)


def write(out):
    global scale
    scale = 0.5
    for name in WRITTEN:
        t = KINDS[name]()
        folder = os.path.join(out, "models", "tokenizers", name)
        os.makedirs(folder, exist_ok=True)
        os.makedirs(os.path.join(out, "data", "tokenizer"), exist_ok=True)
        with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
            json.dump(json.loads(t.to_str()), f, ensure_ascii=False, separators=(",", ":"))
        with open(os.path.join(out, "data", "tokenizer", name + ".jsonl"), "w", encoding="utf-8") as f:
            for s in strings(random.Random(7), t, 40):
                ids = t.encode(s, add_special_tokens=False).ids
                row = {"cat": "mixed", "text": s, "ids": ids, "decoded": t.decode(ids, skip_special_tokens=False)}
                f.write(json.dumps(row, ensure_ascii=False) + "\n")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        return write(sys.argv[2])
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tare, count, folders, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:], 1
    global kept
    while folders and folders[0].startswith("--"):
        if folders[0] == "--seed":
            seed = int(folders[1])
        elif folders[0] == "--out":
            kept = open(folders[1], "a", encoding="utf-8")
        else:
            sys.exit(__doc__)
        folders = folders[2:]
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    wrong = 0
    for folder in folders:
        wrong += compare(tare, os.path.basename(folder.rstrip("/")), folder, count, seed)
    with tempfile.TemporaryDirectory() as tmp:
        for name in KINDS if not folders else []:
            folder = os.path.join(tmp, name)
            os.mkdir(folder)
            KINDS[name]().save(os.path.join(folder, "tokenizer.json"))
            wrong += compare(tare, name, folder, count, seed)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
