#!/usr/bin/env python3
"""Converts data sets to the JSONL rows that tare reads: {"id", "question", "answer"} and, if there are columns for them, choices, level,
subject, completion.

    tools/to_jsonl.py FILE.parquet -o OUT.jsonl --question problem --answer answer
    tools/to_jsonl.py hf:openai/gsm8k:main --split test -o gsm8k.jsonl --question question --answer answer --after '####'
    tools/to_jsonl.py hf:Idavidrein/gpqa:gpqa_diamond --split train -o gpqa.jsonl --question Question \\
        --choices-from 'Correct Answer' 'Incorrect Answer 1' 'Incorrect Answer 2' 'Incorrect Answer 3' --subject 'High-level domain'
    tools/to_jsonl.py mmlu_pro/*.parquet -o mmlu_pro.jsonl --question question --choices options --answer answer --subject category
    tools/to_jsonl.py trl.jsonl -o train.jsonl --question prompt --answer solution --keep solution
    tools/to_jsonl.py verl.parquet -o train.jsonl --question prompt.-1.content --answer reward_model.ground_truth
    tools/to_jsonl.py completions_00012.parquet -o completions_00012.jsonl --rows

--rows writes every column unchanged, for `tare audit`: TRL's Parquet files, and the samples saved by slime (.pt; loaded by torch, restricted to
numbers and texts).

A question may be a text or a list of messages ({"role", "content"}). A column is a name, or a path into nested values: prompt.-1.content is the last
element of the list `prompt`, its `content`.
Sources: .parquet (pyarrow, or pandas with one of its engines), .pt, .jsonl, .json (a list), .csv (nothing to install), and hf:NAME[:CONFIG]
(the package `datasets`; it downloads). Rows without a question or an answer are left out; each is named with its reason (the first 20) and counted. --strict makes them an error.
"""
import argparse
import csv
import json
import math
import os
import re
import sys
import tempfile

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def die(message):
    sys.exit(f"to_jsonl: {message}")


def parquet_rows(path):
    try:
        import pyarrow.parquet as pq
    except ImportError:
        try:
            import pandas
            frame = pandas.read_parquet(path)
        except ImportError:
            die(f"{path}: reading Parquet needs pyarrow (pip install pyarrow), or pandas with fastparquet")
        yield from frame.to_dict(orient="records")
        return
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1024):
        yield from batch.to_pylist()


def torch_rows(path):
    try:
        import torch
    except ImportError:
        die(f"{path}: reading it needs torch (pip install torch)")
    saved = torch.load(path, map_location="cpu", weights_only=True)
    samples = saved.get("samples") if isinstance(saved, dict) else None
    if not isinstance(samples, list):
        die(f"{path}: a dictionary with a list `samples` is expected, as slime's --save-debug-rollout-data writes it")
    yield from samples


def jsonl_rows(path):
    with open(path, encoding="utf-8-sig") as f:
        for number, line in enumerate(f, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    die(f"{path}:{number}: {error}")


def json_rows(path):
    with open(path, encoding="utf-8-sig") as f:
        try:
            rows = json.load(f)
        except json.JSONDecodeError as error:
            die(f"{path}: {error}; a file of one object a line is named .jsonl")
    if not isinstance(rows, list):
        die(f"{path}: a list of objects is expected")
    yield from rows


def csv_rows(path):
    csv.field_size_limit(1 << 30)
    with open(path, encoding="utf-8-sig", newline="") as f:
        yield from csv.DictReader(f)


def hub_rows(source, split):
    try:
        from datasets import load_dataset
    except ImportError:
        die(f"{source}: a data set of the Hub needs the package datasets (pip install datasets); or download its Parquet files and give those")
    name, _, config = source[3:].partition(":")
    yield from load_dataset(name, config or None, split=split)


def rows_of(source, split):
    if source.startswith("hf:"):
        return hub_rows(source, split)
    readers = {".parquet": parquet_rows, ".pt": torch_rows, ".jsonl": jsonl_rows, ".json": json_rows, ".csv": csv_rows}
    for ending, reader in readers.items():
        if source.lower().endswith(ending):
            return reader(source)
    die(f"{source}: .parquet, .jsonl, .json, .csv, .pt, or hf:NAME[:CONFIG] is expected")


def look_up(row, path):
    """Value of a column, or of a path through nested lists and objects; None if absent."""
    if isinstance(row, dict) and path in row:
        return row[path]
    value = row
    for part in path.split("."):
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, (list, tuple)) and re.fullmatch(r"-?\d+", part):
            try:
                value = value[int(part)]
            except IndexError:
                return None
        else:
            return None
    return value.tolist() if hasattr(value, "tolist") else value


def last_box(text):
    """Content of the last complete \\boxed{...}, or None."""
    for start in reversed([m.end() for m in re.finditer(r"\\f?boxed\s*\{", text)]):
        depth = 1
        for i in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[i], 0)
            if depth == 0:
                return text[start:i].strip()
    return None


def answer_of(value, options):
    if value is None:
        return None
    if isinstance(value, bool):
        value = str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float) and value == int(value):
        value = int(value)
    if isinstance(value, (list, tuple)):
        value = ", ".join(str(v) for v in value)
    text = str(value)
    if options.boxed:
        return last_box(text)
    if options.after:
        if options.after not in text:
            return None
        text = text.rsplit(options.after, 1)[1].strip()
        if re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
            text = text.replace(",", "")
    return text.strip() or None


def choices_of(row, options):
    """Returns (choices, letter of the answer or None); (None, None) for rows without choices."""
    if options.choices_from:
        choices = [look_up(row, column) for column in options.choices_from]
        if any(c is None for c in choices):
            return None, None
        return [str(c).strip() for c in choices], "A"
    if not options.choices:
        return None, None
    value = look_up(row, options.choices)
    if isinstance(value, dict) and "text" in value:  # ARC: {"text": [...], "label": [...]}
        labels, texts = list(value.get("label", [])), [str(t) for t in value["text"]]
        key = str(look_up(row, options.answer))
        return texts, LETTERS[labels.index(key)] if key in labels else None
    if not isinstance(value, (list, tuple)):
        return None, None
    choices = [str(c) for c in value]
    answer = look_up(row, options.answer)
    if isinstance(answer, int) and not isinstance(answer, bool) and 0 <= answer < len(choices):
        return choices, LETTERS[answer]
    text = str(answer).strip()
    if len(text) == 1 and text.upper() in LETTERS[:len(choices)]:
        return choices, text.upper()
    return choices, LETTERS[choices.index(text)] if text in choices else None


def plain(value):
    """Converts a value for JSON: NaN becomes null, tensors and arrays become lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def is_chat(value):
    """A list of messages, as TRL's conversational data has in `prompt`."""
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "role" in m and "content" in m for m in value)


class LeftOut(Exception):
    """A row that cannot be trained on. The arguments: the reason, and what is special to this row."""

    def __str__(self):
        return "".join(map(str, self.args))


def shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_question(row, options):
    question = look_up(row, options.question)
    if is_chat(question):
        users = [m for m in question if m["role"] == "user"]
        if not users or not str(users[-1]["content"] or "").strip():
            raise LeftOut(f"the messages in {options.question} have no question of the user")
        return question
    if question is None:
        raise LeftOut(f"no question: {options.question} is missing or null")
    if not isinstance(question, str):
        raise LeftOut(f"no question: {options.question} is not a text", f": {shown(question)}")
    if not question.strip():
        raise LeftOut(f"no question: {options.question} is empty or blank")
    return question


def no_choices(row, options, choices):
    columns = options.choices or " ".join(options.choices_from)
    if not choices:
        return LeftOut(f"no options in {columns}")
    if len(choices) > len(LETTERS):
        return LeftOut(f"more than {len(LETTERS)} options in {columns}", f": {len(choices)}")
    return LeftOut(f"the answer in {options.answer} is none of the options", f": {shown(look_up(row, options.answer))}")


def no_answer(row, options):
    value = look_up(row, options.answer)
    if value is None:
        return LeftOut(f"no answer: {options.answer} is missing or null")
    if options.boxed:
        return LeftOut(f"no answer: no \\boxed{{}} in {options.answer}", f": {shown(value)}")
    if options.after and options.after not in str(value):
        return LeftOut(f"no answer: no {options.after} in {options.answer}", f": {shown(value)}")
    return LeftOut(f"no answer: {options.answer} is empty", f": {shown(value)}")


def convert(row, number, options):
    if options.rows:
        return plain(row)
    question = check_question(row, options)
    chat = is_chat(question)
    given = look_up(row, options.id) if options.id else None
    out = {"id": str(given) if given is not None else f"{options.prefix}{number}", "messages" if chat else "question": question}
    choices, letter = choices_of(row, options)
    if options.choices or options.choices_from:
        if not choices or not letter or len(choices) > len(LETTERS):
            raise no_choices(row, options, choices)
        out["choices"], out["answer"] = choices, letter
    elif options.answer:
        out["answer"] = answer_of(look_up(row, options.answer), options)
        if out["answer"] is None:
            raise no_answer(row, options)
    for name in ("level", "subject", "completion"):
        value = look_up(row, getattr(options, name)) if getattr(options, name) else None
        if isinstance(value, str) and name == "level" and re.fullmatch(r"Level [1-9]", value):
            value = int(value[6:])
        if value is not None and value != "":
            out[name] = value if isinstance(value, (str, int, float)) else str(value)
    if options.completion and "completion" not in out:
        raise LeftOut(f"no completion: {options.completion} is missing or empty")
    for name in options.keep:
        if look_up(row, name) is not None:
            out[name] = look_up(row, name)
    return out


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("source", nargs="+")
    p.add_argument("-o", "--out", required=True, help="JSONL file; - for standard output")
    p.add_argument("--split", default="train", help="split of hf: sources")
    p.add_argument("--rows", action="store_true", help="write every column unchanged")
    p.add_argument("--question", default="question")
    p.add_argument("--answer", default="answer", help="column of the answer; '' for rows without one")
    p.add_argument("--boxed", action="store_true", help="the answer is the last \\boxed{} in its column")
    p.add_argument("--after", help="the answer follows the last of these marks in its column (GSM8K: '####')")
    p.add_argument("--choices", help="column with the list of options; the answer is a letter, an index, or the text of one")
    p.add_argument("--choices-from", nargs="+", metavar="COLUMN", help="columns of the options; the first is correct (tare permutes them)")
    p.add_argument("--id")
    p.add_argument("--prefix", default="row-", help="prefix of generated ids")
    p.add_argument("--level")
    p.add_argument("--subject")
    p.add_argument("--completion")
    p.add_argument("--keep", action="append", default=[], metavar="COLUMN", help="column to keep in the rows for a reward function; may be repeated")
    p.add_argument("--limit", type=int, default=0)
    p.add_argument("--strict", action="store_true", help="an unusable row is an error")
    return p.parse_args()


SHOWN = 20  # rows that are named one by one


class Report:
    """Names the rows that were left out, and counts them for each reason."""

    def __init__(self):
        self.reasons = {}

    def add(self, where, why):
        if sum(self.reasons.values()) < SHOWN:
            print(f"to_jsonl: {where}: left out: {why}", file=sys.stderr)
        self.reasons[why.args[0]] = self.reasons.get(why.args[0], 0) + 1

    def end(self, written):
        left_out = sum(self.reasons.values())
        lines = [f"to_jsonl: {n} row{'s' if n != 1 else ''} left out: {reason}" for reason, n in self.reasons.items()]
        return "\n".join([*lines, f"to_jsonl: {written + left_out} rows read, {written} written, {left_out} left out"])


def write(options, out):
    number = written = 0
    columns, report = [], Report()
    for source in options.source:
        for place, row in enumerate(rows_of(source, options.split), 1):
            if options.limit and written == options.limit:
                break
            if not isinstance(row, dict):
                die(f"{source}: row {place} is not an object with columns")
            columns = columns or list(map(str, row))
            number += 1
            try:
                converted = convert(row, number - 1, options)
            except LeftOut as why:
                if options.strict:
                    die(f"{source}: row {place}: {why}; its columns: {', '.join(map(str, row))}")
                report.add(f"{source}: row {place}", why)
                continue
            out.write(json.dumps(converted, ensure_ascii=False) + "\n")
            written += 1
    if not written:
        die(f"no row was written: none has a question ({options.question}) and an answer ({options.answer}); the first one's columns: "
            f"{', '.join(columns) or 'there is no row'}. --question and --answer name columns; --answer '' is for rows without an answer")
    out.flush()
    return report.end(written)


def write_whole(options):
    """Writes a temporary file next to OUT and renames it when it is complete."""
    path = os.path.realpath(options.out)
    if any(os.path.exists(path) and os.path.exists(s) and os.path.samefile(path, s) for s in options.source):
        die(f"{options.out} is a source; name another file")
    if os.path.isdir(path):
        die(f"{options.out} is a folder; name a file")
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe or a device
        with open(path, "w", encoding="utf-8") as out:
            return write(options, out)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path), prefix=".to_jsonl-", delete=False) as out:
        try:
            told = write(options, out)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(out.name, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask)
            os.replace(out.name, path)
        except BaseException:
            os.unlink(out.name)
            raise
    return told


def main():
    options = arguments()
    if options.limit < 0:
        die(f"--limit {options.limit}: a number of rows, 0 for all")
    try:
        told = write(options, sys.stdout) if options.out == "-" else write_whole(options)
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    except OSError as error:
        die(f"{error.filename or options.out}: {error.strerror or error}")
    except UnicodeDecodeError as error:
        die(f"a source is not UTF-8 text: {error}")
    except KeyboardInterrupt:
        die("interrupted; nothing was written")
    print(told, file=sys.stderr)


if __name__ == "__main__":
    main()
