#!/usr/bin/env bash
# What a new machine is promised, in the order of README.md and docs/install.md: run by machine.sh in the machine, as root. A line for each step; exit status 1
# when one failed.
cd /src/tare || exit 1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
failed=0
step() { # NAME COMMAND...: its output goes to a file, of which the end is shown when it fails
    local name=$1 began=$SECONDS
    shift
    if "$@" > "/src/$name.log" 2>&1; then
        printf 'ok      %-12s %4d s\n' "$name" $((SECONDS - began))
    else
        printf 'FAILED  %-12s %4d s: /src/%s.log\n' "$name" $((SECONDS - began)) "$name"
        tail -n 15 "/src/$name.log"
        failed=1
    fi
}
quickstart() { make quickstart && awk '$1 == "all" { held = $3 } END { exit !(held == "0.821") }' /src/quickstart.log; }
doctor() { "$1" doctor | grep '^ok *verifier.* math'; }
tests() { make test && bash tests/summary.sh build/results.xml tests/skips.allow; }
elsewhere() { # PROGRAM: trains in a folder of its own
    rm -rf /src/elsewhere && mkdir /src/elsewhere && cd /src/elsewhere || return 1
    "$1" train builtin:quickstart train.steps=3 eval.rows=8 && [ -s runs/quickstart-1/metrics.jsonl ]
}
pip_install() {
    python3 -m venv /src/env && /src/env/bin/pip install . && doctor /src/env/bin/tare && (elsewhere /src/env/bin/tare)
}
staged() { make install PREFIX=/usr DESTDIR=/src/stage && doctor /src/stage/usr/bin/tare && (elsewhere /src/stage/usr/bin/tare); }
package() {
    make deb && apt-get install -y -qq ./build-deb/tare_*.deb && doctor /usr/bin/tare && (elsewhere tare)
}
plugins() { # the installed program and its headers alone: every kind in every language
    rm -rf /src/mine && mkdir /src/mine && cd /src/mine || return 1
    for lang in c cpp rust; do
        for kind in estimator verifier encoder codebook; do
            tare plugin new $kind ${lang}_$kind --lang $lang && make -C ${lang}_$kind check || return 1
        done
    done
}
package_removed() { apt-get purge -y -qq tare && ! command -v tare && [ -z "$(find /usr -path '*tare*' -not -path '/usr/share/bash-completion/*' | grep -E '/tare(/|$|-sdk)')" ]; }
local_install() { make install && doctor /usr/local/bin/tare && make uninstall && [ -z "$(find /usr/local -type f)" ]; }

step quickstart quickstart
step doctor doctor build/tare
step tests tests
sed -n '/cases ran/,$p' /src/tests.log
step pip pip_install
step staged staged
step package package
step plugins eval '(plugins)'
step removed package_removed
step local local_install
exit $failed
