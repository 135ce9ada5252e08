# What is kept follows from the groups alone, and is the same the second time.
set -eu
got=$(${TARE:-tare} plugin check ./@NAME@.so --only phases)
case $got in
*"pass  phases"*) echo "ok" ;;
*) echo "unexpected: $got"; exit 1 ;;
esac
