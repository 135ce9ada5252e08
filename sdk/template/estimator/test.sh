# The advantages of one group, computed by hand.
set -eu
got=$(echo '{"groups":[{"rewards":[1,0,0,0]}]}' | "${TARE:-tare}" estimate ./@NAME@.so)
case $got in
'{"advantages":[[0.75,-0.25,-0.25,-0.25]]'*) echo "ok" ;;
*) echo "test.sh expects something else of the plugin (put in what you have worked out for your formula); it gives: $got"; exit 1 ;;
esac
