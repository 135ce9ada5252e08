#!/usr/bin/env bash
# Runs every command of the documents, as written or in the smaller form given by a comment in the
# document's source (docs/dev/testing.md), in one copy of the tree, and checks every relative link.
# (e2e/writing_plugins runs the commands of docs/writing-plugins.md.)
source "$(dirname "$0")/common.inc"
for tool in make cmake cc c++ python3 git; do command -v $tool > /dev/null || skip "$tool is missing"; done
unset TARE_PLUGIN_PATH SHARED
export BUILD_DIR; BUILD_DIR=$(dirname "$TARE")
pages="README.md docs/install.md docs/tutorial.md docs/coming-from-trl.md docs/howto.md docs/evaluation.md docs/serving.md docs/studies.md docs/laboratory.md docs/plan.md docs/ranks.md
    docs/results.md docs/results/cold-start.md docs/results/which-estimator.md docs/results/as-trl.md docs/results/reasoning.md docs/reference.md docs/faq.md docs/mathematics.md docs/names.md docs/versioning.md docs/glossary.md
    docs/recipes.md docs/prime.md docs/relift.md docs/verifiers.md docs/results/verifiers.md docs/curricula.md docs/python.md docs/environments.md docs/estimators.md docs/objectives.md docs/logging.md
    sdk/python/README.md docs/dev/testing.md docs/dev/releasing.md docs/dev/processors.md docs/dev/performance.md docs/dev/cuda.md docs/dev/decisions.md"
# Every page with commands is in the list.
for page in $(cd "$SOURCE" && grep -l '^```sh$' README.md docs/*.md docs/*/*.md sdk/python/README.md); do
    case " $(echo $pages) docs/writing-plugins.md " in *" $page "*) ;; *) bad "$page has commands and is not run" ;; esac
done

# ---- links
python3 - "$SOURCE" << 'PY' || bad "links"
import os, re, sys
root, wrong = sys.argv[1], 0
skip = {"build", ".git", "tests"}
def anchors(text):
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, flags=re.M)}
for folder, folders, files in os.walk(root):
    folders[:] = [f for f in folders if f not in skip and not f.startswith(("build", "."))]
    for name in files:
        if not name.endswith(".md"): continue
        path = os.path.join(folder, name)
        text = re.sub(r"```.*?```", "", open(path, encoding="utf-8").read(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target): continue
            file, _, anchor = target.partition("#")
            other = os.path.normpath(os.path.join(folder, file)) if file else path
            if not os.path.exists(other) or (anchor and anchor not in anchors(open(other, encoding="utf-8").read())):
                print("%s: link to %s leads nowhere" % (os.path.relpath(path, root), target))
                wrong += 1
sys.exit(wrong > 0)
PY

# ---- commands
mkdir clone && cd clone
(cd "$SOURCE" && git ls-files -z -- . ':!tests' | tar -c --null -T - 2> /dev/null) | tar -x
ln -s "$BUILD_DIR" build
shrink() { sed -i "$@"; }
shrink 's/^steps = .*/steps = 3/' configs/quickstart.ini configs/own.ini
shrink -e 's/^steps = .*/steps = 4/' -e 's/rows=[0-9]*/rows=2000/' configs/quickstart-phase1.ini configs/quickstart-phase2.ini
shrink 's/^steps = .*/steps = 10/' configs/trial-base.ini
shrink '/^eval = /s/$/?rows=8/' configs/quickstart.ini
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The blocks of a page: N.sh, and N.says with the comments above it.
blocks() {
    awk -v out="$2" '
        /^<!-- docs: .* -->$/ { sub(/^<!-- docs: /, ""); sub(/ -->$/, ""); says = says $0 "\n"; next }
        /^```sh$/ { n++; on = 1; file = sprintf("%s/%03d", out, n); printf "%s", says > (file ".says"); printf "" > (file ".sh"); says = ""; next }
        /^```/ { if (on) { close(file ".sh"); close(file ".says") } on = 0; next }
        on { print > (file ".sh"); next }
        NF { says = "" }' "$1"
}
changed() { # FILE.sh FILE.says: prints the block, with lines replaced as the comments say
    python3 - "$1" "$2" << 'PY'
import sys
rules = [line.split(" => ", 1) for line in open(sys.argv[2]).read().splitlines() if " => " in line]
used = set()
for line in open(sys.argv[1]).read().splitlines():
    for old, new in rules:
        if line == old or line.startswith(old + " "):
            line, _ = new + line[len(old):], used.add(old)
            break
    print(line.replace("step-000300", "step-000003"))
unused = [old for old, _ in rules if old not in used]
if unused: sys.exit("no line begins with: " + "; ".join(unused))
PY
}
PATH=$PWD/build:$PATH
blocks_run=0 commands=0
for page in $pages; do
    mkdir -p "$WORK/blocks/$page"
    blocks "$SOURCE/$page" "$WORK/blocks/$page"
    for block in "$WORK/blocks/$page"/*.sh; do
        [ -e "$block" ] || continue
        if grep -q '^not run: ' "${block%.sh}.says"; then
            sed -n "s|^not run: |not run: $page: |p" "${block%.sh}.says"
            continue
        fi
        changed "$block" "${block%.sh}.says" > "$block.run" || { bad "$page: a comment that changes nothing"; continue; }
        blocks_run=$((blocks_run + 1))
        commands=$((commands + $(grep -cvE '^ *(#|$)' "$block.run")))
        began=$(date +%s)
        # One shell per block, so that a heredoc is one command. A page's setting of PATH holds for
        # its block; the line above has set it for all.
        if timeout 300 bash -euo pipefail -c "$(cat "$block.run")" > log 2>&1 < /dev/null; then ok; else bad "$page: $(cat "$block.run"): $(tail -n 8 log)"; fi
        printf '%4d s  %s %s\n' $(($(date +%s) - began)) "$page" "$(basename "$block" .sh)"
    done
done
echo "$commands lines of commands in $blocks_run blocks"
if [ "$commands" -ge 60 ]; then ok; else bad "only $commands commands were found"; fi

# An indented block, or one without a language, must not hide a command from this test.
stray=$(cd "$SOURCE" && grep -nE '^    (tare|make|mpirun|pip|python3|cmake|ctest|apt|sudo|srun) ' $pages | grep -v '^docs/dev/\|:    mpirun\|:    srun' || true)
if [ -z "$stray" ]; then ok; else bad "commands outside of sh blocks: $stray"; fi
done_
