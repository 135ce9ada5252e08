#!/usr/bin/env bash
# Two hosts: two network namespaces of this machine, joined by a virtual cable, with their own host
# names, and MPI over TCP between them. The quickstart's model trains some steps on two ranks of
# each, bit-identical to a run on one rank. A killed rank on the far host ends the job on both; so
# does a cable that is pulled in the middle of a step, and --resume is bit-identical.
. "$(dirname "$0")/ranks.inc"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip > /dev/null || skip "ip is not installed (apt install iproute2)"
command -v unshare > /dev/null || skip "unshare is not installed (apt install util-linux)"
A=tareA$$ B=tareB$$
clean() {
    ip netns del $A 2> /dev/null
    ip netns del $B 2> /dev/null
    rm -rf "$WORK"
}
ip netns add $A 2> /dev/null || skip "this machine does not let root make network namespaces"
trap clean EXIT
ip netns add $B
ip link add va$$ type veth peer name vb$$ 2> /dev/null || skip "this kernel has no virtual Ethernet (veth)"
# One name on both hosts, for mpirun: given a network's address, Open MPI 5 does not find its
# interface and uses all interfaces.
ip link set va$$ netns $A name tare0
ip link set vb$$ netns $B name tare0
ip -n $A addr add 10.97.13.1/24 dev tare0
ip -n $B addr add 10.97.13.2/24 dev tare0
for at in $A $B; do
    ip -n $at link set lo up
    ip -n $at link set tare0 up
done
# The ssh command of mpirun: HOST COMMAND. It is found on PATH, because mpirun splits this option at
# spaces.
cat > as_ssh <<SH
#!/bin/sh
shift
exec ip netns exec $B unshare --uts sh -c 'hostname tare-b; exec sh -c "\$*"' sh "\$@"
SH
chmod +x as_ssh
PATH=$WORK:$PATH
# pml ob1: Open MPI 5 may choose UCX, which notices that both hosts share this machine's memory and
# sends nothing through the cable.
two_hosts() { # RANKS command...
    local n=$1
    shift
    timeout 300 ip netns exec $A unshare --uts sh -c 'hostname tare-a; exec "$@"' sh $MPIRUN --mca plm_rsh_agent as_ssh --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include tare0 --mca oob_tcp_if_include tare0 \
        --host 10.97.13.1:$((n / 2)),10.97.13.2:$((n / 2)) -n "$n" -x TARE_PLUGIN_PATH -x TARE_FAULT -x MARK -wdir "$PWD" "$@"
}
export TARE_FAULT=
# Not `hostname` alone: mpirun of Open MPI 5 sometimes does not end after a command that is over
# before it has reported its start (open-mpi/ompi, issues 10586 and 12064): on a busy machine 7 of
# 282 times, but 0 of 500 with a command of half a second.
cat > names << 'SH'
#!/bin/sh
hostname
exec sleep 0.5
SH
chmod +x names
names=$(two_hosts 2 ./names | sort | tr '\n' ' ')
[ "$names" = "tare-a tare-b " ] && ok || bad "the ranks run on '$names'"

mkdir configs
cp "$SOURCE"/configs/quickstart*.ini configs/
config=configs/quickstart.ini
"$TARE" -q sft configs/quickstart-phase1.ini sft.steps=30 run.dir=sft sft.out=runs/quickstart-base-1 > out.txt 2> err.txt || { bad "the model was not made"; cat err.txt; }
keys="train.steps=3 eval.rows=8 log.progress=none log.rollouts=true checkpoint.every=1"
"$TARE" -q train $config $keys run.dir=one > out.txt 2> err.txt || { bad "the run on one rank failed"; cat err.txt; }
two_hosts 4 "$TARE" -q train $config $keys run.dir=two > out.txt 2> err.txt && ok || { bad "the quickstart on two hosts failed"; cat err.txt; }
cmp -s one/rollouts/step-000001.jsonl two/rollouts/step-000001.jsonl && ok || bad "the first step differs from that of one rank"
cmp -s one/checkpoints/step-000003/model.safetensors two/checkpoints/step-000003/model.safetensors && ok || bad "the weights differ from those of one rank"

carried=$(ip netns exec $B cat /sys/class/net/tare0/statistics/rx_bytes)
[ "$carried" -gt 1000000 ] && ok || bad "the cable carried $carried bytes: the ranks do not use it"

status=0
TARE_FAULT=rank=3,stage=update,step=2,kind=kill two_hosts 4 "$TARE" -q train $config $keys run.dir=killed > out.txt 2> err.txt || status=$?
[ $status != 0 ] && [ $status != 124 ] && ok || bad "a kill on the far host: exit status $status"
grep -q "^tare: rank 3 (host tare-b, .*) failed in update of step 2: " err.txt && ok || { bad "a kill on the far host: the message does not name it"; cat err.txt; }
[ "$(messages err.txt)" = 1 ] && ok || { bad "a kill on the far host: $(messages err.txt) messages"; cat err.txt; }
[ "$(left_behind)" = 0 ] && ok || bad "a kill on the far host: a process remains"

# The far host's cable is pulled while its rank 3 has stopped itself in step 2. No process of the
# job reaches both hosts then, so each host has to find it alone.
pulled() { # RUN
    TARE_FAULT=rank=3,stage=update,step=2,kind=freeze two_hosts 4 "$TARE" -q train $config $keys run.dir="$1" > out.txt 2> err.txt &
    pid=$!
    who=$(frozen) || { bad "a cable: rank 3 does not reach step 2: $(tail -2 err.txt)"; kill $pid; wait $pid; done_; exit 1; }
    ip -n $B link set tare0 down
    began=$SECONDS
    kill -CONT "$who"
    # Processes of ranks only: mpirun may wait for the far host's daemon until the cable is back.
    left=$(left_behind)
    ended=$((SECONDS - began))
    ip -n $B link set tare0 up
    status=0
    { wait $pid || status=$?; } 2> /dev/null
    echo "the cable is pulled: the ranks have ended after $ended s, mpirun after $((SECONDS - began)) s with exit status $status: $(cat err.txt)"
}
# As in e2e/ranks_partition: on a busy machine mpirun may be slow to end the ranks, so a second rank
# reports, and the case is repeated.
for try in 1 2 3; do
    rm -rf cable
    pulled cable
    [ "$(messages err.txt)" -gt 1 ] || break
done
[ "$left" = 0 ] && ok || bad "a cable: $left processes remain"
[ $status != 0 ] && [ $status != 124 ] && ok || bad "a cable: exit status $status"
grep -qE "^tare: rank [0-3] \(host tare-[ab], .*\) failed in .* of step [0-9]*: (nothing has been heard from it|it has heard nothing from rank 0) for 7 s .*; the job ends on all ranks, --resume" err.txt && ok ||
    { bad "a cable: the message does not name it"; cat err.txt; }
[ "$(messages err.txt)" = 1 ] && ok || { bad "a cable: $(messages err.txt) messages"; cat err.txt; }
two_hosts 4 "$TARE" -q train $config $keys run.dir=cable --resume > out.txt 2> err.txt && ok || { bad "a cable: does not continue"; cat err.txt; }
cmp -s one/checkpoints/step-000003/model.safetensors cable/checkpoints/step-000003/model.safetensors && ok || bad "a cable: the weights differ from those of one rank"
"$TARE" -q reproduce cable > out.txt 2>&1 && ok || bad "a cable: reproduce: $(tail -2 out.txt)"
done_
