#!/usr/bin/env bash
# docs/plugins.md is what `tare plugin list --md` prints. To write it anew: build/tare plugin list --md > docs/plugins.md
source "$(dirname "$0")/common.inc"
for kind in estimators verifiers clusterers objectives curricula; do
    for source in "$SOURCE"/plugins/$kind/*; do
        name=$(basename "$source" .c)
        case $name in common) continue ;; esac
        [ -e "$TARE_PLUGIN_PATH/$kind/$name.so" ] || skip "$name is not part of this build"
    done
done
if "$TARE" plugin list --md > now.md && diff "$SOURCE/docs/plugins.md" now.md; then ok; else bad "docs/plugins.md is not what the tables say"; fi
done_
