#!/usr/bin/env bash
# Checks tare_sdk.loggers with the services' own clients: wandb, SwanLab and Comet offline, trackio,
# and MLflow with its own server. The written records are read back: every step once, over a run
# that is cut and resumed. PYTHON names the interpreter that has the clients.
source "$(dirname "$0")/common.inc"
command -v python3 > /dev/null || skip "no python3"
python=${PYTHON:-python3}
export PYTHONPATH=$SOURCE/sdk/python PYTHONDONTWRITEBYTECODE=1
missing=''
there=''
for name in wandb trackio mlflow swanlab comet_ml; do
    if "$python" -c "import importlib.util, sys; sys.exit(not importlib.util.find_spec('$name'))"; then there="$there $name"; else missing="$missing $name"; fi
done
[ -z "$missing" ] || skip_part "the clients${missing}: is not installed for $python (pip install$missing)"
[ -n "$there" ] || { done_; exit; }
tiny_config
"$TARE" train tiny.ini log.progress=none > log.txt 2>&1 || { bad "the run: $(tail -n 5 log.txt)"; done_; exit 1; }
server=''
stop_server() { [ -z "$server" ] || { kill -- -"$server" 2> /dev/null && wait "$server" 2> /dev/null; } || true; }
trap 'stop_server; rm -rf "$WORK"' EXIT
for name in $there; do
    if [ "$name" = mlflow ]; then
        port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        set -m
        "$python" -m mlflow server --host 127.0.0.1 --port "$port" --backend-store-uri "sqlite:///$WORK/mlflow.db" --default-artifact-root "$WORK/artifacts" \
            --workers 1 > mlflow.txt 2>&1 &
        server=$!
        set +m
        for _ in $(seq 6000); do # ten minutes at most: it loads slowly
            "$python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$port/health')" 2> /dev/null && break
            kill -0 "$server" 2> /dev/null || break
            sleep 0.1
        done
        export MLFLOW_TRACKING_URI=http://127.0.0.1:$port
    fi
    if "$python" "$SOURCE/sdk/python/tests/test_loggers.py" run --real "${name%_ml}" > out.txt 2> err.txt && grep -q 'each once: True' out.txt; then
        ok
        grep 'each once: True' out.txt
    else
        bad "$name: $(tail -n 20 out.txt err.txt)"
    fi
done
done_
