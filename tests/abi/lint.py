#!/usr/bin/env python3
"""Checks the rules that keep the plugin ABI able to grow, on the headers, the SDKs and the engine:

sizes      a struct's size is not compared with sizeof or size_of: a member is tested with TARE_KNOWS
arrays     no array of structs that may grow; functions take and return them by pointer
types      members and arguments are fixed-width types, double, float, pointers or char
tags       every function of a table says which threads call it: [setup], [serial], [worker] or [any]
prefixes   every constant begins with the prefix of its family
columns    every column of core/plugin/columns.h is also in sdk/python

    lint.py [FOLDER]     FOLDER: the checkout; prints a line for each violation"""
import pathlib
import re
import sys

import tables

ROOT = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else tables.ROOT
INCLUDE = ROOT / "sdk/include"
FROZEN = {"tare_text", "tare_value", "tare_column", "tare_segment"}  # by value and in arrays
STRIDES = {"tare_param", "tare_want"}  # in arrays with a stride
BASIC = {"uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float", "double", "char", "void", "tare_status"}
# Where the host compares a plugin's size with what 1.0 had, or a loader copies what it knows.
SIZES_ALLOWED = {"core/plugin/tables.c", "core/plugin/functions.c", "core/plugin/validate.c", "core/plugin/check/hosts.h",
                 "core/plugin/check/hosts.c", "core/plugin/check/host_calls.c", "sdk/include/tare/base.h",
                 "core/api/run.c"}  # libtare's structs: its version must match exactly
FAMILIES = ("E", "PARAM", "AXIS", "WANT", "LOG", "METRIC", "FINISH", "VERDICT", "FATE", "ESTIMATOR", "VERIFIER", "USES", "TICKET",
            "OBJECTIVE", "CURRICULUM", "ENVIRONMENT", "ROLE", "EPISODE", "KIND", "CALLS", "LIMIT")
TYPES = {"TARE_OK", "TARE_U8", "TARE_I32", "TARE_I64", "TARE_U64", "TARE_F32", "TARE_F64", "TARE_TEXT", "TARE_ABI_MAJOR"}
found = []


def report(rule, where, what):
    found.append("%s: %s: %s" % (where, rule, what))


def sizes():
    folders = ["core", "plugins", "sdk", "tests/plugin", "cli", "lab"]
    for path in sorted(p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h", ".hpp", ".rs", ".py", ".cpp")):
        name = str(path.relative_to(ROOT))
        if name in SIZES_ALLOWED or name.startswith("tests/plugin/hostile"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if re.search(r"struct_size\s*(<|>|<=|>=|==|!=)[^=].*(sizeof|size_of)|(sizeof|size_of)[^;,]*(<|>|==|!=)[^;,]*struct_size\b", line):
                report("sizes", "%s:%d" % (name, number), "a struct_size is compared with a sizeof; use TARE_KNOWS(p, member)")


def base_of(type_):
    words = re.sub(r"\b(const|struct)\b|\[\w+\]", " ", type_).replace("*", " ").split()
    return words[0] if words else ""


def types(structs):
    known = BASIC | set(structs)
    for struct, members in structs.items():
        for name, type_ in members:
            where = "%s.%s" % (struct, name)
            function = re.match(r"(.*?)\(\*\)\((.*)\)$", type_)
            parts = [function.group(1)] + tables.split_arguments(function.group(2)) if function else [type_]
            for part in (p.strip() for p in parts):
                base, pointers = base_of(part), part.count("*")
                if base not in known:
                    report("types", where, "the type %s has another size on other machines or in other languages" % part)
                elif base in structs and base not in FROZEN and not pointers:
                    report("arrays", where, "%s may grow: pass a pointer to it" % base)
                elif base in structs and re.search(r"\[\w+\]", part):
                    report("arrays", where, "an array of %s, which may grow" % base)
            if function and base_of(function.group(1)) in structs and "*" not in function.group(1):
                report("arrays", where, "returns a struct; write it to an out struct or a stream")


def tags():
    for header in tables.HEADERS:
        text = tables.read(header, INCLUDE)
        for m in re.finditer(r"typedef struct (tare_\w+) \{\n    TARE_HEAD;(.*?)\n\} \1;", text, re.S):
            tag = ""
            for piece in re.finditer(r"/\*.*?\*/|\(\*(\w+)\)\(", m.group(2), re.S):
                if piece.group(1) is None:
                    marks = re.findall(r"\[(?:setup|serial|worker|any)\]", piece.group(0))
                    tag = marks[-1] if marks else tag
                    fresh = bool(marks) or "Both or neither" in piece.group(0)
                elif not tag or not fresh:
                    report("tags", "%s.%s" % (m.group(1), piece.group(1)), "no tag [setup], [serial], [worker] or [any]")
    head = tables.read("base", INCLUDE)
    for name in ("create", "destroy", "save", "load", "describe", "identity", "select"):
        if not re.search(r" \*   %s +\[(setup|serial|worker|any)\]" % name, head):
            report("tags", "TARE_HEAD.%s" % name, "no tag [setup], [serial], [worker] or [any]")


def prefixes(constants):
    limits = re.findall(r"^\s+(TARE_\w+) =", (INCLUDE / "tare/limits.h").read_text(), re.M)
    for constant in constants + limits:
        if constant not in TYPES and not constant.startswith(tuple("TARE_%s_" % f for f in FAMILIES)):
            report("prefixes", constant, "begins with the prefix of no family: a later constant may collide")


def columns():
    table = (ROOT / "core/plugin/columns.h").read_text()
    sdk = "".join(p.read_text() for p in sorted((ROOT / "sdk/python/tare_sdk").glob("*.py")))
    for kind, name in re.findall(r"COLUMN\(\w+,\s*(\w+),\s*\"([^\"]+)\"", table):
        if '"%s"' % name not in sdk:
            report("columns", "core/plugin/columns.h", "the column %s of kind %s is not in sdk/python/tare_sdk" % (name, kind))


def main():
    structs, constants = tables.tables(INCLUDE)
    sizes()
    types(structs)
    tags()
    prefixes(constants)
    columns()
    print("\n".join(found) if found else "the ABI keeps its rules")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
