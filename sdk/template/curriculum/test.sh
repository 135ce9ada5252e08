# keep depends on the groups alone, and repeats its result.
set -eu
got=$(${TARE:-tare} plugin check ./@NAME@.so --only phases)
case $got in
*"pass  phases"*) echo "ok" ;;
*) echo "test.sh expects something else of the plugin (put in what you have worked out for your formula); it gives: $got"; exit 1 ;;
esac
