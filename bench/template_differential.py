#!/usr/bin/env python3
"""tare's chat templates against jinja2, set up as transformers sets it up, on random templates and data.

usage: bench/template_differential.py PROGRAM COUNT [--seed N] [--show N] [--out FILE]
PROGRAM is bench/template_differential.c, built (its head says how). COUNT templates are made by a grammar of what chat templates use (loops
over messages, conditions, set, namespaces, white space control, filters, tests, slices, methods), each with data of its own; some are hostile: values of
another type than a filter expects, undefined names, text with quotes, escapes and any script. Wanted is the same text, or an error on both sides. Prints
the number of each outcome, and the first --show (10) differences of each kind; --out FILE gets all differences as cases of
tests/unit/template/template_cases.jsonl. Exit status 1 when there are any.
Needs: pip install jinja2
"""
import argparse
import collections
import datetime
import json
import random
import re
import signal
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

BATCH = 2000
WORDS = ["user", "assistant", "system", "tool", "", " ", "a", "b", "Hello, world", "<think>\nabc\n</think>\n\nyo", "it's", 'say "x"', "é", "日本語", "🙂", "a,b,,c", "  pad \t",
         "one\ntwo\r\nthree\n\nfour\n", "</think>", "{{ x }}", "\\", "\u2028", "\u00a0x\u3000", "0", "12", "-3", "1.5", "1e3", "1_000", " 2.5 ", "\u0663", "True", "None", "<s>", "<|im_start|>", "ß", "İ", "ǆ", "ﬁ", "Σας",
         "e\u0301", "\x7f", "\u200b", "\t"]
NAMES = ["x", "y", "n", "f", "t", "u", "l", "d", "e", "messages", "tools", "bos_token", "add_generation_prompt", "nope", "ns", "m", "loop", "k", "v"]
KEYS = ["role", "content", "name", "a", "b", "c", "z", "tool_calls", "function", "arguments", "items", "nope", "it's"]
TEXT_FILTERS = ["trim", "lower", "upper", "title", "capitalize", "string", "length", "tojson", "list", "first", "last", "reverse", "indent", "indent(2)", "indent(2, true)",
                "indent(1, true, true)", "replace('a', 'bb')", "replace('a', 'bb', 1)", "default('d')", "default('d', true)", "int", "int(7)", "join(',')", "count", "d('q')",
                "trim('ab ')", "map('upper')|list", "select|list"]
LIST_FILTERS = ["length", "tojson", "tojson(indent=2)", "list", "first", "last", "reverse|list", "join(',')", "join", "map('string')|list", "map('length')|list", "select|list",
                "select('string')|list", "reject('none')|list", "reject|list", "select('equalto', 1)|list", "select('in', [1, 2])|list", "string", "default([])", "map('int')|list",
                "map(attribute='role')|list", "selectattr('role', 'equalto', 'user')|list", "selectattr('role')|list", "rejectattr('content', 'none')|list", "selectattr('a', 'defined')|list",
                "map('trim')|list", "map('tojson')|join('-')"]
DICT_FILTERS = ["length", "tojson", "tojson(indent=4)", "list", "items|list", "string", "first", "default({})", "tojson|length", "items|first", "map('upper')|list"]
NUMBER_FILTERS = ["int", "string", "abs", "tojson", "default(3)", "length", "d(1, true)", "trim", "upper", "list"]
TESTS = ["defined", "undefined", "none", "string", "boolean", "integer", "float", "number", "mapping", "iterable", "sequence", "true", "false", "even", "odd", "divisibleby 3",
         "equalto 'user'", "eq(1)", "ne(none)", "lt(3)", "gt 2", "in ['user', 1]", "divisibleby(2)", "lessthan 4", "greaterthan(1)"]
METHODS = ["strip()", "lstrip()", "rstrip()", "strip('ab ')", "lstrip('\\n')", "rstrip('\\n')", "lower()", "upper()", "title()", "capitalize()", "startswith('a')", "endswith('b')",
           "startswith(('a', 'u'))", "endswith(('t', 'b'))", "removeprefix('a')", "removesuffix('b')", "find('a')", "rfind('a')", "count('a')", "count('')", "replace('a', '--')",
           "replace('a', '--', 1)", "split()", "split(',')", "split(',', 1)", "split('</think>')[-1]", "split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')",
           "rsplit(',', 1)", "rsplit(',')", "splitlines()", "split(none, 1)", "join(['x', 'y'])", "find('zz')", "split('\\n')|length"]
DICT_METHODS = ["keys()|list", "values()|list", "items()|list", "get('a')", "get('nope')", "get('nope', 'x')", "get('role', 1)", "items()|list|last", "keys()|first", "values()|join('-')", "items()|first"]


class Maker:
    def __init__(self, rng):
        self.r = rng
        self.depth = 0
        self.loops = 0  # around what is made

    def one(self, *choices):
        return self.r.choice(choices)()

    def literal(self, text):
        quote = self.r.choice("'\"")
        out = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\0", "").replace(quote, "\\" + quote)
        return quote + out + quote

    def text(self):
        r = self.r.random()
        if self.depth > 4 or r < .3:
            return self.literal(self.r.choice(WORDS))
        if r < .55:
            return self.r.choice(["x", "x", "e", "bos_token", "messages[0].content", "messages[0]['role']"] + (["m.content", "m.content", "m['role']"] if self.loops else []))
        if r < .65:
            return self.paren(f"{self.expr('text')} {self.r.choice('+~')} {self.any_or('text')}")
        if r < .75:
            return f"{self.atom('text')}.{self.r.choice(METHODS)}"
        if r < .85:
            return f"{self.atom('text')}|{self.r.choice(TEXT_FILTERS)}"
        if r < .92:
            return f"{self.atom('text')}{self.slice()}"
        return self.paren(f"{self.expr('text')} if {self.expr('bool')} else {self.expr('text')}")

    def number(self):
        r = self.r.random()
        if self.depth > 4 or r < .3:
            return self.r.choice(["0", "1", "2", "3", "7", "10", "-1", "1.5", "0.1", "2.0", "1e3", "1_000", "100000", "0.30000000000000004", "12345678901234", "1e22", "-0.0"])
        if r < .5:
            return self.r.choice(["n", "n", "f", "messages|length", "x|length", "l|length"] + (["loop.index", "loop.index0", "loop.length", "loop.revindex"] if self.loops else []))
        if r < .75:
            if self.r.random() < .15:  # of a text it would be Python's formatting, which is not there
                return self.paren(f"({self.expr('number')})|int % {self.r.choice(['3', '-2', '2.5', '0.1', '-0.3', '7'])}")
            return self.paren(f"{self.expr('number')} {self.r.choice(['+', '-', '*', '//', '/', '~'])} {self.any_or('number')}")
        if r < .85:
            return f"{self.atom('number')}|{self.r.choice(NUMBER_FILTERS)}"
        if r < .92:
            return "-" + self.atom("number")
        return self.paren(f"{self.expr('number')} if {self.expr('bool')} else {self.expr('number')}")

    def bool(self):
        r = self.r.random()
        if self.depth > 4 or r < .12:
            return self.r.choice(["true", "false", "True", "False", "t", "add_generation_prompt", "none", "None"] + (["loop.first", "loop.last"] if self.loops else []))
        if r < .35:
            return f"({self.atom(self.kind())} is {self.r.choice(['', '', 'not '])}{self.r.choice(TESTS)})"  # jinja2 reads `is none in x` otherwise
        if r < .6:
            kind = self.kind()
            more = f" {self.r.choice(['<', '=='])} {self.expr(kind)}" if self.r.random() < .1 else ""
            return self.paren(f"{self.expr(kind)} {self.r.choice(['==', '!=', '<', '<=', '>', '>='])} {self.any_or(kind)}{more}")
        if r < .75:
            return self.paren(f"{self.any_or('text')} {self.r.choice(['in', 'not in'])} {self.expr(self.r.choice(['text', 'list', 'dict']))}")
        if r < .9:
            return self.paren(f"{self.any_or('bool')} {self.r.choice(['and', 'or'])} {self.any_or('bool')}")
        return self.paren(f"not {self.expr('bool')}")

    def list(self):
        r = self.r.random()
        if self.depth > 4 or r < .25:
            return self.r.choice(["l", "messages", "tools", "[]", "()", "[1, 'two', none]", "(1, 'two')", "('a',)", "messages[1:]", "m.tool_calls"])
        if r < .4:
            items = ", ".join(self.expr(self.kind()) for _ in range(self.r.randint(0, 3)))
            return f"[{items}]"
        if r < .5:
            items = "".join(self.expr(self.kind()) + ", " for _ in range(self.r.randint(1, 3)))
            return f"({items})"
        if r < .6:
            return f"{self.atom('list')}|{self.r.choice(LIST_FILTERS)}"
        if r < .7:
            return f"{self.atom('list')}{self.slice()}"
        if r < .8:
            return f"{self.atom('dict')}.{self.r.choice(DICT_METHODS)}"
        if r < .88:
            return f"range({', '.join(self.small() for _ in range(self.r.randint(1, 3)))})" + "|list"
        if r < .95:
            return self.paren(f"{self.expr('list')} {self.r.choice(['+', '+', '*', '~'])} {self.any_or('list')}")
        return f"{self.atom('text')}.split({self.literal(self.r.choice([',', 'a', ' ']))})"

    def dict(self):
        r = self.r.random()
        if self.depth > 4 or r < .4:
            return self.r.choice(["d", "d", "messages[0]", "messages[-1]", "{}", "{'a': 1}", "d.z"] + (["m"] if self.loops else []))
        if r < .7:
            items = ", ".join(f"{self.literal(self.r.choice(KEYS))}: {self.expr(self.kind())}" for _ in range(self.r.randint(0, 3)))
            return "{" + items + "}"
        if r < .8:
            return f"dict({', '.join(k + '=' + self.expr(self.kind()) for k in self.r.sample(['a', 'b', 'c'], self.r.randint(0, 2)))})"
        if r < .9:
            return f"{self.atom('dict')}|{self.r.choice(DICT_FILTERS)}"
        return self.paren(f"{self.expr('dict')} if {self.expr('bool')} else {self.expr('dict')}")

    def kind(self):
        return self.r.choice(["text", "text", "text", "number", "bool", "list", "dict"])

    def any_or(self, kind):
        return self.expr(self.kind() if self.r.random() < .05 else kind)

    def expr(self, kind):
        if self.r.random() < .02:
            return self.r.choice(NAMES) + self.r.choice(["", "", "." + self.r.choice(KEYS[:-1]), "['" + self.r.choice(KEYS[:-1]) + "']", "[0]", "[-1]", "[9]", "['0']", "[n]"])
        self.depth += 1
        out = getattr(self, kind)()
        self.depth -= 1
        return out

    def atom(self, kind):
        out = self.expr(kind)
        return out if re.fullmatch(r"[\w.\[\]']+|\([^()]*\)|'[^']*'", out) and not re.match(r"-|\d", out) else f"({out})"

    def paren(self, text):
        return f"({text})" if self.depth > 1 or self.r.random() < .1 else text

    def small(self):
        return self.r.choice(["0", "1", "2", "3", "5", "-1", "-2", "n", "l|length"])

    def slice(self):
        pick = lambda: self.r.choice(["", "", "0", "1", "2", "-1", "-2", "5", "n", "none"])  # noqa: E731
        r = self.r.random()
        if r < .4:
            return f"[{self.small()}]"
        return f"[{pick()}:{pick()}]" if r < .8 else f"[{pick()}:{pick()}:{self.r.choice(['', '1', '2', '-1', '-2', '-3'])}]"

    # statements
    def open(self, kind):
        return "{" + kind + self.r.choice(["", "", "-", "-", "+" if kind == "%" else ""])

    def close(self, kind):
        return self.r.choice(["", "", "-", "-", "+" if kind == "%" else ""]) + kind + "}"

    def tag(self, text):
        return f"{self.open('%')} {text} {self.close('%')}"

    def raw(self):
        return self.r.choice(["\n", " ", "  ", "\n\n", "a", "<|im_start|>", "text", "\n    ", " x\n", "\t", "é", "}", "{", "%}", "\r\n", "#", "]]"])

    def out(self):
        return f"{self.open('{')} {self.expr(self.kind())} {self.close('}')}"

    def body(self, n=3):
        self.depth += 1
        choices = [self.raw, self.raw, self.out, self.out]
        if self.depth < 4:
            choices += [self.if_, self.for_, self.set_, self.set_block, self.comment, self.ns]
        out = "".join(self.one(*choices) for _ in range(self.r.randint(0, n)))
        self.depth -= 1
        return out

    def if_(self):
        out = self.tag("if " + self.expr("bool")) + self.body()
        for _ in range(self.r.choice([0, 0, 0, 1, 2])):
            out += self.tag("elif " + self.any_or("bool")) + self.body()
        if self.r.random() < .4:
            out += self.tag("else") + self.body()
        return out + self.tag("endif")

    def for_(self):
        r = self.r.random()
        if r < .45:
            head = "for m in messages" + self.r.choice(["", "", "[1:]", "|reverse", " if m.role != 'system'", " if m.content"])
        elif r < .65:
            head = f"for k, v in {self.atom('dict')}{self.r.choice(['.items()', '|items'])}"
        elif r < .75:
            head = f"for k, v in {self.expr('list')}"
        else:
            head = f"for {self.r.choice(['m', 'k', 'y'])} in {self.expr(self.r.choice(['list', 'list', 'text', 'dict']))}"
            head += f" if {self.expr('bool')}" if self.r.random() < .15 else ""
        self.loops += head.startswith("for m in messages")
        inner = self.body(4)
        if self.r.random() < .15:
            inner += self.tag(f"if {self.expr('bool')}") + self.tag(self.r.choice(["break", "continue"])) + self.tag("endif") + self.body()
        if self.r.random() < .3:
            inner += "{{ loop." + self.r.choice(["index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "depth", "depth0", "nope"]) + " }}"
        self.loops -= head.startswith("for m in messages")
        other = self.tag("else") + self.body() if self.r.random() < .15 else ""
        return self.tag(head) + inner + other + self.tag("endfor")

    def set_(self):
        # not of a variable that is given: where jinja2 finds a name assigned later, it takes it for undefined in the blocks before
        return self.tag(f"set {self.r.choice(['q', 'p'])} = {self.expr(self.kind())}") + self.r.choice(["", "{{ p }}", "{{ q }}"])

    def set_block(self):
        name = self.r.choice(["w", "v2"])  # in it jinja2 knows nothing of an older variable of its name
        return self.tag("set " + name) + self.body() + self.tag("endset") + "{{ " + name + " }}"

    def ns(self):
        init = self.tag(f"set ns = namespace({', '.join(k + '=' + self.expr(self.kind()) for k in self.r.sample(['a', 'b'], self.r.randint(0, 2)))})") if self.r.random() < .6 else ""
        return init + self.tag(f"set ns.{self.r.choice(['a', 'b'])} = {self.expr(self.kind())}") + "{{ ns.a }}"

    def comment(self):
        return "{#" + self.r.choice(["", "-"]) + self.r.choice([" c ", "", " {{ x }} ", "\n"]) + self.r.choice(["", "-"]) + "#}"

    # data
    def value(self, depth=0):
        r = self.r.random()
        if depth > 2 or r < .45:
            return self.r.choice(WORDS).replace("\0", "")
        if r < .6:
            return self.r.choice([0, 1, 3, -2, 7, 10**12])
        if r < .68:
            return self.r.choice([1.5, 0.1, 1e-7, 1e22, 1e16, 123456.789, -0.0, 2.0])
        if r < .8:
            return self.r.choice([True, False, None])
        if r < .9:
            return [self.value(depth + 1) for _ in range(self.r.randint(0, 3))]
        return {k: self.value(depth + 1) for k in self.r.sample(KEYS, self.r.randint(0, 3))}

    def message(self):
        m = {"role": self.r.choice(["system", "user", "assistant", "tool"]), "content": self.r.choice(WORDS).replace("\0", "")}
        if self.r.random() < .2:
            m["content"] = self.value()
        if self.r.random() < .2:
            m["tool_calls"] = [{"function": {"name": "fn", "arguments": self.value(1)}}]
        if self.r.random() < .1:
            m["name"] = self.value()
        return m

    def data(self):
        v = {"messages": [self.message() for _ in range(self.r.choice([0, 1, 2, 3, 4, 5]))], "add_generation_prompt": self.r.random() < .5, "bos_token": "<s>", "eos_token": "</s>",
             "tools": self.r.choice([None, [{"name": "t", "parameters": {"a": 1}}]]), "x": self.r.choice(WORDS).replace("\0", ""), "y": self.value(), "e": "", "n": self.r.choice([0, 1, 2, 3, -1, 5]),
             "f": self.r.choice([1.5, 0.1, 2.0, -0.5, 1e-7, 1e16]), "t": self.r.random() < .5, "u": None, "l": [self.value(1) for _ in range(self.r.randint(0, 4))],
             "d": {k: self.value(1) for k in self.r.sample(KEYS, self.r.randint(0, 4))}}
        return v


def environment():
    """As transformers' chat_template_utils makes it."""
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols], cache_size=0)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(1700000000, datetime.timezone.utc).strftime(form)
    return env


def theirs(env, row):
    try:
        template = env.from_string(row["template"])
    except jinja2.exceptions.TemplateError as e:
        return {"refused": str(e)}
    except RecursionError:
        return {"refused": "recursion"}
    try:
        text = template.render(**row["variables"])
        text.encode()
        return {"text": text}
    except Exception as e:  # noqa: BLE001  Python's own errors come out of a template, too
        return {"error": f"{type(e).__name__}: {e}"}


# What Python prints of its own objects has no meaning in a prompt, and tare refuses it: methods, iterators, dict views, namespaces, the loop's own object.
OBJECTS = re.compile(r"<(generator object|bound method|built-in method|function|method-wrapper|reversed object|Namespace|jinja2\.|LoopContext|listreverseiterator|list_reverseiterator|"
                     r"reversed|str_ascii|map object|class |Undefined|slot wrapper|dict_|range_|method )|dict_(keys|values|items)\(|range\(|<LoopContext")
# Where Python's types are narrower than ours: ranges and dict views are lists here; sets of keys and values cannot be sliced or joined there.
NARROWER = re.compile(r"'(dict_\w+|range|\w*reverse\w*|generator|dict_\w+iterator)'|not \"(range|dict_\w+)\"|unhashable|of type '(generator|\w*iterator|range)'|Undefined' has no|LoopContext|Namespace")
# Whole numbers are of 64 bits here; a dict's method without its call is no value; a slice of a constant number is nothing there, and an error here.
LIMITS = re.compile(r"64 bits|cannot be sliced|is its method; write|a namespace cannot|the variable loop cannot|too (long|large|far)|a range reaches|cannot be the key of a dict")
# Features that are refused by name (docs/models.md) and that the grammar reaches by chance.
NOT_SUPPORTED = re.compile(r"not supported|expected 'in'; a loop has one or two")


def judge(ours, want):
    if "text" in want and OBJECTS.search(want["text"]):
        return None
    if "text" in want and "text" in ours:
        return None if want["text"] == ours["text"] else "other text"
    if "text" in want:
        said = ours.get("refused") or ours["error"]
        return None if NOT_SUPPORTED.search(said) or LIMITS.search(said) else "only here: " + re.sub(r"t:\d+: |'[^']*'|\d+", "", said)[:60]
    if "text" in ours and NARROWER.search(want.get("refused") or want["error"]):
        return None
    if "text" in ours:
        return "only there: " + re.sub(r"'[^']*'|\d+", "", want.get("refused") or want["error"])[:60]
    return None


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n", 1)[1].split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--out")
    a = parser.parse_args()
    env, seen, outcomes, kept = environment(), collections.Counter(), collections.Counter(), []
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))  # after the batch at hand, with what was counted
    for begin in range(0, a.count, BATCH):
        if stopped:
            break
        maker = Maker(random.Random(a.seed * 1000003 + begin))
        rows = []
        for _ in range(min(BATCH, a.count - begin)):
            maker.depth = 0
            rows.append({"template": maker.body(6) or maker.out(), "variables": maker.data()})
        text = "".join(json.dumps(r) + "\n" for r in rows)
        got = subprocess.run([a.program], input=text.encode(), stdout=subprocess.PIPE)
        lines = got.stdout.decode().split("\n")[:-1]
        if got.returncode or len(lines) != len(rows):
            sys.exit(f"{a.program}: exit status {got.returncode} after {len(lines)} lines of batch {begin}: {rows[len(lines)] if len(lines) < len(rows) else ''}")
        for row, line in zip(rows, lines):
            ours, want = json.loads(line), theirs(env, row)
            kind = judge(ours, want)
            outcomes["rendered alike" if not kind and "text" in want and "text" in ours else "refused on both sides" if not kind and "text" not in want else
                     "not supported here" if not kind else "different"] += 1
            if not kind:
                continue
            seen[kind] += 1
            kept.append({**row, **({"text": want["text"]} if "text" in want else {})})
            if seen[kind] <= a.show:
                print(f"--- {kind}\n{row['template']!r}\n{json.dumps(row['variables'], ensure_ascii=False)}\n  there {want}\n  here  {ours}", flush=True)
    for kind, n in seen.most_common():
        print(f"{n:8d} {kind}")
    print(f"{sum(outcomes.values())} templates, seed {a.seed}: " + ", ".join(f"{n} {what}" for what, n in outcomes.most_common()))
    if a.out:
        with open(a.out, "w") as f:
            f.writelines(json.dumps(row) + "\n" for row in kept)
    sys.exit(bool(kept))


if __name__ == "__main__":
    main()
