#!/usr/bin/env bash
# Checks the refusals of tare serve, clients that leave, queues, time-outs, and its end.
source "$(dirname "$0")/common.inc"
source "$(dirname "$0")/serve.inc"
if python3 -W error "$SOURCE/tests/serve/limits.py" > out.txt 2>&1; then ok; else bad "$(tail -n 40 out.txt)"; fi
done_
