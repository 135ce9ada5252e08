#!/usr/bin/env bash
# The same run in hostile surroundings: locales, time zones, modes, limits, names of folders. Same bits in each, or a clear refusal.
. "$(dirname "$0")/common.inc"
tiny_config
q="log.level=warn log.progress=none train.steps=2 checkpoint.every=2"
"$TARE" sft sft.ini log.level=warn log.progress=none > /dev/null || bad 'warm start'
# bits FOLDER: of what a run of two steps left in it
bits() { (cd "$1/run" && find checkpoints -type f ! -name complete.json | sort | xargs sha256sum; cut -d, -f1-3 rollouts/step-000002.jsonl); }
# same WHAT FOLDER command...: the command, in FOLDER, leaves the bits of the plain run
same() {
    local what=$1 folder=$2 status=0
    shift 2
    mkdir -p "$folder" && cp -r base sft.ini tiny.ini "$folder"
    (cd "$folder" && "$@") > out.txt 2> err.txt || status=$?
    if [ $status != 0 ]; then
        bad "$what: exit status $status: $(head -3 err.txt | cut -c 1-300)"
    elif [ "$(bits "$folder")" = "$want" ]; then
        ok
    else
        bad "$what: other bits"
    fi
    rm -rf "$folder"
}
mkdir plain && cp -r base sft.ini tiny.ini plain
# shellcheck disable=SC2086
(cd plain && "$TARE" train tiny.ini $q > /dev/null) || bad 'the plain run'
want=$(bits plain)
[ -n "$want" ] || bad 'the plain run left nothing'

# shellcheck disable=SC2086
run() { env "$@" "$TARE" train tiny.ini $q; }
for locale in C POSIX C.UTF-8 $(locale -a 2> /dev/null | grep -E '^(de|fr|tr|ar|hi|ja|zh|ru|pt|en)_' | head -8); do
    same "LC_ALL=$locale" other run LC_ALL="$locale"
done
same 'LC_ALL of a locale that is not there' other run LC_ALL=xx_YY.UTF-8
for zone in UTC America/St_Johns Pacific/Apia Australia/Lord_Howe 'XXX-25:61'; do same "TZ=$zone" other run TZ="$zone"; done
same 'no HOME' other run -u HOME
same 'HOME that is not there' other run HOME=/nonexistent
same 'an empty environment' other env -i TARE_PLUGIN_PATH="$TARE_PLUGIN_PATH" PATH="$PATH" "$TARE" train tiny.ini $q
limited() { (eval "$1" && run A=b); }
same 'umask 077' other limited 'umask 077'
same '32 open files' other limited 'ulimit -n 32'
same 'a stack of 1 MiB' other limited 'ulimit -s 1024'
same 'no core files' other limited 'ulimit -c 0'
# Standard descriptors that are closed: what is opened first gets their number. Progress and messages must not be written into a run's files.
closed() { # WHICH [key=value ...]
    (eval "exec $1" && shift && "$TARE" train tiny.ini log.progress=lines train.steps=2 checkpoint.every=2 "$@" && "$TARE" -q verify-run run > "$WORK/verified.txt")
}
for which in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do same "closed: $which" other closed "$which"; done
for command in 'config dump tiny.ini' 'verify-run plain/run' --version; do
    status=0
    # shellcheck disable=SC2086
    "$TARE" $command >&- 2> err.txt || status=$?
    [ $status != 0 ] && grep -q 'standard output cannot be written: it is closed' err.txt && ok || bad "$command, on a closed standard output: exit status $status: $(cat err.txt)"
done
status=0
"$TARE" verify exact <&- > out.txt 2> err.txt || status=$?
[ $status = 1 ] && grep -q 'standard input: cannot be read' err.txt && ok || bad "rows of a closed standard input: exit status $status: $(cat err.txt)"
# worker processes of a verifier, which have their requests on standard input
same 'closed: all, workers' other closed '<&- >&- 2>&-' verifier.isolate=process verifier.workers=2
for folder in 'with space' "quote'\"s" $'new\nline' 'a$b`c;d&e|f' '-dash' 'ünï' $'not\xffutf8' 'star*?[x]' '%s%n'; do same "the folder $(printf %q "$folder")" "./$folder" run A=b; done
long=$(printf 'long%.0s' $(seq 60))
deep=./$long/$long/$long/$long/$long/$long/$long/$long
same 'a path of 2,000 bytes' "$deep" run A=b
# beyond the limit of a path there is a message, not a cut name
# shellcheck disable=SC2086
(cd plain && "$TARE" train tiny.ini $q run.dir="$(printf "$long/%.0s" $(seq 20))" > /dev/null 2> err.txt) && bad 'a path of 4,800 bytes was taken'
grep -qEi 'too long|longer than' plain/err.txt || bad "a path of 4,800 bytes: $(tail -c 200 plain/err.txt)"
done_
