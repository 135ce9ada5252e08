#!/usr/bin/env bash
command -v python3 > /dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
exec python3 "$SOURCE/tests/structure.py" "$SOURCE" "$1"
