"""Checks rules of the source that a compiler does not check. usage: structure.py SOURCE edges|sizes|picture|choices|idioms|metrics|names|version

edges   A module (a folder of core/ or lab/, or serve/) includes only from the modules that its line `tare_module(NAME ...)` in
        CMakeLists.txt names. It names only those that it includes from, and those come earlier in the file. core/ includes nothing
        of lab/, serve/ and cli/. The modules of single verbs (VERB_MODULES) do not use each other.
sizes   No file has more than 600 lines, no function more than 60 lines or 6 parameters, except functions whose parameters the SDK's
        headers define. Larger ones are listed in structure.allow, one "KIND FILE NAME SIZE" per line: the list and its numbers may
        only shrink.
picture The picture in docs/dev/architecture.md equals the output of `structure.py SOURCE draw`, and every module has a paragraph there.
choices No code outside of core/config compares the text of a setting: neither a field of struct config that is a choice, nor a
        literal with the text of a choice. NOT_SETTINGS lists literals that only look like one.
idioms  One statement per line: none after a comma, and no assignment through a conditional (*(a ? &b : &c) = d). No goto: resources
        that a function opens are declared OWNED (core/base/err.h).
metrics Metrics recorded by a run (observe_set) are in the list by which `tare sweep` finds a misspelt one: core/sweep/metric.c.
names   A function called from other files has the name of its module, its file, its header or a struct of that header as prefix.
        No name of a static function is defined in more than SAME_NAME files.
version The version in CMakeLists.txt, CITATION.cff, CHANGELOG.md and docs/install.md is the same, and so is the
        date of the second and third. pyproject.toml reads the version from CMakeLists.txt. The changelog may say (unreleased) instead of the date; a release may not.

Exit status 1 and a line for each breach."""
import pathlib
import re
import sys

NOT_SETTINGS = {("core/model/adapter.c", "none"), ("core/base/fault.c", "stop"), ("cli/bench_peak.c", "avx512"), ("cli/cmd_score.c", "dtype"), ("cli/cmd_plugin.c", "info"), ("core/cluster/nearest_kernel.c", "ref"),
                ("core/cluster/nearest_kernel.c", "avx2"), ("core/eval/groups.c", "true"), ("core/eval/groups.c", "false"), ("core/eval/samples.c", "stop"),
                ("serve/request.c", "none"), ("core/settle/settle.c", "auto"), ("core/sweep/grid.c", "auto")}
VERB_MODULES = {"sft", "eval", "sweep", "plan", "report", "lab"}
FILE_LINES, FUNCTION_LINES, PARAMETERS, SAME_NAME = 600, 60, 6, 3
OF_THE_ABI = {"assign", "apply_records"}  # functions of a plugin's table, whose parameters the SDK's headers define


def modules(source):
    """Returns {module: [modules that its CMake line names]} in the order of CMakeLists.txt."""
    text = re.sub(r"#.*", "", (source / "CMakeLists.txt").read_text())
    found = {}
    for name, links in re.findall(r"^\s*tare_module\((\w+)([^)]*)\)", text, re.M):
        found[name] = [x[5:] for x in links.split() if x.startswith("tare_")]
    return found


def place(source, module):
    """Returns the folder of a module, relative to the source."""
    return next((f for f in (f"core/{module}", f"lab/{module}") if (source / f).is_dir()), module)


def includes(source, folder):
    """Returns {module or 'kernels': 'FILE:LINE' of the first include from it}."""
    headers = {p.name for p in (source / "kernels").glob("*.h")}
    found = {}
    for path in sorted((source / place(source, folder)).rglob("*.[ch]")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            m = re.match(r'#include "([^"]+)"', line)
            if not m or m[1].startswith("tare/"):
                continue
            module = "kernels" if m[1] in headers else m[1].removeprefix("lab/").split("/")[0] if "/" in m[1] else folder
            if module != folder:
                found.setdefault(module, f"{path.relative_to(source)}:{number}")
    return found


def check_edges(source):
    links, wrong = modules(source), []
    order = list(links)
    order.insert(1, "kernels")
    on_disk = {p.name for top in ("core", "lab") for p in (source / top).iterdir() if p.is_dir() and any(p.rglob("*.[ch]"))} | {"serve"}
    for folder in sorted(on_disk - set(links)):
        wrong.append(f"{place(source, folder)} has no line tare_module({folder} ...) in CMakeLists.txt")
    for folder in (f for f in order if f in on_disk):
        used, here = includes(source, folder), place(source, folder)
        for module, where in used.items():
            if module not in order:
                wrong.append(f"{where}: {here} includes from {module}/, which is not a module")
            elif here.startswith("core/") and module != "kernels" and not place(source, module).startswith("core/"):
                wrong.append(f"{where}: {here} includes from {place(source, module)}; core/ must build without lab/ and serve/")
            elif order.index(module) > order.index(folder):
                wrong.append(f"{where}: {here} includes from {place(source, module)}, which comes after it")
            elif folder in VERB_MODULES and module in VERB_MODULES:
                wrong.append(f"{where}: {here} includes from {place(source, module)}; neither may use the other")
            elif module not in links[folder]:
                wrong.append(f"{where}: {here} includes from {module}/; name tare_{module} in tare_module({folder} ...), or remove the include")
        for module in links[folder]:
            if module not in used and module != "base":
                wrong.append(f"CMakeLists.txt: tare_module({folder} ...) names tare_{module}, and no file of {here} includes from it")
    return wrong


def functions(text):
    """Yields (name, lines, parameters, is static) of each function definition, recognised by the layout of clang-format."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line != "{":
            continue
        begin = at
        while begin and lines[begin - 1] and not lines[begin - 1].startswith(("}", "#", "/", " *", "*")) and not lines[begin - 1].endswith(("*/", ";", "\\")):
            begin -= 1
        head = " ".join(x.strip() for x in lines[begin:at])
        m = re.search(r"(\w+)\((.*)\)[^()]*$", head)
        if not m:
            continue
        end = at + lines[at:].index("}")
        depth, count = 0, 0 if m[2].strip() in ("", "void") else 1
        for c in m[2]:
            depth += (c in "([") - (c in ")]")
            count += c == "," and depth == 0
        yield m[1], end - begin + 1, count, head.startswith("static")


def breaches(source):
    found = {}
    for top in ("core", "lab", "serve", "cli", "kernels", "plugins", "bench", "tests"):
        for path in sorted((source / top).rglob("*")):
            name = str(path.relative_to(source))
            if path.suffix not in (".c", ".h", ".cu", ".cuh") or name.startswith("tests/abi/frozen") or "/corpus/" in name:
                continue
            text = path.read_text()
            if text.count("\n") > FILE_LINES:
                found["lines", name, "-"] = text.count("\n")
            for function, lines, parameters, _ in functions(text):
                if lines > FUNCTION_LINES:
                    found["lines", name, function] = lines
                if parameters > PARAMETERS and function not in OF_THE_ABI:
                    found["parameters", name, function] = parameters
    return found


def check_sizes(source):
    allowed, wrong = {}, []
    for line in (source / "tests" / "structure.allow").read_text().splitlines():
        if line and not line.startswith("#"):
            kind, name, function, size = line.split()
            allowed[kind, name, function] = int(size)
    found = breaches(source)
    for key, size in found.items():
        kind, name, function = key
        most = allowed.get(key, FILE_LINES if function == "-" else FUNCTION_LINES if kind == "lines" else PARAMETERS)
        if size > most:
            wrong.append(f"{name}: {'' if function == '-' else function + ': '}{size} {kind}, but {most} are allowed; split it")
    for key, size in allowed.items():
        if found.get(key, 0) < size:
            print(f"note: lower tests/structure.allow: {' '.join(key)} {size} is now {found.get(key, 'below the limit')}")
    return wrong


def draw(source):
    """Returns a line for each floor of core/, whose modules use only the floors below it; then for each module those that it includes from, except base."""
    links = modules(source)
    names = ["base", "kernels"] + [r for r in links if r != "base"]
    uses = {r: [u for u in names if u in (includes(source, r) if r != "kernels" else {"base": ""}) and u != "base"] for r in names}
    floor = {}
    for r in names:
        floor[r] = 0 if r == "base" else 1 + max((floor[u] for u in uses[r]), default=0)
    core = [r for r in names if r == "kernels" or place(source, r).startswith("core/")]
    lines = ["cli        the verbs of `tare`, above all modules", "serve      above core",
             "lab        " + "  ".join(r for r in names if place(source, r).startswith("lab/")) + "   above core", "core"]
    lines += [f"floor {n:2}   " + "  ".join(r for r in core if floor[r] == n) for n in range(max(floor[r] for r in core), -1, -1)]
    return "\n".join(lines + [""] + [f"{r:11}{' '.join(uses[r])}".rstrip() for r in names]) + "\n"


def check_picture(source):
    text = (source / "docs" / "dev" / "architecture.md").read_text()
    wrong = [f"docs/dev/architecture.md has no paragraph on {place(source, r)}" for r in modules(source) if f"**`{r}/`**" not in text and f"**`{place(source, r)}/`**" not in text]
    if f"```text\n{draw(source)}```" not in text:
        wrong.append("docs/dev/architecture.md: the picture does not match the tree; replace it by the output of `python3 tests/structure.py . draw`")
    return wrong


def check_choices(source):
    lists = (source / "core" / "config" / "choices.h").read_text()
    texts = set(re.findall(r'X\(\w+, "(\w+)"\)', lists))
    keys = re.findall(r"CHOICE\(\s*(\w+), (\w+),", (source / "core" / "config" / "keys.c").read_text())
    fields = "|".join(rf"{section}\.{key}" for section, key in keys)
    wrong = [] if texts and keys else ["core/config: no choices found; this check reads choices.h and keys.c"]
    for top in ("core", "lab", "serve", "cli", "kernels"):
        for path in sorted((source / top).rglob("*.c")):
            name = str(path.relative_to(source))
            if name.startswith("core/config/"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for call in re.findall(r"str\w*cmp\(([^;]*)", line):
                    if re.search(rf"\b({fields})\b", re.sub(r'"[^"]*"', "", call)):
                        wrong.append(f"{name}:{number}: compares the text of a setting; its enum is in core/config/choices.h")
                    for text in re.findall(r'"(\w+)"', call):
                        if text in texts and (name, text) not in NOT_SETTINGS:
                            wrong.append(f"{name}:{number}: compares with \"{text}\", a choice of a key; use its constant (core/config/choices.h)")
    return wrong


CONTROL = re.compile(r"(?:else )?(?:if|for|while) \(|else ")
DECLARES = re.compile(r"OWNED\(|(?:return|const|static|struct|case|goto)\b|\w+ \*?\w+(?: =|\[|,|;)|\(void\)|[.\"\[#/]|\*[ /]")
UNREAD = "plugins/verifiers/math/"  # its statements after commas are not split yet


def parts(text, ends=""):
    """Splits at commas outside of brackets and literals. With ends, returns the end of the first bracket."""
    depth, begin, found = 0, 0, []
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if ends and c in ")" and depth == 0:
            return at + 1
        if c == "," and depth == 0:
            found, begin = found + [text[begin:at].strip()], at + 1
    return found + [text[begin:].strip()]


def statement(line):
    """Returns the statement of a line, without the if, for or while before it; empty if there is none or it continues on the next line."""
    line = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', '""', re.sub(r"/\*.*?\*/", "", line)).strip()
    while m := CONTROL.match(line):
        end = parts(line, ")") if m[0].endswith("(") else len(m[0])
        if not isinstance(end, int):
            return ""
        line = line[end:].strip()
    whole = line.endswith(";") and line.count("(") == line.count(")") and "}" not in line
    return line[:-1] if whole and not DECLARES.match(line) else ""


def check_idioms(source):
    wrong = []
    for top in ("core", "lab", "serve", "cli", "kernels", "plugins"):
        for path in sorted((source / top).rglob("*.[ch]")):
            name, open_brackets, before = str(path.relative_to(source)), 0, ""
            for number, line in enumerate(path.read_text().splitlines(), 1):
                text = statement(line) if line.startswith(" ") and not open_brackets and not before.endswith(",") and not line.endswith("\\") else ""
                before = line
                open_brackets = max(0, open_brackets + line.count("(") - line.count(")"))
                if len(parts(text)) > 1 and not name.startswith(UNREAD):
                    wrong.append(f"{name}:{number}: a statement after a comma; write it on a separate line")
                if top in ("core", "lab", "serve", "cli") and text.startswith("goto "):
                    wrong.append(f"{name}:{number}: goto; declare resources OWNED, and TRY each step")
                if re.match(r"\*\(.*\?.*:.*\) ?[-+*/|&]?=[^=]", text):
                    wrong.append(f"{name}:{number}: an assignment through a conditional; write if and else")
    return wrong


def check_metrics(source):
    known = set(re.findall(r'"([\w/]+)"', (source / "core/sweep/metric.c").read_text().split("OPEN[]")[0]))
    wrong, met = [], 0
    for path in sorted(p for top in ("core", "lab", "cli") for p in (source / top).rglob("*.c")):
        text = path.read_text()
        for call in re.finditer(r'observe_set\([^,]+,\s*"([^"%]+)"', text):
            met += 1
            if call[1] not in known:
                wrong.append(f"{path.relative_to(source)}:{text[:call.start()].count(chr(10)) + 1}: {call[1]} is not in NAMES of core/sweep/metric.c")
    return wrong if met > 20 else wrong + [f"only {met} calls of observe_set were found; update this rule to their new form"]


# prefixes of a module besides its own name: the type or verb that it is about
SUBJECTS = {"api": {"tare_api"}, "base": {"mem"}, "cli": {"cmd", "cli", "bench"}, "loop": {"run", "stage", "figure"}, "replay": {"reproduce"}}
CODE = ("core", "lab", "serve", "cli", "kernels")


def check_names(source):
    wrong, static, headers = [], {}, {}
    for path in sorted(p for top in CODE for p in (source / top).rglob("*.h")):
        text = path.read_text()
        structs = re.findall(r"^(?:struct|enum|union) (\w+)", text, re.M)
        for m in re.finditer(r"^(?!static|typedef|#|\s|/|\*)[\w \*]*?\b(\w+)\(", text, re.M):
            headers.setdefault(m[1], (path.stem, structs))
    for path in sorted(p for top in CODE for p in (source / top).rglob("*.c")):
        name, parts = str(path.relative_to(source)), path.relative_to(source).parts
        module = parts[1] if parts[0] in ("core", "lab") else parts[0]
        for function, _, _, is_static in functions(path.read_text()):
            if is_static:
                static.setdefault(function, set()).add(name)
                continue
            if parts[0] == "kernels" or function not in headers:  # functions of the table of kernels.h, and main
                continue
            header, structs = headers[function]
            stems = [module, path.stem, header, *structs]
            prefixes = set(stems) | {s.split("_")[0] for s in (module, path.stem, header)} | {s.rstrip("s") for s in stems}
            prefixes |= SUBJECTS.get(module, set())
            if not any(function == x or function.startswith(x + "_") for x in prefixes):
                wrong.append(f"{name}: {function}: other files call it; begin its name with {module}_, {path.stem}_ or the name of its type")
    for function, files in sorted(static.items()):
        if len(files) > SAME_NAME:
            wrong.append(f"{function}: static in {len(files)} files ({', '.join(sorted(files)[:4])}, ...); give each a name that says what it does")
    return wrong


def check_version(source):
    def read(file, pattern):
        return re.search(pattern, (source / file).read_text(), re.M)
    version, rule = read("CMakeLists.txt", r"^project\(tare VERSION (\d+\.\d+\.\d+) "), read("pyproject.toml", r"^regex = '(.*)'$")
    cited, date = read("CITATION.cff", r"^version: (\S+)$"), read("CITATION.cff", r"^date-released: (\d{4}-\d\d-\d\d)$")
    change = read("CHANGELOG.md", r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$")
    named = read("docs/install.md", r"tare_rlvr-([\d.]+)-py3-none-manylinux_\S+\.whl")
    for file, found in (("CMakeLists.txt", version), ("pyproject.toml", rule), ("CITATION.cff", cited and date), ("CHANGELOG.md", change), ("docs/install.md", named)):
        if not found:
            return [f"{file}: its version or date was not found; update this rule to their new form"]
    built = re.search(rule[1], (source / "CMakeLists.txt").read_text())
    wrong = []
    for file, number in (("pyproject.toml", built and built["value"]), ("CITATION.cff", cited[1]), ("CHANGELOG.md", change[1]), ("docs/install.md", named[1])):
        if number != version[1]:
            wrong.append(f"{file}: version {number}, but CMakeLists.txt has {version[1]}")
    if change[2] not in ("unreleased", date[1]):
        wrong.append(f"CHANGELOG.md: {change[1]} is of {change[2]}, but CITATION.cff has date-released: {date[1]}")
    return wrong


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["allow"]:  # prints the present list
        print("\n".join(f"{' '.join(k)} {v}" for k, v in sorted(breaches(source).items())))
        sys.exit()
    if sys.argv[2:] == ["draw"]:
        print(draw(source), end="")
        sys.exit()
    wrong = {"edges": check_edges, "sizes": check_sizes, "picture": check_picture, "choices": check_choices, "idioms": check_idioms, "metrics": check_metrics, "names": check_names,
             "version": check_version}[sys.argv[2]](source)
    print("\n".join(wrong) or "ok")
    sys.exit(bool(wrong))
