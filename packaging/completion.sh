#!/bin/sh
# Writes completions for bash (tare.bash) and zsh (_tare): verbs and options from --help, keys and choices from the key table.
#   completion.sh TARE FOLDER
set -eu
tare=$1
out=$2
mkdir -p "$out"
verbs=$("$tare" --help | awk '/^  [a-z]/ { print $1 }')

options() { # prints the cases of a shell `case`: VERB) OPTIONS
    for verb in $verbs; do
        printf '    %s) echo "%s" ;;\n' "$verb" "$("$tare" "$verb" --help | grep -oE '(^|[^a-z])--[a-z][a-z-]+' | grep -oE -- '--.*' | sort -u | tr '\n' ' ')"
    done
}
keys() { "$tare" config docs | awk '/^[a-z_0-9]+\.[a-z_0-9]+ \(default: / { print $1 "=" }'; }
choices() { # prints the cases KEY) CHOICES for keys with a list of values
    "$tare" config docs | sed -n 's/^\([a-z_0-9]*\.[a-z_0-9]*\) (default: .*; allowed: \([a-z0-9_, -]*, [a-z0-9_, -]*\))$/\1) echo "\2" ;;/p' | sed -e 's/,//g' -e 's/^/    /'
}

functions() {
    cat << EOF
_tare_verbs="$(echo $verbs) help"
_tare_keys="$(keys | tr '\n' ' ')"
_tare_options() {
    case \$1 in
$(options)
    esac
}
_tare_choices() {
    case \$1 in
$(choices)
    estimator.plugin) tare plugin list 2> /dev/null | awk '\$1 == "estimator" { print \$2 }' ;;
    objective.plugin) tare plugin list 2> /dev/null | awk '\$1 == "objective" { print \$2 }' ;;
    curriculum.plugin) tare plugin list 2> /dev/null | awk '\$1 == "curriculum" { print \$2 }' ;;
    verifier.plugins) tare plugin list 2> /dev/null | awk '\$1 == "verifier" { print \$2 }' ;;
    encoder.plugin) tare plugin list 2> /dev/null | awk '\$1 == "encoder" { print \$2 }' ;;
    codebook.plugin) tare plugin list 2> /dev/null | awk '\$1 == "codebook" { print \$2 }' ;;
    environment.plugin) tare plugin list 2> /dev/null | awk '\$1 == "environment" { print \$2 }' ;;
    esac
}
EOF
}

{
    printf '# bash completion for tare; written by packaging/completion.sh\n'
    functions
    cat << 'EOF'
_tare() {
    # = separates words for bash: KEY=VALUE arrives as KEY, =, VALUE
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} key=
    if [ "$word" = = ]; then key=$before word=; elif [ "$before" = = ]; then key=${COMP_WORDS[COMP_CWORD - 2]}; fi
    if [ -n "$key" ]; then
        COMPREPLY=($(compgen -W "$(_tare_choices "$key")" -- "$word"))
        [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
    elif [ "$COMP_CWORD" = 1 ]; then
        COMPREPLY=($(compgen -W "$_tare_verbs --help --version --verbose --quiet" -- "$word"))
    elif [ "${word#-}" != "$word" ]; then
        COMPREPLY=($(compgen -W "$(_tare_options "${COMP_WORDS[1]}") --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word") $([ -z "$word" ] || compgen -W "$_tare_keys" -- "$word"))
    fi
    [[ ${COMPREPLY[0]:-} == *= ]] && compopt -o nospace
    return 0
}
complete -o filenames -F _tare tare
EOF
} > "$out/tare.bash"
{
    printf '#compdef tare\n# zsh completion for tare; written by packaging/completion.sh\n'
    functions
    cat << 'EOF'
_tare() {
    local key=${words[CURRENT]%%=*}
    if (( CURRENT == 2 )); then
        compadd -- ${=_tare_verbs} --help --version --verbose --quiet
    elif [[ ${words[CURRENT]} == *=* ]]; then
        compset -P '*='
        local -a values=( ${=$(_tare_choices $key)} )
        if (( $#values )); then compadd -- $values; else _files; fi
    elif [[ ${words[CURRENT]} == -* ]]; then
        compadd -- ${=$(_tare_options ${words[2]})} --help
    else
        _files
        compadd -S '' -- ${=_tare_keys}
    fi
}
_tare "$@"
EOF
} > "$out/_tare"
