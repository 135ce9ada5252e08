# The parameters are listed.
set -eu
"${TARE:-tare}" plugin info ./@NAME@.so --ini | grep -q '^highest = 100$' && echo "ok"
