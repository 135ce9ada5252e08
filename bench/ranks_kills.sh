#!/usr/bin/env bash
# Ten random kills in a row (the tests run three, always the same): bench/ranks_kills.sh BUILD_FOLDER [KILLS]; RANKS_SEED draws others
set -euo pipefail
BUILD=$(readlink -f "${1:?usage: bench/ranks_kills.sh BUILD_FOLDER [KILLS]}")
SOURCE=$(cd "$(dirname "$0")/.." && pwd)
TARE=$BUILD/tare TARE_PLUGIN_PATH=$BUILD/plugins SOURCE=$SOURCE RANKS_KILLS=${2:-10} RANKS_SEED=${RANKS_SEED:-$RANDOM} bash "$SOURCE/tests/e2e/ranks_kill.sh"
