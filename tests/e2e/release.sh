#!/usr/bin/env bash
# Makes a release (packaging/release.sh) from two folders, with the tested build instead of a new
# one: the files have the same bytes, the wheel brings its libraries with their licences and runs,
# the SBOM has every program and library, and a release that must not be made is refused.
# tests/fresh/twice.sh compiles twice; tests/fresh/wheel.sh installs the wheel without a compiler.
source "$(dirname "$0")/common.inc"
for tool in git cmake cc dpkg-query dpkg-deb readelf; do command -v $tool > /dev/null || skip "$tool is missing"; done
python3 -m venv env > log 2>&1 || skip "python3 or python3-venv is not installed"
build=$(dirname "$TARE")
unset TARE_PLUGIN_PATH SHARED
export GIT_AUTHOR_DATE='2026-01-02T03:04:05Z' GIT_COMMITTER_DATE='2026-01-02T03:04:05Z' GIT_CONFIG_GLOBAL=/dev/null
checkout() { # FOLDER: a repository with this tree, and with a date at the changelog's first heading
    mkdir -p "$1"
    (cd "$SOURCE" && { git ls-files -z -- . ':!tests' && printf 'tests/structure.py\0'; } | tar -c --null -T - 2> /dev/null) | tar -x -C "$1"
    local date
    date=$(sed -n 's/^date-released: //p' "$1/CITATION.cff")
    sed -i "s/^\(## [0-9.]*\) (unreleased)/\1 ($date)/" "$1/CHANGELOG.md"
    git -C "$1" init -q && git -C "$1" add -A && git -C "$1" -c user.name=t -c user.email=t@t commit -q -m tree
}
release() { bash "$1/packaging/release.sh" "$1/build-release" "$build" > log 2>&1; } # CHECKOUT

checkout one/tare
if ! release one/tare; then
    if grep -qE 'No matching distribution found for|Temporary failure in name resolution|Failed to establish a new connection' log; then skip "no package index: auditwheel cannot be had"; fi
    bad "release: $(cat log)"
    done_
fi
out=$WORK/one/tare/build-release
wheel=$(echo "$out"/*.whl)
(cd "$out" && sha256sum -c --quiet SHA256SUMS) && ok || bad "SHA256SUMS"
[ "$(wc -l < "$out/SHA256SUMS")" = 4 ] && ok || bad "a release has four files: $(cat "$out/SHA256SUMS")"
case $wheel in *-py3-none-manylinux_2_[0-9]*_"$(uname -m)".whl) ok ;; *) bad "the wheel's name: $wheel" ;; esac

# The same bytes from a folder with another name, under another umask and time zone, later.
checkout "another folder/tare"
(umask 077 && TZ=Asia/Tokyo release "another folder/tare") && ok || bad "release from another folder: $(cat log)"
diff "$out/SHA256SUMS" "another folder/tare/build-release/SHA256SUMS" && ok || bad "two releases of one commit differ"

# Refused: changes that are not committed, and a version or a date that differs.
echo >> one/tare/README.md
release one/tare && bad "a release was made of uncommitted changes" || ok
grep -q 'uncommitted changes: commit them first' log && grep -q 'README.md' log && ok || bad "uncommitted: $(cat log)"
git -C one/tare checkout -q README.md
refused() { # FILE EDIT MESSAGE
    sed -i "$2" "one/tare/$1"
    release one/tare && bad "a release was made after $2" || ok
    grep -q "$3" log && ok || bad "$2: $(cat log)"
    git -C one/tare checkout -q "$1"
}
refused CITATION.cff 's/^version: .*/version: 9.9.9/' 'CITATION.cff: version 9.9.9'
refused CITATION.cff 's/^date-released: .*/date-released: 2001-01-01/' 'date-released: 2001-01-01'
refused CHANGELOG.md 's/^\(## [0-9.]*\) (2.*/\1 (unreleased)/' 'write the date of the release'
(cd "$out" && sha256sum -c --quiet SHA256SUMS) && ok || bad "a refused release changed the files of another"

# The wheel: RECORD, order, dates, modes; the SBOM and the licences have every library.
checked "the wheel's contents" "$wheel" "$out"/*.cdx.json <<'PY'
import base64, hashlib, json, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
names = z.namelist()
about = next(n for n in names if n.endswith("/RECORD")).rsplit("/", 1)[0]
files = {n: z.read(n) for n in names}
assert names[-1] == about + "/RECORD", names[-1]
assert [n for n in names if ".dist-info/" not in n] == sorted(n for n in names if ".dist-info/" not in n)
assert {i.date_time for i in z.infolist()} == {(2026, 1, 2, 3, 4, 4)}, {i.date_time for i in z.infolist()}
assert {i.external_attr >> 16 for i in z.infolist()} == {0o100644, 0o100755}
listed = dict(line.rsplit(",", 1)[0].rsplit(",", 1) for line in files[about + "/RECORD"].decode().splitlines())
assert set(listed) == set(names), set(listed) ^ set(names)
for name, text in listed.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
    assert name.endswith("/RECORD") or text == "sha256=" + digest, name
bom = json.load(open(sys.argv[2]))
assert files[about + "/sboms/tare_rlvr.cdx.json"] == open(sys.argv[2], "rb").read()
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.6"
known = {(c.get("evidence") or {"occurrences": [{"location": c["name"]}]})["occurrences"][0]["location"]: c for c in bom["components"]}
objects = [n for n in names if files[n][:4] == b"\x7fELF"]
libraries = [n for n in objects if ".libs/" in n]
assert any("libflint" in n for n in libraries) and any("libjansson" in n for n in libraries), libraries
for name in objects:
    assert known[name]["hashes"][0]["content"] == hashlib.sha256(files[name]).hexdigest(), name
    assert known[name]["licenses"], name
table = files[about + "/licenses/libraries.txt"].decode().split()
for name in libraries:
    assert name in table, name
    part = known[name]
    assert "purl" not in part or f"{about}/licenses/{part['name']}.copyright" in names, name
assert not any("GPL" in c["licenses"][0]["expression"] and "LGPL" not in c["licenses"][0]["expression"] for c in bom["components"] if c.get("licenses"))
assert {c["name"] for c in bom["components"] if c["scope"] == "excluded"} >= {"gcc", "cmake", "libflint-dev"}
PY
# A library whose licence is unknown is refused.
sed -i '/^libjansson /d' one/tare/packaging/licences.list
SOURCE_DATE_EPOCH=1 python3 one/tare/packaging/wheel.py "$wheel" refused > log 2>&1 && bad "a library with an unknown licence was accepted" || ok
grep -q 'the licence of libjansson is unknown' log && [ ! -e refused ] && ok || bad "unknown licence: $(cat log)"

# The installed wheel: programs and plugins use its own libraries and those that manylinux allows.
env/bin/pip install --disable-pip-version-check -q --no-index "$wheel" > log 2>&1 && ok || bad "pip install: $(tail -n 5 log)"
site=$(echo "$WORK"/env/lib/python3*/site-packages)
find "$site/tare_sdk/engine" "$site/tare_rlvr.libs" -type f ! -name 'libtare_[mn]*' -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -exec ldd {} + |
    sed -n 's/^\t\([^ ]*\) => \([^ ]*\).*/\1 \2/p; s/.* => not found.*/& not found/p' | sort -u > linked
foreign() { grep -vE "^(libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s|ld-linux[^ ]*)\.so\.[0-9]+ |^linux-vdso| $site/" linked; }
[ "$(grep -c " $site/" linked)" -gt 8 ] && ! foreign && ok || bad "libraries that are not the wheel's: $(foreign)"
if env/bin/python - > log 2>&1 << 'PY'; then ok; else bad "math: $(cat log)"; fi
from tare_sdk import Verifier
assert Verifier("math").verify("\\boxed{\\frac{\\sqrt{2}}{2}}", "\\frac{1}{\\sqrt{2}}").reward == 1.0
assert Verifier("math").verify("\\boxed{\\frac{1}{2}}", "0.51").reward == 0.0
PY
mkdir elsewhere && cd elsewhere
tiny_config
if "$WORK/env/bin/tare" train tiny.ini train.steps=2 > log 2>&1 && [ "$(grep -c '"reward/mean"' run/metrics.jsonl)" = 2 ]; then ok; else bad "train: $(tail -n 5 log)"; fi
if "$WORK/env/bin/tare" plan builtin:quickstart > log 2>&1; then ok; else bad "builtin: $(tail -n 5 log)"; fi
if diff <("$WORK/env/bin/tare" plugin list) <("$TARE" plugin list | grep -v fixture) > log; then ok; else bad "plugins: $(cat log)"; fi

# The source distribution is complete, and knows the commit.
cd "$WORK"
tar -xf "$out"/tare_rlvr-*.tar.gz
source=$(echo tare_rlvr-*/)
cmake -S "$source" -B made > log 2>&1 && ok || bad "the source distribution cannot be configured: $(tail -n 5 log)"
grep -q "^$(git -C one/tare rev-parse HEAD)$" "$source/packaging/commit.txt" && ok || bad "commit.txt: $(cat "$source/packaging/commit.txt")"
dpkg-deb -c "$out"/*.deb > log && grep -q ' ./usr/bin/tare$' log && ! grep -vE ' root/root ' log && ok || bad "the Debian package: $(cat log)"
done_
