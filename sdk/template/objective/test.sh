# The derivatives from compute match its values.
set -eu
got=$(${TARE:-tare} plugin check ./@NAME@.so --only gradient)
case $got in
*"pass  gradient"*) echo "ok" ;;
*) echo "test.sh expects something else of the plugin (put in what you have worked out for your formula); it gives: $got"; exit 1 ;;
esac
