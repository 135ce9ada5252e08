"""Makes this folder from the project's reference data (../shared next to the checkout): usage: make.py SHARED

A clone without that data is tested with this folder. The files have the same paths as in SHARED; tests read the complete ones where they exist (check.h). Each
reference file is reduced to some 50 rows, spread over it. Of the tiny models there is one per architecture, and of their goldens only the small
ones: gradients and the parameters after AdamW are left out (models/families has them for smaller models), and so are logits, except for one sequence
of the third model. Data that cannot be cut from SHARED is made by make_models.py and make_families.py."""
import json
import pathlib
import shutil
import struct
import sys

HERE = pathlib.Path(__file__).parent
LINES = { # file: rows, and the longest row that is used
    "data/estimators/grpo.jsonl": (12, 8000), "data/estimators/dr_grpo.jsonl": (12, 6000), "data/estimators/rloo.jsonl": (12, 6000),
    "data/estimators/bv_blend.jsonl": (25, 4000), "data/verify/choice.jsonl": (50, 2000),
    "data/verify/math/realistic.jsonl": (60, 1500), "data/verify/math/graders.jsonl": (50, 1500),
    "data/verify/math/mathverify.jsonl": (50, 1500), "data/verify/math/adversarial.jsonl": (50, 1500),
    "data/tasks/gsm8k_test.jsonl": (50, 900), "data/tasks/gsm8k_train.jsonl": (50, 900), "data/tasks/math500.jsonl": (50, 900),
    "data/tasks/math_train.jsonl": (50, 900), "data/tasks/math_test_rest.jsonl": (50, 900), "data/tasks/arc_challenge_test.jsonl": (25, 700),
    "data/tasks/toy_train.jsonl": (20, 900), "data/tasks/mmlu_pro_sample.jsonl": (20, 900), "data/tasks/aime25.jsonl": (3, 900),
    "data/chat/qwen2.5.jsonl": (20, 900), "data/chat/qwen2.5-instruct.jsonl": (20, 900), "data/chat/llama-3.1.jsonl": (20, 900),
    "data/chat/llama-3.jsonl": (20, 900), "data/chat/smollm2.jsonl": (20, 900),
}
PEERS_EACH = 6  # rows of data/peers/estimators.jsonl for each peer and estimator
COPIES = ["models/tokenizers/qwen2.5/tokenizer_config.json", "models/tokenizers/qwen2.5/chat_template.instruct.jinja",
          "models/tokenizers/llama-3/tokenizer_config.json", "models/tokenizers/llama-3/chat_template.llama-3.jinja",
          "models/tokenizers/smollm2/tokenizer_config.json"]
MODELS = {"qwen3": ("param3.", "grad_A."), "qwen2-untied-bf16": ("logits", "param3.", "grad_A."), "llama-tied-bf16": ("logits", "param3.", "grad_A.")}


def spread(rows, n):
    return rows if len(rows) <= n else [rows[i * len(rows) // n] for i in range(n)]


def put(file, data):
    path = HERE / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def without(data, names):
    """A safetensors file without the tensors whose names begin with one of names; only the first sequence of the logits."""
    size = struct.unpack("<Q", data[:8])[0]
    header, blob, out, kept = json.loads(data[8:8 + size]), data[8 + size:], b"", {}
    for name, t in header.items():
        if name == "__metadata__":
            kept[name] = t
        elif not name.startswith(names or ("\0",)):
            begin, end = t["data_offsets"]
            if name == "logits":
                end = begin + (end - begin) // t["shape"][0]
                t = {**t, "shape": [1, *t["shape"][1:]]}
            kept[name] = {**t, "data_offsets": [len(out), len(out) + end - begin]}
            out += blob[begin:end]
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + out


def main(shared):
    for file, (n, longest) in LINES.items():
        lines = (shared / file).read_bytes().splitlines(keepends=True)
        put(file, b"".join(spread([x for x in lines if len(x) <= longest], n)))
    kinds = {}
    for line in (shared / "data/peers/estimators.jsonl").read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        kinds.setdefault((row["peer"].split("@")[0], row.get("estimator")), []).append(line)
    put("data/peers/estimators.jsonl", b"".join(x for rows in kinds.values() for x in spread(sorted(rows, key=len)[:max(PEERS_EACH, len(rows) // 4)], PEERS_EACH)))
    for file in COPIES:
        put(file, (shared / file).read_bytes())
    for model, left_out in MODELS.items():
        for path in sorted((shared / "models/tiny" / model).glob("*.*")):
            data = path.read_bytes()
            put(f"models/tiny/{model}/{path.name}", without(data, left_out) if path.name == "goldens.safetensors" else data)
        if model == "qwen3": # the reference model of the KL terms
            shutil.rmtree(HERE / "models/tiny" / model / "ref", ignore_errors=True)
            shutil.copytree(shared / "models/tiny" / model / "ref", HERE / "models/tiny" / model / "ref")


main(pathlib.Path(sys.argv[1]))
