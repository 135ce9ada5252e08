# "aab" has two bytes of one value and one of another: 2/sqrt(5) and 1/sqrt(5).
set -eu
got=$(echo '{"text":"aab"}' | "${TARE:-tare}" cluster embed ./@NAME@.so)
case $got in
*0.894427*0.447213*) echo "ok" ;;
*) echo "test.sh expects something else of the plugin (put in what you have worked out for your formula); it gives: $got"; exit 1 ;;
esac
