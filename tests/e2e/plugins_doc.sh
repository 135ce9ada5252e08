#!/usr/bin/env bash
# Checks that docs/plugins.md equals the output of `tare plugin list --md`. To update it: build/tare
# plugin list --md > docs/plugins.md
source "$(dirname "$0")/common.inc"
for kind in estimators verifiers clusterers objectives curricula environments; do
    for source in "$SOURCE"/plugins/$kind/*; do
        name=$(basename "$source" .c)
        case $name in common) continue ;; esac
        [ -e "$TARE_PLUGIN_PATH/$kind/$name.so" ] || skip "$name is not part of this build"
    done
done
if "$TARE" plugin list --md > now.md && diff "$SOURCE/docs/plugins.md" now.md; then ok; else bad "docs/plugins.md differs from the tables"; fi
done_
