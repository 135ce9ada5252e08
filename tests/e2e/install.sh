#!/usr/bin/env bash
# Checks make install and uninstall (prefix, DESTDIR), the Debian package, that the version is the
# same everywhere, and the installed program from another folder.
source "$(dirname "$0")/common.inc"
build=$(dirname "$TARE")
for tool in make cmake cc pkg-config; do command -v $tool > /dev/null || skip "$tool is missing"; done
unset TARE_PLUGIN_PATH
# installed WHAT BIN: the program of a prefix lists its plugins, makes one from its templates, and
# trains in a separate folder
installed() {
    mkdir -p "$WORK/elsewhere/$1"
    (
        cd "$WORK/elsewhere/$1"
        failed=0
        "$2/tare" plugin list > list.txt || bad "$1: plugin list"
        if grep -q '^estimator  *bv_blend' list.txt; then ok; else bad "$1: no plugins"; fi
        if "$2/tare" plugin new estimator mine > log 2>&1; then ok; else bad "$1: plugin new: $(cat log)"; fi
        "$2/tare" config dump builtin:studies/cold > dump.ini || bad "$1: config dump"
        if grep -q '^plugin = ' dump.ini; then ok; else bad "$1: builtin:studies/cold"; fi
        tiny_config
        if "$2/tare" train tiny.ini train.steps=2 > log 2>&1 && [ -s run/metrics.jsonl ]; then ok; else bad "$1: train: $(tail -n 3 log)"; fi
        [ "$failed" = 0 ]
    ) || failed=$((failed + 1))
}

# A prefix, and every file that belongs into it.
make -s -C "$SOURCE" install BUILD="$build" PREFIX="$WORK/prefix" > log 2>&1 || bad "make install: $(cat log)"
for file in bin/tare lib/tare/estimators/grpo.so include/tare/estimator.h share/tare/configs/quickstart.ini share/tare/sdk/template \
    share/doc/tare/README.md share/doc/tare/docs share/doc/tare/copyright share/man/man1/tare-train.1 share/man/man5/tare.ini.5 \
    share/bash-completion/completions/tare share/zsh/site-functions/_tare; do
    if [ -e "$WORK/prefix/$file" ]; then ok; else bad "not installed: $file"; fi
done
installed prefix "$WORK/prefix/bin"
files() { (cd "$1" && find . -type f -not -name installed.txt | sort); }
# cmake_install_has_all: cmake --install by hand installs the files of make install and every
# configuration of the tree
cmake_install_has_all() {
    cmake --install "$build" --prefix "$WORK/by-cmake" > log 2>&1 || bad "cmake --install: $(tail -n 3 log)"
    if diff <(files "$WORK/prefix") <(files "$WORK/by-cmake") > log; then ok; else bad "cmake --install: $(head -n 5 log)"; fi
    if diff <(cd "$SOURCE/configs" && find . -name '*.ini' | sort) <(cd "$WORK/by-cmake/share/tare/configs" && find . -name '*.ini' | sort) > log; then ok; else bad "configurations: $(head -n 5 log)"; fi
}
cmake_install_has_all
if "$WORK/prefix/bin/tare" config dump builtin:none > log 2>&1; then bad builtin:none; fi
if grep -q 'builtin:none: unknown configuration; see .*/share/tare/configs for' log; then ok; else bad "builtin:none: $(cat log)"; fi

# Files generated from --help and the table of keys.
if grep -q 'train by reinforcement learning' "$WORK/prefix/share/man/man1/tare-train.1"; then ok; else bad "tare-train.1"; fi
if grep -A 1 '^\.B run.seed$' "$WORK/prefix/share/man/man5/tare.ini.5" | grep -q '^default: 0'; then ok; else bad "tare.ini.5"; fi
verbs=$("$TARE" --help | grep -c '^  [a-z]')
pages=$(ls "$WORK/prefix/share/man/man1" | wc -l)
if [ "$pages" = $((verbs + 1)) ]; then ok; else bad "$pages manual pages for $verbs verbs"; fi
if command -v man > /dev/null && command -v groff > /dev/null; then
    for page in "$WORK"/prefix/share/man/man?/*; do groff -man -ww -Tutf8 "$page" 2>&1 > /dev/null | head -n 3 >> roff; done
    if [ ! -s roff ]; then ok; else bad "roff: $(head -n 5 roff)"; fi
fi
complete_words() { # WORDS...: prints bash's completions of the last word
    PATH=$WORK/prefix/bin:$PATH bash -c 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); compopt() { :; }; _tare; echo "${COMPREPLY[@]}"' \
        - "$WORK/prefix/share/bash-completion/completions/tare" "$@"
}
for case in 'tre|tra|train' 'k|train x.ini train.warmup_st|train.warmup_steps=' 'o|train x.ini --res|--resume' 'c|train x.ini run.device = cu|cuda' \
    'p|train x.ini estimator.plugin = bv_bl|bv_blend'; do
    IFS='|' read -r _ typed want <<< "$case"
    got=$(complete_words tare $typed)
    if [ "$got" = "$want" ]; then ok; else bad "completion of '$typed': '$got', expected '$want'"; fi
done
if command -v zsh > /dev/null; then if zsh -n "$WORK/prefix/share/zsh/site-functions/_tare"; then ok; else bad "zsh -n"; fi; fi

# uninstall leaves only the files that were there before.
touch "$WORK/prefix/share/man/man1/other.1"
make -s -C "$SOURCE" uninstall PREFIX="$WORK/prefix" > log 2>&1 || bad "make uninstall: $(cat log)"
if [ "$(find "$WORK/prefix" -type f)" = "$WORK/prefix/share/man/man1/other.1" ]; then ok; else bad "files remain: $(find "$WORK/prefix" -type f | head -n 3)"; fi
if [ -z "$(find "$WORK/prefix" -type d -name 'tare*')" ]; then ok; else bad "files remain: $(find "$WORK/prefix" -name 'tare*')"; fi
if make -s -C "$SOURCE" uninstall PREFIX="$WORK/prefix" > log 2>&1; then bad "uninstall twice"; fi
if tr -s '\n ' ' ' < log | grep -q 'installed.txt is missing'; then ok; else bad "uninstall twice: $(cat log)"; fi

# DESTDIR stages, and the staged tree runs in place.
make -s -C "$SOURCE" install BUILD="$build" PREFIX=/usr DESTDIR="$WORK/stage" > log 2>&1 || bad "DESTDIR: $(cat log)"
installed stage "$WORK/stage/usr/bin"

# The Debian package: its files and dependencies, and whether it runs.
if command -v dpkg-shlibdeps > /dev/null && command -v dpkg-deb > /dev/null; then
    if cpack -G DEB --config "$build/CPackConfig.cmake" -B "$WORK/deb" -D CPACK_PACKAGING_INSTALL_PREFIX=/usr > log 2>&1; then
        dpkg-deb -x "$WORK"/deb/*.deb "$WORK/unpacked"
        dpkg-deb -f "$WORK"/deb/*.deb > control
        if grep -q '^Depends: .*libjansson4' control && grep -q '^Version: 0' control; then ok; else bad "control: $(cat control)"; fi
        if [ ! -e "$WORK/unpacked/usr/share/tare/installed.txt" ]; then ok; else bad "the package has installed.txt"; fi
        installed deb "$WORK/unpacked/usr/bin"
    else
        bad "cpack: $(tail -n 5 log)"
    fi
else
    skip_part "the Debian package: dpkg-dev is not installed"
fi

# One version: the program's in the package, the wheel and CITATION.cff; the ABI's in the SDK,
# pkg-config, CMake and the Python host.
program=$("$TARE" --version | cut -d ' ' -f 2)
abi=$("$TARE" --version | sed 's/.*ABI \([0-9.]*\).*/\1/')
if grep -q "^version: $program$" "$SOURCE/CITATION.cff"; then ok; else bad "CITATION.cff does not have $program"; fi
if grep -q "^## $program" "$SOURCE/CHANGELOG.md"; then ok; else bad "CHANGELOG.md does not have $program"; fi
if grep -q "^__version__ = \"$abi.0\"" "$SOURCE/sdk/python/tare_sdk/__init__.py"; then ok; else bad "the version of tare_sdk is not $abi.0"; fi
prefix=$WORK/stage/usr
got=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tare-sdk.pc)") pkg-config --modversion tare-sdk)
if [ "$got" = "$abi.0" ]; then ok; else bad "pkg-config says $got, the ABI is $abi"; fi
mkdir find && cd find
found() { # VERSION: find_package succeeds
    printf 'cmake_minimum_required(VERSION 3.20)\nproject(x C)\nfind_package(tare-sdk %s REQUIRED)\n' "$1" > CMakeLists.txt
    cmake -S . -B "b$1" -DCMAKE_PREFIX_PATH="$prefix" > log 2>&1
}
for version in 1.0 "$abi"; do if found "$version"; then ok; else bad "find_package(tare-sdk $version): $(tail -n 5 log)"; fi; done
for version in 1.99 2.0; do if found "$version"; then bad "find_package(tare-sdk $version) succeeds"; else ok; fi; done
done_
