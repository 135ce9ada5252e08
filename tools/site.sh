#!/bin/sh
# Build the documentation site in build-docs/site (make docs). mkdocs-material is installed from PyPI
# into a separate virtual environment. A page that is missing from the navigation, a broken link or an
# unknown anchor is an error.
set -eu
cd "$(dirname "$0")/.."
out=build-docs
[ -x "$out/venv/bin/mkdocs" ] || { python3 -m venv "$out/venv" && "$out/venv/bin/pip" install --quiet --disable-pip-version-check mkdocs-material==9.8.2 mkdocs==1.6.1; }
rm -rf "$out/src" "$out/site"
mkdir -p "$out/src"
cp --parents README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md THREATS.md CITATION.cff sdk/python/README.md "$out/src"
find docs -name runs -prune -o -type f -print | while read -r file; do cp --parents "$file" "$out/src"; done
NO_MKDOCS_2_WARNING=1 "$out/venv/bin/mkdocs" build --strict --quiet
echo "built: $out/site/index.html"
