#!/usr/bin/env python3
"""Tasks of reasoning-gym (PyPI) as rows and as a reward.

    tools/reasoning_tasks.py TASK [TASK ...] -o FILE [--rows N] [--seed S] [--examples K] [--set TASK.KEY=VALUE ...]
    tools/reasoning_tasks.py --list

writes N rows (100) of each task, in turn, as JSON lines: question, answer, subject (the task) and entry (the task's own data, as
JSON text), which its score needs. With --examples a row's messages are K solved questions of the task, the same in all rows, and then the
question. --set changes a task's settings. The same seed gives the same rows. As the file of the verifier
python it scores a completion with the task's own function:

    [verifier]
    plugins = python
    [verifier.python]
    file = tools/reasoning_tasks.py

The answer is the text between the last <answer> and </answer>, or the whole completion. The reward is the task's score, from 0 to 1;
0 where the score raises an error because it cannot read the answer.
"""
import argparse
import functools
import json
import sys


@functools.cache
def scorer(task):
    from reasoning_gym import get_score_answer_fn
    return get_score_answer_fn(task)


def answer_of(completion):
    head, tag, rest = completion.rpartition("<answer>")
    return rest.partition("</answer>")[0].strip() if tag else completion.strip()


def score(task, answer, entry):
    try:
        return float(scorer(task)(answer, entry))
    except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, SyntaxError):
        return 0.0  # some scores cannot read what is no answer


def reward(completions, subject, entry, **_):
    return [score(task, answer_of(text), json.loads(e)) for text, task, e in zip(completions, subject, entry)]


def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def examples(task, k, seed, settings):
    import reasoning_gym
    solved = reasoning_gym.create_dataset(task, size=k, seed=seed + 1000003, **settings) if k else ()
    return [m for e in solved for m in ({"role": "user", "content": e["question"]}, {"role": "assistant", "content": str(e["answer"])})]


def rows(task, args, settings):
    import reasoning_gym
    n, seed, solved = args.rows, args.seed, examples(task, args.examples, args.seed, settings)
    for i, entry in enumerate(reasoning_gym.create_dataset(task, size=n, seed=seed, **settings)):
        if entry["answer"] is None:
            sys.exit("reasoning_tasks.py: %s: row %d has no answer" % (task, i))
        row = {"id": "%s-%d-%d" % (task, seed, i), "question": entry["question"], "answer": str(entry["answer"]), "subject": task,
               "entry": json.dumps(entry, default=str)}
        if solved:
            row["messages"] = solved + [{"role": "user", "content": entry["question"]}]
        yield row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("task", nargs="*")
    p.add_argument("-o", "--out")
    p.add_argument("--rows", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--examples", type=int, default=0)
    p.add_argument("--set", action="append", default=[], metavar="TASK.KEY=VALUE")
    p.add_argument("--list", action="store_true")
    args = p.parse_args()
    try:
        from reasoning_gym.factory import DATASETS
    except ImportError:
        sys.exit("reasoning_tasks.py: the package is not installed; run: pip install reasoning-gym")
    if args.list:
        return print("\n".join(sorted(DATASETS)))
    if not args.task or not args.out or args.rows < 1:
        p.error("a task, -o FILE and at least one row are needed")
    unknown = [t for t in args.task if t not in DATASETS]
    if unknown:
        sys.exit("reasoning_tasks.py: no task named %s; --list shows all" % unknown[0])
    settings = {t: {} for t in args.task}
    for pair in args.set:
        name, equal, value = pair.partition("=")
        task, dot, key = name.partition(".")
        if not equal or not dot or task not in settings:
            sys.exit("reasoning_tasks.py: --set %s: must be TASK.KEY=VALUE with one of the tasks" % pair)
        settings[task][key] = value_of(value)
    try:
        made = [list(rows(t, args, settings[t])) for t in args.task]
    except (TypeError, ValueError, AssertionError) as error:  # a setting that the task refuses
        sys.exit("reasoning_tasks.py: %s" % error)
    with open(args.out, "w", encoding="utf-8") as f:
        for in_turn in zip(*made):
            for row in in_turn:
                f.write(json.dumps(row, ensure_ascii=False) + "\n")
    print("%s: %d rows" % (args.out, sum(map(len, made))))


if __name__ == "__main__":
    main()
