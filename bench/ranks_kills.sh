#!/usr/bin/env bash
# Runs ten random kills in a row (the tests run three fixed ones): bench/ranks_kills.sh BUILD_FOLDER [KILLS]; RANKS_SEED selects others
set -euo pipefail
BUILD=$(readlink -f "${1:?usage: bench/ranks_kills.sh BUILD_FOLDER [KILLS]}")
SOURCE=$(cd "$(dirname "$0")/.." && pwd)
TARE=$BUILD/tare TARE_PLUGIN_PATH=$BUILD/plugins SOURCE=$SOURCE RANKS_KILLS=${2:-10} RANKS_SEED=${RANKS_SEED:-$RANDOM} bash "$SOURCE/tests/e2e/ranks_kill.sh"
