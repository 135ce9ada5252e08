#!/usr/bin/env bash
# tests/by_python.sh SCRIPT ARGUMENT...: runs a test written in Python; skipped if python3 is not
# installed.
command -v python3 > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
exec python3 "$@"
