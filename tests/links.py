"""Checks the links between the documents: every relative link and image of a tracked Markdown file leads to a file of the tree, and every #anchor to a heading.
usage: links.py (in the tree). Exit status 1 and a line for each broken link."""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def text_of(path):
    """Without code: blocks between fences, and spans between backquotes."""
    out, fence = [], None
    for line in path.read_text(encoding="utf-8").splitlines():
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark[1] if fence is None else None
            line = ""
        out.append("" if fence else re.sub(r"`[^`]*`", lambda m: "x" * len(m[0]), line))
    return out


def anchors(path):
    """The anchors of the headings, as GitHub makes them."""
    found, fence = {}, False
    names = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip().startswith("```"):
            fence = not fence
        heading = None if fence else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        names.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        if heading:
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found[name] = found.get(name, -1) + 1
            names.add(name if not found[name] else f"{name}-{found[name]}")
    return names


def main():
    bad = checked = 0
    files = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        path = pathlib.Path(name)
        for number, line in enumerate(text_of(path), 1):
            for target in LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue # links to the web are not checked: a test needs no network
                checked += 1
                where, _, anchor = target.partition("#")
                to = (path.parent / where) if where else path
                why = None
                if not to.exists():
                    why = "is not there"
                elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                    why = f"has no heading #{anchor}"
                if why:
                    print(f"{name}:{number}: {target}: {to} {why}")
                    bad += 1
    print(f"{checked} links, {bad} lead nowhere")
    return 1 if bad or not checked else 0


sys.exit(main())
