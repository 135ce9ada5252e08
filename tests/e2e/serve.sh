#!/usr/bin/env bash
# Checks that the answers of tare serve equal the output of tare generate and tare score.
source "$(dirname "$0")/common.inc"
source "$(dirname "$0")/serve.inc"
if python3 -W error "$SOURCE/tests/serve/answers.py" > out.txt 2>&1; then ok; else bad "$(tail -n 40 out.txt)"; fi
done_
