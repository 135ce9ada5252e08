#!/usr/bin/env bash
# Installs a wheel of make release in a bare Debian that has Python but no compiler and none of the
# wheel's libraries, and trains from another folder: the lines of docs/install.md. As root.
#   tests/fresh/wheel.sh WHEEL SUITE FOLDER
#     SUITE    bookworm, trixie
#     FOLDER   the machine; replaced
#   MIRROR   Debian's archive (http://deb.debian.org/debian)
set -euo pipefail
wheel=$(realpath "${1:?usage: wheel.sh WHEEL SUITE FOLDER}") suite=${2:?} folder=$(realpath -m "${3:?}")
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "wheel.sh: debootstrap and chroot need root" >&2; exit 1; }
[ ! -e "$folder" ] || [ -e "$folder/wheel" ] || { echo "wheel.sh: $folder exists and was not made by this script" >&2; exit 1; }
rm -rf --one-file-system "$folder"
debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}" > "$folder.log" 2>&1 ||
    { tail -n 3 "$folder.log" >&2; exit 1; }
mkdir "$folder/wheel"
cp "$wheel" "$folder/wheel/"
cat > "$folder/wheel/steps.sh" << 'STEPS'
set -euo pipefail
fail() { echo "FAILED: $*" >&2; exit 1; }
cd /wheel
for tool in cc gcc make cmake; do ! command -v $tool || fail "$tool is here: this machine proves nothing"; done
! ls /usr/lib/*/libflint* /usr/lib/*/libjansson* 2> /dev/null || fail "libraries of the wheel are here: this machine proves nothing"
python3 --version
python3 -m venv env
env/bin/pip install -q --no-index tare_rlvr-*.whl
env/bin/tare --version
env/bin/tare doctor > doctor.txt || { cat doctor.txt; fail "doctor reports an error"; }
grep -q '^ok *verifier .*math' doctor.txt || fail "no verifier math"
env/bin/python -c 'import tare, tare_sdk
assert tare_sdk.Verifier("math").verify("\\boxed{\\frac{1}{2}}", "0.5").reward == 1.0'
began=$(date +%s%N)
TIMEFORMAT='train: %R s, %U s of processor time'
time env/bin/tare train builtin:quickstart train.steps=3 eval.rows=8 2>&1 | while IFS= read -r line; do
    printf '%6.1f s  %s\n' "$((($(date +%s%N) - began) / 100000000))e-1" "$line"
done > train.txt || { tail -n 5 train.txt; fail "train"; }
grep -E 'tare: step [0-9]' train.txt
[ -s runs/quickstart-1/metrics.jsonl ] || fail "the run left no metrics"
STEPS
bash "$here/enter.sh" "$folder" '' bash /wheel/steps.sh
echo "$(basename "$wheel") on $suite: done"
