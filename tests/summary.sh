#!/usr/bin/env bash
# Prints the results of a run of ctest: the numbers of cases that ran, failed and were skipped, with
# reasons. A skipped case reports itself to ctest (exit status 77) and prints "SKIP: reason".
#   tests/summary.sh RESULTS.xml [ALLOWED]     RESULTS.xml: ctest --output-junit
# At the end it prints the seconds of the reliability tests (docs/dev/testing.md), whose share of
# CI's time is kept small. With ALLOWED (tests/skips.allow) the exit status is 1 when a case was
# skipped that no line of it allows. Exit status 1 also when nothing ran.
set -euo pipefail
results=${1:?usage: tests/summary.sh RESULTS.xml [ALLOWED]} allowed=${2:-}
[ -s "$results" ] || { echo "tests/summary.sh: $results is missing; ctest did not finish" >&2; exit 1; }
cases=$(mktemp)
trap 'rm -f "$cases"' EXIT
# STATUS <tab> NAME <tab> SECONDS <tab> REASON, one line for each case
awk '
    function plain(s) { gsub(/&lt;/, "<", s); gsub(/&gt;/, ">", s); gsub(/&quot;/, "\"", s); gsub(/&apos;/, "\047", s); gsub(/&amp;/, "\\&", s); return s }
    function attribute(name) { return match($0, " " name "=\"[^\"]*\"") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4) : "" }
    /<testcase / { name = attribute("name"); status = attribute("status"); seconds = attribute("time"); why = "" }
    match($0, /SKIP: .*/) && why == "" { why = substr($0, RSTART + 6, RLENGTH - 6); sub(/<\/?system-out.*/, "", why) }
    /<\/testcase>/ || /<testcase .*\/>/ { printf "%s\t%s\t%s\t%s\n", status, plain(name), seconds + 0, plain(why) }
' "$results" > "$cases"
count() { awk -F '\t' -v s="$1" '$1 == s' "$cases" | wc -l; }
ran=$(($(count run) + $(count fail))) failed=$(count fail) skipped=$(count notrun)
printf '\n%d cases ran, %d failed, %d were skipped\n' "$ran" "$failed" "$skipped"
awk -F '\t' '$1 == "fail" { print "  failed: " $2 }' "$cases"
# by reason, the most frequent one first
awk -F '\t' '$1 == "notrun" { why = $4 == "" ? "no reason given" : $4; if (!n[why]++) first[why] = $2 }
    END { for (why in n) printf "%d\t  %d skipped: %s (%s%s)\n", n[why], n[why], why, first[why], (n[why] > 1 ? ", ..." : "") }' "$cases" | sort -rn | cut -f 2-
awk -F '\t' '{ all += $3 }
    $2 ~ /^(fuzz\/|e2e\/(faults|crash|soak|kills|power_cut|limits|vanish|full_disk|surroundings|big_row|ranks_))/ { n++; sum += $3; if ($3 > most) { most = $3; longest = $2 } }
    END { if (n) printf "  tests of reliability: %d cases, %.0f s of the %.0f s of all cases (the longest: %s, %.0f s); several run at a time\n", n, sum, all, longest, most }' "$cases"
[ "$ran" -gt 0 ] || { echo "no case ran" >&2; exit 1; }
[ -n "$allowed" ] || exit 0

# ALLOWED: REGEX OF THE REASON <tab> why the skip is acceptable
status=0
while IFS=$'\t' read -r _ name _ why; do
    sed -e '/^#/d' -e 's/\t.*//' -e '/^$/d' "$allowed" | { while read -r pattern; do [[ $why =~ $pattern ]] && exit 0; done; exit 1; } || {
        echo "skipped, but $allowed has no line for it: $name: ${why:-no reason given}" >&2
        status=1
    }
done < <(awk -F '\t' '$1 == "notrun"' "$cases")
exit $status
