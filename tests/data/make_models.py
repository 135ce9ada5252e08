"""Makes the models of this folder that cannot be cut from the reference data: usage: make_models.py SHARED

Real tokenizers reduced to their first tokens, a sentence encoder of random weights, and k-means on a part of real embeddings. The expected results
are computed by other programs: ids by Hugging Face's tokenizers, embeddings by PyTorch (transformers' BertModel), the sums of squares by
scikit-learn. Needs tokenizers, transformers, torch, safetensors, scikit-learn."""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from sklearn.cluster import KMeans
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

HERE = pathlib.Path(__file__).parent
TOKENS = 600 # of each vocabulary, in addition to the added tokens
ROWS, LONGEST = 60, 300  # rows of each file of strings, and the longest text in bytes
WIDTH, LAYERS, POSITIONS = 32, 2, 64  # of the sentence encoder
POINTS, COLUMNS, CLUSTERS = 300, 32, (8, 16)


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def spread(rows, n):
    return [rows[i * len(rows) // n] for i in range(n)]


def put(name, data):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def as_json(x):
    return json.dumps(x, separators=(",", ":"))


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def bpe(shared, name):
    """The first tokens and the merges that make them; added tokens that came after the others come after these."""
    t = json.loads((shared / f"models/tokenizers/{name}/tokenizer.json").read_text())
    added = {a["content"] for a in t["added_tokens"]}
    vocab = {token: i for token, i in t["model"]["vocab"].items() if i < TOKENS or token in added}
    merges = [m if isinstance(m, list) else m.split(" ") for m in t["model"]["merges"]]
    t["model"]["vocab"] = vocab
    t["model"]["merges"] = [" ".join(m) for m in merges if m[0] in vocab and m[1] in vocab and "".join(m) in vocab]
    ids = {}
    for a in t["added_tokens"]:
        ids[a["content"]] = a["id"] = vocab.get(a["content"], TOKENS + len(ids))
    for part in (t["post_processor"] or {}).get("processors", []):
        for mark, s in part.get("special_tokens", {}).items():
            s["ids"] = [ids[mark]]
    text = as_json(t)
    put(f"models/tokenizers/{name}/tokenizer.json", text)
    peer = Tokenizer.from_str(text)
    rows = [r for r in rows_of(shared / f"data/tokenizer/{name}.jsonl") if len(r["text"].encode()) <= LONGEST]
    put(f"data/tokenizer/{name}.jsonl",
        as_lines({**r, "ids": peer.encode(r["text"], add_special_tokens=False).ids} for r in spread(rows, ROWS)))


def pieces(shared, texts):
    """A WordPiece vocabulary of the parts of the texts."""
    t = json.loads((shared / "models/minilm/tokenizer.json").read_text())
    t["truncation"] = t["padding"] = None
    whole = Tokenizer.from_str(json.dumps(t))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    used = {token for text in texts for token in whole.encode(text).tokens} - set(special)
    # every second part of several letters is left out: its word is split, or is unknown
    kept = [token for i, token in enumerate(sorted(used)) if len(token.removeprefix("##")) == 1 or i % 2]
    ids = {token: i for i, token in enumerate(special + kept)}
    t["model"]["vocab"] = ids
    for a in t["added_tokens"]:
        a["id"] = ids[a["content"]]
    for name, s in t["post_processor"]["special_tokens"].items():
        s["ids"] = [ids[name]]
    return t, len(ids)


def encoder(shared):
    rows = [r for r in rows_of(shared / "data/encoder/minilm.jsonl") if len(r["ids"]) <= POSITIONS // 2]
    texts = [r["text"] for r in spread(rows, min(48, len(rows)))]
    t, size = pieces(shared, texts)
    peer = Tokenizer.from_str(json.dumps(t))
    torch.manual_seed(1)
    config = BertConfig(vocab_size=size, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=2, intermediate_size=2 * WIDTH,
                        max_position_embeddings=POSITIONS, attn_implementation="eager")
    model = BertModel(config, add_pooling_layer=False).eval()
    for name, p in model.named_parameters(): # far from the usual start, so that every weight counts
        p.data = (torch.randn_like(p) * 0.3 + (1 if "LayerNorm.weight" in name else 0)).half().float()
    out = []
    for text in texts:
        ids = peer.encode(text).ids
        assert len(ids) <= POSITIONS
        with torch.no_grad():
            mean = model(torch.tensor([ids])).last_hidden_state[0].mean(0)
        out.append({"text": text, "ids": ids, "embedding": [float(f"{x:.9g}") for x in mean / mean.norm()]})
    folder = "models/minilm"
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    save_file({k: v.half().contiguous() for k, v in model.state_dict().items() if v.is_floating_point()}, HERE / folder / "model.safetensors")
    keep = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "max_position_embeddings",
            "layer_norm_eps", "hidden_act", "model_type", "position_embedding_type")
    said = {"position_embedding_type": "absolute", **config.to_dict()}
    put(f"{folder}/config.json", as_json({k: said[k] for k in keep}))
    put(f"{folder}/tokenizer.json", as_json(t))
    put(f"{folder}/sentence_bert_config.json", as_json({"max_seq_length": POSITIONS, "do_lower_case": False}))
    for name in ("modules.json", "1_Pooling/config.json"):
        put(f"{folder}/{name}", (shared / "models/minilm" / name).read_bytes())
    put("data/encoder/minilm.jsonl", as_lines(out))


def kmeans(shared):
    whole = load_file(shared / "data/encoder/gsm8k_train_emb_f16.safetensors")["embeddings"]
    part = whole[:: whole.shape[0] // POINTS][:POINTS, :COLUMNS].contiguous()
    save_file({"embeddings": part}, HERE / "data/encoder/gsm8k_train_emb_f16.safetensors")
    x, out = part.double().numpy(), []
    for k in CLUSTERS:
        runs = [KMeans(k, n_init=1, random_state=seed, tol=0).fit(x).inertia_ for seed in range(10)]
        out.append({"K": k, "method": "scikit-learn KMeans, the best of 10 starts by k-means++", "best_inertia": min(runs)})
    put("data/encoder/kmeans.json", json.dumps(out, indent=1) + "\n")


def main(shared):
    for name in ("qwen2.5", "llama-3", "smollm2"):
        bpe(shared, name)
    encoder(shared)
    kmeans(shared)


main(pathlib.Path(sys.argv[1]))
