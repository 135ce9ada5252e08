# The parameters are listed.
set -eu
"${TARE:-tare}" plugin info ./@NAME@.so --ini | grep -q '^clusters = 8$' && echo "ok"
