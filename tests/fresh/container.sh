#!/usr/bin/env bash
# Runs the instructions of a container file without a container engine: each stage in a separate
# debootstrap, its instructions in order, and then the commands of docs/install.md. As root. An
# instruction that this script does not know is an error: add it here first.
#   tests/fresh/container.sh SUITE FOLDER [FILE CONTEXT]
#     SUITE   bookworm, trixie (the image debian:12-slim or debian:13-slim)
#     FOLDER  for the stages; replaced
#     FILE    Containerfile (default), or packaging/release.containerfile with the folder of a
#             release as CONTEXT
#   MIRROR, CA  as for machine.sh
set -euo pipefail
suite=${1:?usage: container.sh SUITE FOLDER} folder=$(realpath -m "${2:?}")
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
file=$(realpath "${3:-$source/Containerfile}") context=$(realpath "${4:-$source}")
[ "$(id -u)" = 0 ] || { echo "container.sh: debootstrap and chroot need root" >&2; exit 1; }
[ ! -e "$folder" ] || [ -e "$folder/stages" ] || { echo "container.sh: $folder exists and was not made by this script" >&2; exit 1; }
rm -rf --one-file-system "$folder"
mkdir -p "$folder"
: > "$folder/stages"
stage='' # the folder of the stage being made
workdir=/
inside() { bash "$here/enter.sh" "$stage" '' sh -c 'mkdir -p "$1" && cd "$1" && shift && exec "$@"' sh "$workdir" "$@"; }
refuse() {
    echo "container.sh: $file: $*" >&2
    exit 1
}
from() { # IMAGE [AS NAME]
    local name=${3:-last}
    [ "$1" = "\${DEBIAN}" ] || refuse "FROM $1: only \${DEBIAN} is known here"
    stage=$folder/$name workdir=/
    # Like the image debian:N-slim: the packages of minbase, and no lists of others.
    debootstrap --variant=minbase "$suite" "$stage" "${MIRROR:-http://deb.debian.org/debian}" > "$stage.log" 2>&1 || { tail -n 3 "$stage.log" >&2; exit 1; }
    rm -rf "$stage"/var/lib/apt/lists/*
    if [ -n "${CA:-}" ]; then mkdir -p "$stage/etc/ssl/certs" && cp "$CA" "$stage/etc/ssl/certs/ca-certificates.crt"; fi
}
copy() { # [--from=STAGE] SOURCE DESTINATION
    local root=$context/ files=()
    case $1 in
    --from=*) root=$folder/${1#--from=} && shift ;;
    esac
    [ $# = 2 ] || refuse "COPY $*: must have one source and one destination"
    mkdir -p "$stage$2"
    if [ "$1" = . ]; then
        git -C "$context" archive HEAD | tar -x -C "$stage$2"
    else
        mapfile -t files < <(compgen -G "$root$1")
        [ ${#files[@]} -gt 0 ] || refuse "COPY: $1 is missing in that stage"
        cp "${files[@]}" "$stage$2"
    fi
}
while IFS= read -r line; do
    echo "-- $line"
    read -ra words <<< "$line"
    case $line in
    '# '* | '' | ARG\ DEBIAN=*) ;;
    FROM\ *) from "${words[@]:1}" ;;
    WORKDIR\ *) workdir=${words[1]} ;;
    COPY\ *) copy "${words[@]:1}" ;;
    RUN\ *) inside sh -c "${line#RUN }" > "$stage.run.log" 2>&1 || { tail -n 20 "$stage.run.log"; refuse "failed: $line"; } ;;
    ENTRYPOINT\ *) read -ra entry <<< "$(tr -d '[],"' <<< "${line#ENTRYPOINT }")" ;;
    *) refuse "container.sh does not know: $line" ;;
    esac
done < "$file"
echo "-- run: ${entry[*]} train builtin:quickstart"
inside "${entry[@]}" doctor > "$folder/doctor.txt" || { grep '^bad' "$folder/doctor.txt"; refuse "doctor reports an error"; }
for part in 'ok *verifier .*math' 'ok *mpi ' 'ok *python'; do
    grep -q "^$part" "$folder/doctor.txt" || { cat "$folder/doctor.txt"; refuse "doctor does not print '$part'"; }
done
inside "${entry[@]}" train builtin:quickstart train.steps=3 eval.rows=8
[ -s "$stage$workdir/runs/quickstart-1/metrics.jsonl" ] || refuse "the run left no metrics"
echo "$(basename "$file") on $suite: done"
