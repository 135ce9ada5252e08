#!/usr/bin/env bash
# Checks that docs/columns.md equals the output of `tare plugin columns --md`. To update it: build/tare
# plugin columns --md > docs/columns.md
source "$(dirname "$0")/common.inc"
if "$TARE" plugin columns --md > now.md && diff "$SOURCE/docs/columns.md" now.md; then ok; else bad "docs/columns.md differs from the table"; fi
done_
