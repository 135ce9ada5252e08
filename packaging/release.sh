#!/usr/bin/env bash
# Makes the files of a release from the commit HEAD: a source distribution, a wheel with its
# libraries, a Debian package, an SBOM and SHA256SUMS. The bytes depend on the commit and on the
# packages of the system, not on the folder, the user or the clock (docs/dev/releasing.md).
#   packaging/release.sh FOLDER [BUILD]
#     FOLDER  for these files, and for FOLDER/work, which can be removed afterwards
#     BUILD   a finished build folder of this tree: nothing is compiled. For tests; the Debian
#             package then has the tests' settings
set -euo pipefail
out=$(realpath -m "${1:?usage: release.sh FOLDER [BUILD]}") build=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
work=$out/work
fail() {
    echo "release.sh: $*" >&2
    exit 1
}
for tool in git cmake cc python3 dpkg-query cpack; do command -v $tool > /dev/null || fail "$tool is missing; sh tools/needs.sh test installs it"; done
python3 tests/structure.py . version || fail "the version and its date must agree first"
! grep -q '^## .*(unreleased)' CHANGELOG.md || fail "CHANGELOG.md: a heading says (unreleased): write the date of the release instead"
changed=$(git status --porcelain --untracked-files=no)
[ -z "$changed" ] || fail "uncommitted changes: commit them first. They are"$'\n'"$changed"
version=$(sed -n 's/^project(tare VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONHASHSEED=0
unset CFLAGS CPPFLAGS LDFLAGS CMAKE_GENERATOR TARE_PLUGIN_PATH
umask 022
[ ! -e "$out" ] || [ -e "$work/log" ] || fail "$out exists and was not made by this script"
rm -rf "$out"
mkdir -p "$work/tree"
log=$work/log
step() { # WHAT COMMAND...: runs it with its output in the log, whose end is printed when it fails
    local what=$1
    shift
    "$@" >> "$log" 2>&1 || { tail -n 20 "$log" >&2; fail "failed: $what"; }
    echo "done: $what"
}

echo "tare $version, commit $(git rev-parse --short=12 HEAD), $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
step "a virtual environment" python3 -m venv "$work/tools"
PATH=$work/tools/bin:$PATH
step "the tools of packaging/release.txt" pip install -q -r packaging/release.txt
git archive HEAD | tar -x -C "$work/tree"
step "source distribution" python -m build --sdist --no-isolation -o "$out" "$work/tree"

# Everything else is made from the source distribution, so it is known to be complete.
tar -xf "$out/tare_rlvr-$version.tar.gz" -C "$work"
source=$work/tare_rlvr-$version
if [ -z "$build" ]; then
    build=$work/build
    step "configuration" cmake -S "$source" -B "$build" -DBUILD_TESTING=OFF -DTARE_COMPLETE=ON -DTARE_REPRODUCIBLE=ON -DTARE_NCCL=OFF \
        -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib
    step "build" cmake --build "$build" -j "${JOBS:-$(nproc)}"
fi
step "wheel" pip wheel -q --no-build-isolation --no-deps -w "$work/raw" --config-settings=cmake.define.TARE_PREBUILT="$build" "$source"
step "FLINT without NTL" bash packaging/without_ntl.sh "$work/without"
# MPI must be the one of the machine's mpirun. NCCL is only in a test's build.
LD_LIBRARY_PATH=$work/without step "libraries in the wheel" auditwheel repair --exclude libmpi.so.40 --exclude libnccl.so.2 --exclude 'libcudart.so.*' \
    -w "$work/repaired" "$work"/raw/*.whl
step "licences and SBOM in the wheel" python packaging/wheel.py "$work"/repaired/*.whl "$out"

# The package depends on one release of Debian, so its revision names that.
id='' VERSION_ID=''
eval "$(sed -n 's/^ID=/id=/p; /^VERSION_ID=/p' /etc/os-release)"
step "Debian package" cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/deb" -D CPACK_DEBIAN_PACKAGE_RELEASE="1~$id$VERSION_ID" -D CPACK_PACKAGING_INSTALL_PREFIX=/usr
cp "$work"/deb/*.deb "$out"
chmod 644 "$out"/*.*
(cd "$out" && sha256sum -- *.deb *.json *.tar.gz *.whl > SHA256SUMS)
cat "$out/SHA256SUMS"
