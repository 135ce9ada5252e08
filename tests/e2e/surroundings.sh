#!/usr/bin/env bash
# Checks the same run in unusual surroundings: locales, time zones, file modes, limits, names of
# folders. The run is bit-identical in each, or refused with a clear message.
. "$(dirname "$0")/common.inc"
tiny_config
q="log.level=warn log.progress=none train.steps=2 checkpoint.every=2"
"$TARE" sft sft.ini log.level=warn log.progress=none > /dev/null || bad 'warm start'
# bits FOLDER: prints the results of a run of two steps, without times.
bits() { (cd "$1/run" && find checkpoints rollouts -type f ! -name complete.json | sort | xargs sha256sum; sed -E 's/"(time|memory|speculation)\/[^"]*":[0-9.e+-]*,?//g; s/"tokens_per_second":[0-9.e+-]*,?//g' metrics.jsonl); }
# same WHAT FOLDER command...: checks that the command, in FOLDER, is bit-identical to the plain run.
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
[ -n "$want" ] || bad 'the plain run left no results'

# shellcheck disable=SC2086
run() { env "$@" "$TARE" train tiny.ini $q; }
# shellcheck disable=SC2086
planted 'another seed' same 'another seed' other "$TARE" train tiny.ini $q run.seed=2
for locale in C POSIX C.UTF-8; do same "LC_ALL=$locale" other run LC_ALL="$locale"; done
# A plain machine has no other locale, so ten are made here. All but the Turkish ones sort like
# POSIX, which makes them three times as fast to build.
export LOCPATH=$WORK/locales
made() { # LOCALE.CHARSET
    local source=/usr/share/i18n/locales/${1%%.*}
    awk '/^LC_COLLATE/ && file !~ /tr_TR/ { print "LC_COLLATE\ncopy \"POSIX\"\nEND LC_COLLATE"; skip = 1 } !skip { print } /^END LC_COLLATE/ { skip = 0 }' file="$source" "$source" > "$LOCPATH/$1.source"
    localedef -c --quiet -i "$LOCPATH/$1.source" -f "${1#*.}" "$LOCPATH/$1"
}
if command -v localedef > /dev/null && [ -e /usr/share/i18n/locales/tr_TR ] && [ -e /usr/share/i18n/charmaps/UTF-8.gz ]; then
    mkdir locales
    for locale in tr_TR.UTF-8 fa_IR.UTF-8 de_DE.UTF-8 hi_IN.UTF-8 zh_CN.UTF-8 ru_RU.UTF-8 ar_EG.UTF-8 fr_FR.UTF-8 tr_TR.ISO-8859-9 de_DE.ISO-8859-1; do
        made $locale || bad "localedef makes no $locale"
        # It exists and is in effect: the decimal comma where there is one, else the name of a
        # month.
        case $locale in
        tr* | de* | ru* | fr*) [ "$(LC_ALL=$locale bash -c 'printf %.1f 1')" = 1,0 ] ;;
        *) name=$(LC_ALL=$locale date -d 2026-03-01 +%B) && [ -n "$name" ] && [ "$name" != March ] ;;
        esac && ok || bad "$locale is not in effect"
        same "LC_ALL=$locale" other run LC_ALL="$locale"
    done
    # Proof that a difference would be noticed: a library that makes the program adopt the locale of
    # its environment.
    echo 'char *setlocale(int, const char *); __attribute__((constructor)) static void begin(void) { setlocale(6, ""); }' > takes.c # 6: LC_ALL
    if [ -n "${INTERPOSE:-}" ] && cc -shared -fPIC -o takes.so takes.c; then
        planted 'a decimal comma' same 'a decimal comma' other run LC_ALL=de_DE.UTF-8 LD_PRELOAD="$PWD/takes.so"
    fi
else
    skip_part "ten locales: localedef or its sources are not installed (apt install locales)"
fi
unset LOCPATH
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
# Closed standard descriptors: the first opened files get their numbers. Progress and messages must
# not be written into a run's files.
closed() { # WHICH [key=value ...]
    (eval "exec $1" && shift && "$TARE" train tiny.ini log.progress=lines train.steps=2 checkpoint.every=2 "$@" && "$TARE" -q reproduce run > "$WORK/verified.txt")
}
for which in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do same "closed: $which" other closed "$which"; done
for command in 'config dump tiny.ini' 'reproduce plain/run' --version; do
    status=0
    # shellcheck disable=SC2086
    "$TARE" $command >&- 2> err.txt || status=$?
    [ $status != 0 ] && grep -q 'standard output cannot be written: it is closed' err.txt && ok || bad "$command, on a closed standard output: exit status $status: $(cat err.txt)"
done
status=0
"$TARE" verify exact <&- > out.txt 2> err.txt || status=$?
[ $status = 1 ] && grep -q 'standard input: cannot be read' err.txt && ok || bad "rows of a closed standard input: exit status $status: $(cat err.txt)"
# Worker processes of a verifier, which read their requests from standard input.
same 'closed: all, workers' other closed '<&- >&- 2>&-' verifier.isolate=process verifier.workers=2
for folder in 'with space' "quote'\"s" $'new\nline' 'a$b`c;d&e|f' '-dash' 'ünï' $'not\xffutf8' 'star*?[x]' '%s%n'; do same "the folder $(printf %q "$folder")" "./$folder" run A=b; done
long=$(printf 'long%.0s' $(seq 60))
deep=./$long/$long/$long/$long/$long/$long/$long/$long
same 'a path of 2,000 bytes' "$deep" run A=b
# Near the limit of a path (4,096 bytes, with the names of a run's files in it) it is accepted, or
# there is a message; as the working folder and as run.dir.
mkdir near named
taken=0
for bytes in 3900 3950 4000 4040 4080; do
    path=$PWD/near
    while [ $((bytes - ${#path})) -gt 250 ]; do path=$path/$(printf 'x%.0s' $(seq 200)); done
    path=$path/$(printf 'y%.0s' $(seq $((bytes - ${#path} - 1))))
    for from in "$path" plain; do
        status=0
        mkdir -p "$path"
        # shellcheck disable=SC2086
        (cd -- "$from" && "$TARE" train "$WORK/plain/tiny.ini" $q model.path="$WORK/base" run.dir="$path/run" > /dev/null 2> "$WORK/err.txt") || status=$?
        if [ $status = 0 ]; then
            taken=$((taken + 1))
            mv "$path/run" named/ && [ "$(bits named)" = "$want" ] && ok || bad "a path of $bytes bytes: other bits"
        else
            [ $status = 1 ] || [ $status = 3 ] && grep -q '^tare: .*\(too long\|longer than\)' err.txt && ok || bad "a path of $bytes bytes: exit status $status: $(tail -c 200 err.txt)"
        fi
        echo "a path of $bytes bytes: exit status $status: $(tail -c 150 err.txt)"
        rm -rf near/* named/*
    done
done
[ $taken -ge 2 ] && ok || bad "$taken of 10 long paths were accepted"
# Beyond the limit there is a message, and no truncated name.
# shellcheck disable=SC2086
(cd plain && "$TARE" train tiny.ini $q run.dir="$(printf "$long/%.0s" $(seq 20))" > /dev/null 2> err.txt) && bad 'a path of 4,800 bytes was accepted'
grep -qEi 'too long|longer than' plain/err.txt || bad "a path of 4,800 bytes: $(tail -c 200 plain/err.txt)"
done_
