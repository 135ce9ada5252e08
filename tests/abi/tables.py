#!/usr/bin/env python3
"""Reads the public headers, and writes or checks the tables of the ABI.

    tables.py write     writes tests/abi/members.def, tests/abi/types.def and sdk/abi/v1.layout
    tables.py check     fails where the first two differ from the headers

v1.layout is the released layout: after the release, only members at the end of a struct and new
constants may be added to it."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["base", "batch", "estimator", "verifier", "encoder", "codebook", "objective", "curriculum", "draft/environment", "plugin"]


def read(header, include=ROOT / "sdk/include"):
    return (include / "tare" / (header + ".h")).read_text()


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def head_members(include):
    """The members that the macro TARE_HEAD stands for."""
    body = re.search(r"#define TARE_HEAD\s*\\\n(.*?)\n\n", read("base", include), re.S).group(1)
    return without_comments(body.replace("\\\n", "\n"))


def split_arguments(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += c
    return parts + [part]


def argument_type(text):
    text = text.strip()
    return text if text == "void" else re.match(r"(.*?)\w+$", text).group(1).strip()


def declared(declaration):
    """Yields (name, type) for each member of one declaration."""
    function = re.match(r"(.*?)\(\*(\w+)\)\((.*)\)$", declaration)
    if function:
        arguments = ", ".join(argument_type(a) for a in split_arguments(function.group(3)))
        yield function.group(2), "%s(*)(%s)" % (function.group(1), arguments)
        return
    names = declaration.split(",")
    first = re.match(r"(.*?)(\**)(\w+)(\[\w+\])?$", names[0].strip())
    base = first.group(1).strip()
    for stars, name, array in [first.groups()[1:]] + [re.match(r"\s*(\**)\s*(\w+)(\[\w+\])?$", n).groups() for n in names[1:]]:
        yield name, base + (" " + stars if stars else "") + (array or "")


def members(body, include):
    for declaration in body.replace("TARE_HEAD;", head_members(include) + ";").split(";"):
        declaration = " ".join(declaration.split())
        if declaration:
            yield from declared(declaration)


def tables(include=ROOT / "sdk/include"):
    """Returns ({struct: [(member, type)]}, [constant]) of the headers, in order."""
    structs, constants = {}, ["TARE_ABI_MAJOR"]
    for header in HEADERS:
        for m in re.finditer(r"typedef (?:struct|union) (\w+) \{(.*?)\n\} \w+;|enum \{(.*?)\}", without_comments(read(header, include)), re.S):
            if m.group(1):
                structs[m.group(1)] = list(members(m.group(2), include))
            else:
                constants += [c.split("=")[0].strip() for c in m.group(3).split(",") if c.strip()]
    return structs, constants


def members_def(structs, constants):
    out = ("/* Every member of every public struct, in order: LAYOUT(struct) ... MEMBER(struct, member), and every\n"
           " * constant but the limits. For the layout gate (test_layout.c). Written by tests/abi/tables.py. */\n")
    for struct in structs:
        out += "LAYOUT(%s)\n" % struct + "".join("MEMBER(%s, %s)\n" % (struct, name) for name, _ in structs[struct])
    return out + "".join("CONSTANT(%s)\n" % c for c in constants)


def types_def(structs):
    out = ("/* The type of every member of the public structs: TYPE(struct, member, type). Within a major version a\n"
           " * member keeps its place (v1.layout) and its type. Written by tests/abi/tables.py. */\n")
    return out + "".join("TYPE(%s, %s, %s)\n" % (s, name, type_) for s in structs for name, type_ in structs[s])


PROGRAM = """#include <stdio.h>
#include <tare/plugin.h>
#define LAYOUT(S) printf(#S " size %zu align %zu\\n", sizeof(S), _Alignof(S));
#define MEMBER(S, M) printf("  %4zu %4zu " #M "\\n", offsetof(S, M), sizeof(((S *)0)->M));
#define CONSTANT(C) printf(#C " = %d\\n", (int)(C));
int main(void) {
#include "members.def"
}
"""


def layout():
    with tempfile.TemporaryDirectory() as folder:
        source, program = folder + "/layout.c", folder + "/layout"
        pathlib.Path(source).write_text(PROGRAM)
        subprocess.run(["cc", "-std=c11", "-I%s/sdk/include" % ROOT, "-I%s/tests/abi" % ROOT, "-o", program, source], check=True)
        return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    structs, constants = tables()
    files = {"tests/abi/members.def": members_def(structs, constants), "tests/abi/types.def": types_def(structs)}
    for name, text in files.items():
        if sys.argv[1:] == ["write"]:
            (ROOT / name).write_text(text)
        elif (ROOT / name).read_text() != text:
            sys.exit("%s differs from the headers: run tests/abi/tables.py write" % name)
    if sys.argv[1:] == ["write"]:
        (ROOT / "sdk/abi/v1.layout").write_text(layout())


if __name__ == "__main__":
    main()
