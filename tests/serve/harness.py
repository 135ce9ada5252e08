"""Runs lm-evaluation-harness against `tare serve`: its texts equal those of `tare generate`, its loglikelihoods those of `tare score`."""
import glob
import json
import os
import subprocess
import sys

from client import Server, run, tare

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "harness")
ROWS = [{"question": f"What is {a} plus {b}", "choices": [str(a + b), str(a + b + 1), "none"], "answer": str(a + b + b % 2)}
        for a, b in zip(range(3, 43), range(40, 0, -1))]


def evaluated(task):
    """The harness's samples of a task and its mean, with the server's model `tiny`."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": os.path.abspath("hf"), "TOKENIZERS_PARALLELISM": "false"}
    with Server("tiny=model") as s:
        about = f"model=tiny,base_url=http://{s.host}:{s.port}/v1/completions,tokenizer=model,num_concurrent=4,max_retries=1"
        made = subprocess.run([sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args", about, "--tasks", task, "--include_path",
                               FOLDER, "--output_path", task, "--log_samples"], env={**os.environ, **offline}, capture_output=True, text=True)
    assert made.returncode == 0, (made.stdout + made.stderr)[-3000:]
    samples, results = (glob.glob(f"{task}/**/{kind}_*", recursive=True) for kind in ("samples", "results"))
    with open(samples[0], encoding="utf-8") as file:
        lines = sorted(map(json.loads, file), key=lambda x: x["doc_id"])
    assert [x["doc"]["question"] for x in lines] == [row["question"] for row in ROWS]
    with open(results[0], encoding="utf-8") as file:
        return lines, json.load(file)["results"][task]


def test_generate_until():
    lines, result = evaluated("tare_generate")
    wanted = [x["completion"].split("\n")[0] for x in tare("generate", [{"text": row["question"]} for row in ROWS], "temperature=0", "group_size=1",
                                                       "max_new_tokens=12")]
    got = [x["resps"][0][0] for x in lines]
    assert got == wanted, [(g, w) for g, w in zip(got, wanted) if g != w][:3]
    assert len(set(wanted)) > 1, wanted
    assert result["exact_match,none"] == sum(w == row["answer"] for w, row in zip(wanted, ROWS)) / len(ROWS)


def test_loglikelihood():
    lines, result = evaluated("tare_choose")
    right, worst = 0, 0
    for line, row in zip(lines, ROWS):
        texts = [row["question"]] + [row["question"] + " " + choice for choice in row["choices"]]
        context, *ids = (x["ids"] for x in tare("tokenize", [{"text": t} for t in texts]))
        scored = [x["logprobs"] for x in tare("score", [{"ids": x} for x in ids])]
        wanted = [sum(x[len(context) - len(whole):]) for x, whole in zip(scored, ids)]
        got = [float(r[0][0]) for r in line["resps"]]
        worst = max([worst] + [abs(a - b) for a, b in zip(got, wanted)])
        right += wanted.index(max(wanted)) == row["choices"].index(row["answer"])
    assert worst < 1e-4, worst
    assert result["acc,none"] == right / len(ROWS), (result, right)


if __name__ == "__main__":
    with open("rows.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in ROWS)
    run([test_generate_until, test_loglikelihood])
