"""Compares the verifier ifeval with the published program on generated responses: every instruction, strict and loose.

  verify_ifeval.py --reference FOLDER [--tare build/tare] [--responses 4000] [--seed 1]

FOLDER has instructions.py, instructions_registry.py, instructions_util.py and utils.py of lm-evaluation-harness (lm_eval/tasks/ifeval), which
are Google's; requires langdetect, nltk and immutabledict. One instruction is checked per response. Instructions that need nltk's trained
splitter or langdetect are compared only if both are certain: sentences that end in a letter, a punctuation mark and a blank before a
capital, and texts in a distinct script. Words are split by nltk's Treebank rules in sentences of its untrained splitter, and counted by
Python's re (nltk 3.10 uses the package regex instead, which does not count an exponent as a word). --golden FILE writes the shorter
responses with the reference's verdicts, for the tests.
"""
import argparse
import collections
import importlib
import json
import random
import re
import subprocess
import sys
import types

WORDS = ["the", "Answer", "is", "NASA", "I'M", "don't", "DON'T", "it's", "well-known", "U.S.", "3.14", "1,000", "A", "I", "ok", "été", "Straße", "GRÜN", "naïve_x", "data", "Data", "DATA", "café", "x2", "10", "WORLD.", "end", "—", "…", "ﬁn", "ǅ", "²", "ªb", "I'LL", "Mr", "e.g"]
PIECES = ["*", "**", "***", "******", "* point\n", "*\n", "- item\n", "  * deep\n", " -x\n", "*bold*", "**bold**", "** **", "* *", "[name]", "[", "]", "[a [b]", "<<title>>", "<<<>>>", "<< >>", "<<", ">>", "\"", "'", ",", ".", "! ", "? ", "\n", "\n\n", "\n\n\n", " ", "\t",
          "\u00a0", "\u2003", "\x0b", "\r\n", "P.S. more", "p. s. x", "P.P.S", "p.p. s", "Section 1", "SECTION 2\n", "Section3", "section 4", "My answer is yes.", "My answer is maybe", "```json\n", "```", "```JSON", "{", "}", "{\"a\": 1}", "[1, 2]", "NaN", "null", "Any other questions?",
          "\"The end\"", "First", "first,", "'first'", "\"First\"", "$5", "a/b", "(YES)", "NO!", "A.B.", "Repeat THIS ", "µ", "K", "!", "--", "1:2", "a:b"]


def response(r):
    kind = r.random()
    if kind < 0.08:
        return r.choice(["", "```json\n", "```", " ```JSON "]) + json.dumps(r.choice([{"a": [1, 2.5e3, None, "x\n\u1234"]}, [], {}, "text", 1, -0.5, True, [[[]]], {"k": {"l": []}}]), ensure_ascii=r.random() < 0.5) + r.choice(["", "```", "\n```\n", ",", " x"])
    if kind < 0.14:
        return "".join(r.choice("[]{},:\"\\u01e.-+ aN\n") for _ in range(r.randint(1, 12)))
    text = "".join((r.choice(PIECES) if r.random() < 0.45 else r.choice(WORDS) + r.choice([" ", " ", " ", ", ", ". ", "\n"])) for _ in range(r.randint(1, 40)))
    if kind < 0.24:
        text = r.choice([text.upper(), text.lower()])
    if kind > 0.92:
        text = r.choice(["\"", " \"", ""]) + text + r.choice(["\"", "\" ", "Any other questions?", "any other QUESTIONS?\""])
    if kind > 0.85:
        text = r.choice(["Repeat this", " repeat THIS", "First "]) + text
    return text


FOCUS = {
    "two_responses": ["one", "two", "******", "******", " ", "\n", "*"], "number_placeholders": ["[", "]", "[a]", "[b c]", "\n", "x"], "number_bullet_lists": ["* a\n", "- b\n", "*\n", "**\n", " * c\n", "\n", "text\n", "\u00a0- d\n", "*"],
    "number_highlighted_sections": ["*", "**", "a", " ", "\n", "*b*", "**c**"], "title": ["<", ">", "<<", ">>", "a", " ", "\n"], "multiple_sections": ["Section 1", "SECTION 2", " Part\u00a03", "Section", " ", "4", "\n", "section 5"],
    "number_paragraphs": ["one", "***", " *** ", "two", "\n", "****"], "nth_paragraph_first_word": ["first", "'First'", "The", "\"the", "Answer,", "\n\n", "\n\n", "\n", " "], "json_format": ["{", "}", "[", "]", "\"a\"", ":", ",", "1", "-0.5e3", "true", " "],
    "end_checker": ["end.", "The end", "\"", " ", "Any other questions?", "\n", "*"], "quotation": ["\"", "\"", "a", " ", "\n", "*"], "postscript": ["p.", "P.", "s.", "S.", " ", "\n", "PS:", "a"], "constrained_response": ["My answer is ", "yes.", "no.", "maybe.", "\n", "*"],
    "existence": ["data", "end", "Café", "CAFÉ", "straße", "is", "answer", " ", "STRASSE"], "forbidden_words": ["data", "end", "x2", "café", "i", "on", "_", "-", " ", "é"], "repeat_prompt": ["Repeat this", "repeat THIS", " ", "\n", "*", "x"],
}


def focused(r, kind):
    pieces = FOCUS.get(kind.split(":")[1])
    return "".join(r.choice(pieces) for _ in range(r.randint(1, 9))) if pieces and r.random() < 0.6 else plain(r, kind)


def arguments(r, kind):
    number, relation = r.choice([1, 1, 2, 2, 3, 4, 6]), r.choice(["less than", "at least"])
    name = kind.split(":")[1]
    return {
        "existence": {"keywords": r.sample(["data", "end", "café", "straße", "is", "answer"], 2)}, "frequency": {"keyword": r.choice(["data", " is", "é", "a"]), "frequency": number, "relation": relation},
        "forbidden_words": {"forbidden_words": r.sample(["data", "end", "x2", "café", "i", "on"], 2)}, "letter_frequency": {"letter": r.choice("aeisTk"), "let_frequency": number, "let_relation": relation},
        "response_language": {"language": r.choice(["th", "ta", "ko", "he"])}, "number_sentences": {"num_sentences": number, "relation": relation}, "number_paragraphs": {"num_paragraphs": number},
        "number_words": {"num_words": r.randint(1, 40), "relation": relation}, "nth_paragraph_first_word": {"num_paragraphs": number, "nth_paragraph": r.randint(1, number), "first_word": r.choice(["first", "The", "answer"])},
        "number_placeholders": {"num_placeholders": number}, "postscript": {"postscript_marker": r.choice(["P.S.", "P.P.S", "PS:"])}, "number_bullet_lists": {"num_bullets": number}, "number_highlighted_sections": {"num_highlights": number},
        "multiple_sections": {"section_spliter": r.choice(["Section", "SECTION", "Part"]), "num_sections": r.randint(1, 3)}, "repeat_prompt": {"prompt_to_repeat": r.choice(["Repeat this", "repeat THIS "])},
        "end_checker": {"end_phrase": r.choice(["Any other questions?", "end.", "The end"])}, "capital_word_frequency": {"capital_frequency": number, "capital_relation": relation},
    }.get(name, {})


def plain(r, kind):
    """A response on which nltk and langdetect are certain."""
    if kind == "language:response_language":
        return r.choice(["สวัสดีครับ วันนี้อากาศดีมากและเราจะไปตลาด", "வணக்கம் இன்று வானிலை நன்றாக உள்ளது", "안녕하세요 오늘은 날씨가 아주 좋습니다", "שלום היום מזג האוויר יפה מאוד", "The weather is very nice today and we go to the market."])
    if kind == "length_constraints:number_sentences":
        return " ".join("%s %s%s" % (r.choice(["The dog", "A cat", "Nobody"]), r.choice(["sleeps", "runs away", "eats"]), r.choice([".", "!", "?"])) for _ in range(r.randint(1, 8)))
    if kind.startswith("template_change_case:english"):
        text = "the weather is very nice today and we will go to the market with all of our friends"
        return r.choice([text, text.upper(), text.capitalize(), text + " 5!", text.upper() + " §"])
    return response(r)


def load(folder):
    import nltk
    nltk.data.find = lambda *a, **k: True
    for name in ("lm_eval", "lm_eval.tasks", "lm_eval.tasks.ifeval"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [folder]
    util = importlib.import_module("lm_eval.tasks.ifeval.instructions_util")
    tokenizer = nltk.tokenize.NLTKWordTokenizer()
    util.count_words = lambda text: len(re.findall(r"\w+", text))
    splitter = nltk.tokenize.PunktSentenceTokenizer()
    util.count_sentences = lambda text: len(splitter.tokenize(text))
    util.nltk.word_tokenize = lambda text: [word for sentence in splitter.tokenize(text) for word in tokenizer.tokenize(sentence)]
    import langdetect
    langdetect.DetectorFactory.seed = 0
    return importlib.import_module("lm_eval.tasks.ifeval.instructions_registry"), importlib.import_module("lm_eval.tasks.ifeval.utils")


def golden(path, rows):
    """For each instruction, some responses that follow it, strictly or only loosely, and some that do not."""
    taken = collections.Counter()
    with open(path, "w", encoding="utf-8") as f:
        for row in rows:
            which = row["instruction_id_list"][0], row["strict"], row["loose"]
            if taken[which] < 5 and len(row["completion"]) < 120:
                taken[which] += 1
                print(json.dumps({k: row[k] for k in ("completion", "instruction_id_list", "kwargs", "strict", "loose")}), file=f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--reference", required=True)
    p.add_argument("--tare", default="build/tare")
    p.add_argument("--responses", type=int, default=4000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--golden")
    a = p.parse_args()
    registry, utils = load(a.reference)
    r, rows, kinds = random.Random(a.seed), [], sorted(registry.INSTRUCTION_DICT)
    for i in range(a.responses):
        kind = kinds[i % len(kinds)]
        rows.append({"id": i, "completion": focused(r, kind), "answer": "", "instruction_id_list": [kind], "kwargs": [arguments(r, kind)]})
    total, other = collections.Counter(), collections.Counter()
    for mode, reference in (("strict", utils.test_instruction_following_strict), ("loose", utils.test_instruction_following_loose)):
        done = subprocess.run([a.tare, "verify", "ifeval", "mode=" + mode, "thought=true", "--threads", "1"], input="".join(json.dumps(x) + "\n" for x in rows), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit("tare verify ended with %d: %s" % (done.returncode, done.stderr))
        for row, line in zip(rows, done.stdout.splitlines()):
            kind, have = row["instruction_id_list"][0], json.loads(line)["reward"] == 1
            want = reference(utils.InputExample(key=row["id"], instruction_id_list=row["instruction_id_list"], prompt="", kwargs=row["kwargs"]), row["completion"]).follow_all_instructions
            total[kind, want] += 1
            row[mode] = want
            if have != want:
                other[kind] += 1
                print("%s %s: %r %r: the reference says %s" % (mode, kind, row["completion"], row["kwargs"][0], want))
    if a.golden:
        golden(a.golden, rows)
    for kind in kinds:
        print("%-45s followed %4d, not %4d, differs %d" % (kind, total[kind, True], total[kind, False], other[kind]))
    print("%d responses, strict and loose, seed %d: %d of %d verdicts differ" % (a.responses, a.seed, sum(other.values()), sum(total.values())))
    sys.exit(sum(other.values()) > 0)


main()
