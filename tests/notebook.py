"""Runs the code of notebooks (.ipynb) and the ```python blocks of pages (.md), each file in order in a separate process.

usage: notebook.py FILE [OLD=>NEW ...]   the smaller form: OLD is replaced by NEW before a file is run; each OLD must occur in it

A notebook is kept without outputs, which is checked. The working folder is the one it runs in."""
import json
import re
import sys


def cells(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".ipynb"):
        return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    book = json.loads(text)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    if any(cell["outputs"] or cell["execution_count"] is not None for cell in code):
        sys.exit(path + ": has outputs; remove them (jupyter nbconvert --clear-output --inplace FILE)")
    return ["".join(cell["source"]) for cell in code]


def main(path, *replacements):
    found, names = cells(path), {"__name__": "__main__"}
    if not found:
        sys.exit(path + ": no code in it")
    for old, new in (r.split("=>", 1) for r in replacements):
        if not any(old in source for source in found):
            sys.exit("%s: %r is not in it" % (path, old))
        found = [source.replace(old, new) for source in found]
    for number, source in enumerate(found, 1):
        exec(compile(source, "%s, cell %d" % (path, number), "exec"), names)


main(*sys.argv[1:])
