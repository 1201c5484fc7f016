# Run in the guest: Linux's soft RoCE (rdma_rxe) on two hosts, left and right, with a router between them, each a network namespace.
# What the hosts' interfaces see is captured, case by case, and goes to /dev/vda as a tar file, with what the programs said and
# soft RoCE's counters before and after. The arguments: fcn-replay, captures of a CNP and of Fast CNPs for it to send, fcn-gen, and
# the cases, separated by spaces.
set -u
replay=$1 cnps=$2 fast_cnps=$3 gen=$4 cases=$5
export PATH=/usr/bin:/usr/sbin:/bin
echo 'root:x:0:0:root:/:/bin/sh' >/etc/passwd
out=/tmp/out status=0
mkdir -p "$out" /run/netns
# busybox has an ip of its own, which the shell prefers.
ip() { /usr/bin/ip "$@"; }
on='/usr/bin/ip netns exec'
failed() {
    echo "failed: $*"
    status=1
}

for name in left router right; do
    ip netns add $name
    ip -n $name link set lo up
done
$on router sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
# Name, number, and the networks between it and the router.
host() {
    ip link add eth0 netns "$1" address "02:00:00:00:00:0$2" type veth peer name "$1" netns router address "02:00:00:00:01:0$2"
    ip -n router addr add "$3.254/24" dev "$1"
    ip -n router addr add "$4::fe/64" dev "$1" nodad
    ip -n router link set "$1" up
    ip -n "$1" addr add "$3.1/24" dev eth0
    ip -n "$1" addr add "$4::1/64" dev eth0 nodad
    ip -n "$1" link set eth0 up
    ip -n "$1" route add default via "$3.254"
    ip -n "$1" route add default via "$4::fe"
    $on "$1" rdma link add "rxe_$1" type rxe netdev eth0 || failed "no soft RoCE on $1"
}
host left 1 192.0.2 2001:db8:1
host right 2 198.51.100 2001:db8:2
# Whence Fast CNPs come, and where answers to them go.
ip -n router addr add 2001:db8:ffff::3/128 dev lo
for to in 198.51.100.1 2001:db8:2::1; do
    $on left ping -c 1 -W 5 $to >/dev/null || failed "cannot reach $to"
done

# Waits until a command succeeds, half a minute at most.
until_true() {
    waited=0
    until "$@"; do
        [ $((waited += 1)) -le 300 ] || { failed "timed out: $*"; return; }
        sleep 0.1
    done
}
listens() { $on "$1" netstat -ltn | grep -q ":$2 "; }
counters() {
    for host in left right; do
        for file in /sys/class/infiniband/rxe_$host/ports/1/hw_counters/*; do echo "rxe_$host ${file##*/} $(cat "$file")"; done
    done >"$out/$case.counters-$1.txt"
}
# A case's name, and the octets to capture of each packet; fails where that case is not asked for.
begin() {
    case " $cases " in *" $1 "*) ;; *) return 1 ;; esac
    case=$1
    echo "$case, at $(cut -d ' ' -f 1 /proc/uptime) s"
    counters before
    capturing=
    for host in left right; do
        $on $host tcpdump -Z root -i eth0 -s "${2:-0}" --time-stamp-precision=nano -U -w "$out/$case.$host.pcap" \
            2>"$out/$case.$host.tcpdump.txt" &
        capturing="$capturing $!"
    done
    for host in left right; do until_true grep -q listening "$out/$case.$host.tcpdump.txt"; done
}
end() {
    sleep 1
    for process in $capturing; do kill "$process"; done
    for process in $capturing; do wait "$process"; done
    grep -q '^0 packets dropped by kernel' "$out/$case".*.tcpdump.txt || failed "$case: the capture is incomplete"
    counters after
}

# RDMA CM: the right host writes to and reads from the left one, which connects.
ping_over() {
    $on right timeout 60 rping -s -a "$1" -C 4 -S 2000 >"$out/$case.right.txt" 2>&1 &
    server=$!
    sleep 2
    $on left timeout 60 rping -c -a "$1" -C 4 -S 2000 >"$out/$case.left.txt" 2>&1 || failed "$case: rping"
    wait $server
}
# A test of perftest: the right host serves, the left one asks. QPs are exchanged by TCP. Index 1 is the IPv4 address, 2 IPv6.
perftest() {
    $on right timeout 60 "$@" -F -d rxe_right >"$out/$case.$1.right.txt" 2>&1 &
    server=$!
    until_true listens right 18515
    $on left timeout 60 "$@" -F -d rxe_left 198.51.100.1 >"$out/$case.$1.left.txt" 2>&1 || failed "$case: $*"
    wait $server
}

# A flow's two QPs shall have different numbers: they count alike on both hosts, and the right one uses up two more.
$on right timeout 60 ib_send_lat -F -d rxe_right -x 1 -n 5 >/dev/null 2>&1 &
server=$!
until_true listens right 18515
$on right timeout 60 ib_send_lat -F -d rxe_right -x 1 -n 5 198.51.100.1 >/dev/null 2>&1 || failed "ib_send_lat to oneself"
wait $server

if begin rping-ipv4; then
    ping_over 198.51.100.1
    end
fi

if begin rping-ipv6; then
    ping_over 2001:db8:2::1
    end
fi

for index in 1 2; do
    begin verbs-ipv$((2 * index + 2)) || continue
    perftest ib_write_bw -x $index -m 256 -s 1024 -n 5
    perftest ib_read_bw -x $index -m 256 -s 1024 -n 5
    perftest ib_send_lat -x $index -m 256 -s 64 -n 5 -c UD
    perftest ib_atomic_lat -x $index -m 256 -n 5
    end
done

# Loss for UDP alone: TCP, by which QPs are exchanged, would wait for seconds.
if begin loss; then
    for side in left right; do
        $on router tc qdisc add dev $side root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
        $on router tc filter add dev $side parent 1: protocol ip u32 match ip protocol 17 0xff flowid 1:3
        $on router tc qdisc add dev $side parent 1:3 netem loss 5% seed 7
    done
    perftest ib_write_bw -x 1 -m 256 -s 1024 -n 8
    perftest ib_read_bw -x 1 -m 256 -s 1024 -n 8
    for side in left right; do
        $on router tc -s qdisc show dev $side
        $on router tc qdisc del dev $side root
    done >"$out/$case.qdisc.txt"
    end
fi

# A queue before the right host that marks what waits longer than a millisecond: DSCP 26, ECT(0).
if begin ce; then
    $on router tc qdisc add dev right root handle 1: tbf rate 8mbit burst 2kb limit 100kb
    $on router tc qdisc add dev right parent 1:1 codel ecn ce_threshold 1ms target 1s interval 2s
    perftest ib_write_bw -x 2 -m 256 -s 1024 -n 26 -t 6 --tclass 106
    $on router tc -s qdisc show dev right >"$out/$case.qdisc.txt"
    $on router tc qdisc del dev right root
    end
fi

if begin cut 128; then
    perftest ib_send_bw -x 2 -m 1024 -s 4096 -n 10
    end
fi

# A CNP and Fast CNPs, with the ICRC by each reading, while data flows slowly: 15 messages a second.
if begin notified; then
    perftest ib_write_bw -x 2 -m 256 -s 64 -n 120 -u 18 --rate_limit 15 --rate_units p --burst_size 1 --rate_limit_type SW &
    test=$!
    connected() { $on left rdma resource show qp link rxe_left | grep -q 'type RC state RTS'; }
    until_true connected
    qp() { $on left rdma resource show qp link rxe_left | sed -n "s/.* $1 \([0-9]*\) .*type RC state RTS.*/\1/p"; }
    inject() {
        $on router "$replay" "$@" --iface left --backend packet --dst-mac 02:00:00:00:00:01 --src-mac 02:00:00:00:01:01 --rate 10pps \
            --map-qp "0x11=$(qp lqpn)" --map-qp "0x12=$(qp rqpn)" >>"$out/$case.replay.txt" 2>&1 || failed "fcn-replay $*"
    }
    inject "$cnps" --frames 8
    inject "$fast_cnps" --frames 2-6
    wait $test
    end
fi

# fcn-gen in the place of the router: a switch in the wire between the hosts, whose link to the right one is slow. Checksums must be
# there, as what comes in by a socket goes out as it is.
as_switch() {
    for side in left right; do
        ip -n router addr flush dev $side
        $on router sysctl -q -w net.ipv6.conf.$side.disable_ipv6=1
        $on $side ethtool -K eth0 tx off >/dev/null || failed "cannot disable checksum offload on $side"
    done
    for to in 198.51.100.1 2001:db8:2::1 2001:db8:ffff::/48; do ip -n left route replace $to dev eth0; done
    # What the hosts answer the switch goes its way, too.
    ip -n left neigh replace 2001:db8:ffff::1 lladdr 02:00:00:00:01:01 dev eth0
    for to in 192.0.2.1 2001:db8:1::1; do ip -n right route replace $to dev eth0; done
    as_switch() { :; }
}
# What senders are to be told by, the sender of the scenario, and options.
begin_switch() {
    as_switch
    mechanism=$1 sender=$2
    shift 2
    $on router "$gen" emulate congestion-point --iface left --iface right --backend packet --forever --json \
        --set mechanism=$mechanism --set host.sender.ipv6=$sender --set host.receiver.ipv6=2001:db8:2::1 \
        --set rate=4M --set kmin=4kB --set kmax=16kB --set queue=64kB "$@" >"$out/$case.role.json" 2>"$out/$case.role.txt" &
    role=$!
    until_true $on left ping -c 1 -W 1 198.51.100.1 >/dev/null
    $on left ping -c 1 -W 5 2001:db8:2::1 >/dev/null || failed "$case: nothing passes the switch"
}
end_role() {
    kill -INT $role
    # Interrupted.
    wait $role
    [ $? = 130 ] || failed "$case: $(cat "$out/$case.role.txt")"
    end
}
real_sender() {
    ping_over 2001:db8:2::1
    perftest ib_write_bw -x 2 -m 256 -s 1024 -n 40 -t 6 --tclass 106
}

if begin switch-fast-cnp; then
    begin_switch fast-cnp 2001:db8:1::1 --enable-fast-cnp
    real_sender
    end_role
fi

if begin switch-cnp; then
    begin_switch switch-cnp 2001:db8:1::1
    real_sender
    end_role
fi

# fcn-gen as the sender, at the left host's interface and with an address of its own, and in the place of the router. The right host has a
# socket of librdmacm, whose buffer is written: its program waits for what writes do not tell it. What they wrote is in its memory.
if begin sender; then
    # A hundredth of the speed at which DCQCN's times are meant: of 1 Gbit/s, over a link of 400 Mbit/s.
    begin_switch fast-cnp 2001:db8:1::2 --enable-fast-cnp --speed 0.01 --set rate=400M
    ip -n right route replace 2001:db8:1::2 dev eth0
    ip -n right neigh replace 2001:db8:1::2 lladdr 02:00:00:00:00:01 dev eth0 nud permanent
    $on right timeout 60 rstream -f ip -b 2001:db8:2::1 -p 18515 >"$out/$case.rstream.txt" 2>&1 &
    server=$!
    socket_listens() { $on right rdma resource show cm_id | grep -q 'state LISTEN'; }
    until_true socket_listens
    $on left "$gen" emulate sender --iface eth0 --allow-default-route --backend packet --duration 30s --json --enable-fast-cnp \
        --peer-mac 02:00:00:00:00:02 --speed 0.01 --set flows=1 --set flow.load.messages=12 --set message=8KiB --set flow.load.window=24 \
        --set host.sender.ipv6=2001:db8:1::2 --set host.receiver.ipv6=2001:db8:2::1 \
        >"$out/$case.sender.json" 2>"$out/$case.sender.txt" || failed "$case: $(cat "$out/$case.sender.txt")"
    grep -q 'every message was acknowledged' "$out/$case.sender.json" || failed "$case: not everything was acknowledged"
    grep -q '"fast_cnp_1": [1-9]' "$out/$case.sender.json" || failed "$case: no Fast CNP slowed the sender"
    # Of the pattern that messages consist of there is a line for each 256 octets; twelve messages have 96 KiB.
    grep ' rw-p ' /proc/$(pidof rstream)/maps | while read range rest; do
        begin=0x${range%-*} end=0x${range#*-}
        dd if=/proc/$(pidof rstream)/mem bs=4096 skip=$((begin / 4096)) count=$(((end - begin) / 4096)) 2>/dev/null
    done | grep -c 'ABCDEFGHIJKLMNOPQRSTUVWXYZ' >"$out/$case.memory.txt"
    [ "$(cat "$out/$case.memory.txt")" = 384 ] || failed "$case: lines of the pattern in the target's memory: $(cat "$out/$case.memory.txt")"
    kill "$(pidof rstream)"
    wait $server
    end_role
fi

# fcn-gen in the place of the right host, and of the router: a receiver that the left host's RDMA CM connects to. rping wants what it
# refuses. nc's octets are RDMA WRITEs by librdmacm's sockets, and a queue on their way marks what waits for longer than a millisecond.
if begin receiver; then
    as_switch
    mount -t configfs configfs /sys/kernel/config
    mkdir /sys/kernel/config/rdma_cm/rxe_left
    # ECT(0).
    echo 2 >/sys/kernel/config/rdma_cm/rxe_left/ports/1/default_roce_tos
    for to in 198.51.100.1 2001:db8:2::1; do
        ip -n left neigh replace $to lladdr 02:00:00:00:01:01 dev eth0 2>/dev/null ||
            ip -n left neigh replace $to lladdr 02:00:00:00:01:01 dev eth0 nud permanent
    done
    $on router "$gen" emulate receiver --iface left --backend packet --forever --json --set host.receiver.ipv6=2001:db8:2::1 \
        >"$out/$case.role.json" 2>"$out/$case.role.txt" &
    role=$!
    until_true grep -q Ctrl-C "$out/$case.role.txt"
    $on left timeout 60 rping -c -a 2001:db8:2::1 -C 1 >"$out/$case.rping.txt" 2>&1 && failed "$case: rping was served"
    $on left tc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 2kb limit 100kb
    $on left tc qdisc add dev eth0 parent 1:1 codel ecn ce_threshold 1ms target 1s interval 2s
    head -c 20000 /dev/urandom >/tmp/octets
    $on left env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so timeout 20 nc.openbsd -v -N 2001:db8:2::1 18515 \
        </tmp/octets >"$out/$case.nc.txt" 2>&1
    $on left tc -s qdisc show dev eth0 >"$out/$case.qdisc.txt"
    end_role
fi

echo "all, at $(cut -d ' ' -f 1 /proc/uptime) s"
tar c -C "$out" . >/dev/vda
exit $status
