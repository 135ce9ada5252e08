#!/bin/sh
# Writes manual pages from the output of the program: tare.1, tare-VERB.1, and tare.ini.5 with every configuration key.
#   man.sh TARE FOLDER
set -eu
tare=$1
out=$2
version=$("$tare" --version | cut -d' ' -f2)
rm -rf "$out/man1" "$out/man5" # pages of verbs that no longer exist
mkdir -p "$out/man1" "$out/man5"

roff() { # escapes lines, so that none is a roff command
    sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^\\([.']\\)/\\\\\\&\\1/"
}
page() { # NAME SECTION WHAT; usage and text on standard input
    printf '.TH "%s" %s "" "tare %s" "tare"\n.SH NAME\n' "$1" "$2" "$version"
    printf '%s \\- %s\n' "$(printf '%s\n' "$1" | roff)" "$(printf '%s\n' "$3" | roff)"
    awk '
        NR == 1 && /^usage: / { print "@SYNOPSIS"; sub(/^usage: /, ""); print; synopsis = 1; next }
        synopsis && /^       ( |tare)/ { sub(/^       /, ""); print; next }
        synopsis { print "@DESCRIPTION"; synopsis = 0; if ($0 == "") next }
        { print }' | roff | sed -e 's/^@\([A-Z]*\)$/.fi\n.SH \1\n.nf/'
    printf '.fi\n'
}

"$tare" --help > "$out/help"
page tare 1 "critic-free reinforcement learning of language models with verifiable rewards" < "$out/help" > "$out/man1/tare.1"
printf '.SH "SEE ALSO"\n' >> "$out/man1/tare.1"
# the line of a verb: two spaces, verb, arguments, description, separated by at least two spaces
awk '/^  [a-z]/ { n = split(substr($0, 3), part, /  +/); split(part[1], word, " "); print word[1] "\t" part[n] }' "$out/help" > "$out/verbs"
while IFS='	' read -r verb what; do
    "$tare" "$verb" --help > "$out/help"
    page "tare-$verb" 1 "$what" < "$out/help" > "$out/man1/tare-$verb.1"
    printf '.SH "SEE ALSO"\n.BR tare (1),\n.BR tare.ini (5)\n' >> "$out/man1/tare-$verb.1"
    printf '.BR tare\\-%s (1),\n' "$verb" >> "$out/man1/tare.1"
done < "$out/verbs"
printf '.BR tare.ini (5)\n' >> "$out/man1/tare.1"

{
    printf '.TH "tare.ini" 5 "" "tare %s" "tare"\n.SH NAME\ntare.ini \\- configuration of tare\n.SH DESCRIPTION\n' "$version"
    "$tare" config docs | roff | sed -e 's/^\(\[[a-z]*\]\) \(.*\)$/.SH "\1"\n\2/' \
        -e 's/^\([a-z_0-9]*\.[a-z_0-9]*\) (default: \(.*\))$/.TP\n.B \1\ndefault: \2\n.br/' -e 's/^    //'
} > "$out/man5/tare.ini.5"
rm "$out/help" "$out/verbs"
