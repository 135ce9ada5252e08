# The derivatives that compute gives are those of its values.
set -eu
got=$(${TARE:-tare} plugin check ./@NAME@.so --only gradient)
case $got in
*"pass  gradient"*) echo "ok" ;;
*) echo "unexpected: $got"; exit 1 ;;
esac
