#!/usr/bin/env bash
# Checks the steps of README.md and docs/install.md in their order on a new machine: machine.sh runs
# it there as root. Prints one line for each step; exit status 1 when one failed. Arguments: only
# these steps, as in SHARED=... tests/fresh/machine.sh SUITE FOLDER tests/fresh/steps.sh tests
# counted
cd /src/tare || exit 1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
failed=0
exec 3>&1 # the output of a successful step
only=" $* "
step() { # NAME COMMAND...: runs it with its output in a file, whose end is printed when it fails
    local name=$1 began=$SECONDS
    [ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
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
doctor() { "$1" doctor > /src/doctor.txt && grep '^ok *verifier.* math' /src/doctor.txt; }
with=alone
[ ! -e ../shared/README.md ] || with=shared
tests() { # skips: only those of tests/skips.allow
    local status=0
    make test || status=1
    bash tests/summary.sh build/results.xml tests/skips.allow > "/src/cases-$with.txt" 2>&1 || status=1
    cat "/src/cases-$with.txt" >&3
    return $status
}
# At least 85 % of the cases that run with the reference data must run without it.
counted() {
    local alone shared
    [ -e /src/cases-alone.txt ] && [ -e /src/cases-shared.txt ] || return 0
    alone=$(awk '/cases ran/ { print $1 }' /src/cases-alone.txt) shared=$(awk '/cases ran/ { print $1 }' /src/cases-shared.txt)
    echo "$alone cases ran without the reference data, $shared with it" >&3
    [ $((100 * alone)) -ge $((85 * shared)) ]
}
elsewhere() { # PROGRAM: trains in a separate folder
    rm -rf /src/elsewhere && mkdir /src/elsewhere && cd /src/elsewhere || return 1
    "$1" train builtin:quickstart train.steps=3 eval.rows=8 && [ -s runs/quickstart-1/metrics.jsonl ]
}
pip_install() { # the first step of docs/install.md; the other steps may not have run
    sh tools/needs.sh build && apt-get install -y -qq python3-venv && python3 -m venv /src/env && /src/env/bin/pip install . && doctor /src/env/bin/tare && (elsewhere /src/env/bin/tare)
}
staged() { make install PREFIX=/usr DESTDIR=/src/stage && doctor /src/stage/usr/bin/tare && (elsewhere /src/stage/usr/bin/tare); }
package() {
    make deb && apt-get install -y -qq ./build-deb/tare_*.deb && doctor /usr/bin/tare && (elsewhere tare)
}
plugins() { # only the installed program and its headers: every kind in every language
    rm -rf /src/mine && mkdir /src/mine && cd /src/mine || return 1
    for lang in c cpp rust; do
        for kind in estimator objective verifier encoder codebook; do
            tare plugin new $kind ${lang}_$kind --lang $lang && make -C ${lang}_$kind check || return 1
        done
    done
}
package_removed() { apt-get purge -y -qq tare && ! command -v tare && [ -z "$(find /usr -path '*tare*' -not -path '/usr/share/bash-completion/*' | grep -E '/tare(/|$|-sdk)')" ]; }
local_install() { make install && doctor /usr/local/bin/tare && make uninstall && [ -z "$(find /usr/local -type f)" ]; }

step quickstart quickstart
step doctor doctor build/tare
step tests tests
step counted counted
step pip pip_install
step staged staged
step package package
step plugins eval '(plugins)'
step removed package_removed
step local local_install
exit $failed
