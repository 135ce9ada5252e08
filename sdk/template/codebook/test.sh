# The parameters are listed.
set -eu
got=$("${TARE:-tare}" plugin info ./@NAME@.so --ini)
case $got in
*"clusters = 8"*) echo "ok" ;;
*) echo "test.sh expects other parameters of the plugin (put in yours, or a test of your own); it gives: $got"; exit 1 ;;
esac
