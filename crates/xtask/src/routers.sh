# Run in namespaces of its own for mounts, processes and the host's name (unshare), which end with it, and all that it starts and makes with them:
# FRR's routers, each in a network namespace, given the Proxy Node Capability, and what their links see of it. OSPFv2's flag comes
# from ospfd's own API, BGP's characteristic from ExaBGP. FRR's isisd has nothing that lets anybody set a flag of a prefix: IS-IS's
# comes from a neighbour of ours. The arguments: a folder for the captures and what the routers said, the system to run programs of,
# and that neighbour's program.
set -u
out=$1 root=$2 isis_neighbour=$3 programs= captures=
frr=/usr/lib/frr
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
failed() {
    echo "failed: $*"
    cp "$root"/tmp/*.pcap "$out"
    exit 1
}
trap 'exit 130' INT TERM HUP

# IS-IS tells it to everybody.
hostname frr
mkdir -p "$out" "$root/proc" "$root/run" "$root/var/tmp" /run/netns
for folder in /run/netns "$root/tmp" "$root/run" "$root/var/tmp"; do mount -t tmpfs none "$folder"; done
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
# What the packages' installation would have added.
printf 'root:x:0:0:root:/:/bin/sh\nfrr:x:100:100::/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nfrr:x:100:\nfrrvty:x:101:frr\n' >"$root/etc/group"
for kind in auth account password session; do echo "$kind required pam_permit.so"; done | tee "$root/etc/pam.d/other" >"$root/etc/pam.d/frr"

# Waits until a command succeeds, half a minute at most.
until_true() {
    local waited=0
    until "$@" >/dev/null 2>&1; do
        [ $((waited += 1)) -le 150 ] || failed "$case, timed out: $*"
        sleep 0.2
    done
}
# Runs a program on a router; `start` leaves it running.
on() {
    local where=$1
    shift
    ip netns exec "$where" chroot "$root" "$@"
}
start() {
    local log=$1 where=$2
    shift 2
    ip netns exec "$where" chroot "$root" "$@" >>"$out/$case.$log.log" 2>&1 &
    programs="$programs $!"
}
routers() {
    for name; do
        ip netns add "$name"
        ip -n "$name" link set lo up
        ip netns exec "$name" sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv6.conf.default.dad_transmits=0
        mkdir "$root/tmp/$name"
        chown 100:100 "$root/tmp/$name"
        zebra </dev/null "$name"
    done
}
# A link between two routers, and its number. Each interface has the name of the router at its other end.
link() {
    ip link add "$2" netns "$1" address "02:00:00:00:0$3:01" type veth peer name "$1" netns "$2" address "02:00:00:00:0$3:02"
    ip -n "$1" addr add "10.0.$3.1/30" dev "$2"
    ip -n "$2" addr add "10.0.$3.2/30" dev "$1"
    ip -n "$1" link set "$2" up
    ip -n "$2" link set "$1" up
}
# Starts a daemon of FRR on a router; its configuration is the input.
daemon() {
    local where=$1 name=$2 home=/tmp/$1
    shift 2
    cat >"$root$home/$name.conf"
    start "$where" "$where" $frr/$name -f $home/$name.conf -i $home/$name.pid -z $home/zserv --vty_socket $home -P 0 "$@"
    until_true vty "$where" $name 'show version'
}
zebra() { daemon "$1" zebra; }
vty() { on "$1" vtysh --vty_socket "/tmp/$1" -d "$2" -c "$3"; }
vty_has() { vty "$1" "$2" "$3" | grep -q -- "$4"; }
vty_lacks() { ! vty_has "$@"; }
# Keeps what a router says: router, daemon, command.
show() { { echo "$1# $3"; vty "$1" "$2" "$3"; } >>"$out/$case.show.txt"; }

# Captures what passes interfaces, given as router:interface, of what a filter takes.
begin() {
    case=$1 captures=
    local filter=$2 interface file
    shift 2
    for interface; do
        file=/tmp/$interface.pcap
        rm -f "$root$file"
        start tcpdump "${interface%%:*}" tcpdump -Z root -i "${interface##*:}" --time-stamp-precision=nano -U -w "$file" "$filter"
        captures="$captures $!:$interface"
        until_true test -s "$root$file"
    done
}
end() {
    local capture
    sleep 1
    for capture in $captures; do kill "${capture%%:*}"; done
    for capture in $captures; do wait "${capture%%:*}"; done
    for capture in $captures; do cp "$root/tmp/${capture#*:}.pcap" "$out/$case.$(echo "${capture#*:}" | tr : -).pcap"; done
    grep -q '[1-9][0-9]* packets dropped by kernel' "$out/$case.tcpdump.log" && failed "$case: the capture is incomplete"
}
# Ends all programs, and the routers with them.
away() {
    kill $programs 2>/dev/null
    wait
    programs=
    ip -all netns del
    rm -rf "$root"/tmp/*
}

# OSPFv2: proxy - inner - border - core, area 1 before the border and the backbone behind it.
ospf_router() {
    local where=$1 number=$2 network name
    shift 2
    {
        for name in proxy inner border core; do printf 'interface %s\n ip ospf network point-to-point\n' $name; done
        printf 'router ospf\n ospf router-id 10.9.0.%s\n capability opaque\n' "$number"
        for network; do echo " network $network"; done
    } | daemon "$where" ospfd -a
}
ospf_routers() {
    case=ospf
    routers proxy inner border core
    link proxy inner 1
    link inner border 2
    link border core 3
    ip -n proxy addr add 192.0.2.15/32 dev lo
    ospf_router proxy 1 "10.0.1.0/30 area 1" "192.0.2.15/32 area 1"
    ospf_router inner 2 "10.0.1.0/30 area 1" "10.0.2.0/30 area 1"
    ospf_router border 3 "10.0.2.0/30 area 1" "10.0.3.0/30 area 0"
    ospf_router core 4 "10.0.3.0/30 area 0"
    until_true vty_has core ospfd 'show ip ospf database summary' 192.0.2.15
}
# A client of a router's OSPF API, and the descriptor of the pipe that it takes actions from. What it added is there as long as it runs.
client() {
    rm -f "$root/tmp/$1/actions"
    mkfifo "$root/tmp/$1/actions"
    eval "exec $2<>\"\$root/tmp/\$1/actions\""
    ip netns exec "$1" chroot "$root" $frr/ospfclient.py --server 127.0.0.1 --logtag "$1" <"$root/tmp/$1/actions" >>"$out/$case.$1-client.log" 2>&1 7>&- 8>&- &
    programs="$programs $!"
}
# Extended Prefix TLV of 192.0.2.15/32 (RFC 7684 section 2.1): route type, and flags in a Prefix Extended Flags sub-TLV (RFC 9792).
prefix_tlv() { echo "00010010${1}200040c000020f000b0004$2"; }
pnc=20000000 none=00000000 intra=01 inter=03
lsas='ip proto 89 and (ip[21] == 4 or ip[21] == 5)' opaque='show ip ospf database opaque'

# LSAs of an area (type 10): the border's API makes what FRR itself does not, one of the backbone.
ospf_area() {
    begin ospf-area "$lsas" proxy:inner border:inner core:border
    client proxy 7
    client border 8
    echo "add,10,1,7,1,$(prefix_tlv $intra $pnc)" >&7
    until_true vty_has border ospfd "$opaque-area" 'Advertising Router: 10.9.0.1'
    sleep 3
    show border ospfd "$opaque-area"
    show border ospfd "$opaque-area json"
    show core ospfd "$opaque-area json"
    show core ospfd 'show ip ospf database summary 192.0.2.15'
    # FRR 10.3 does not change an LSA of this type of its API, as its own module for segment routing owns the type: another one,
    # and of several the one with the lowest ID counts (RFC 7684 section 2).
    echo "add,10,0,7,2,$(prefix_tlv $inter $none)" >&8
    until_true vty_has core ospfd "$opaque-area" 7.0.0.2
    sleep 2
    echo "add,10,0,7,1,$(prefix_tlv $inter $pnc)" >&8
    until_true vty_has core ospfd "$opaque-area" 7.0.0.1
    show core ospfd "$opaque-area json"
    sleep 2
    # The proxy is none any more, and the border follows.
    echo "del,10,1,7,1" >&7
    until_true vty_has border ospfd "$opaque-area" 'LS age: 3600'
    echo "del,10,0,7,1" >&8
    until_true vty_has core ospfd "$opaque-area" 'LS age: 3600'
    show core ospfd "$opaque-area json"
    end
    exec 7>&- 8>&-
}
# LSAs of the whole domain (type 11).
ospf_domain() {
    begin ospf-domain "$lsas" proxy:inner border:inner core:border
    client proxy 7
    echo "add,11,7,1,$(prefix_tlv $intra $pnc)" >&7
    until_true vty_has core ospfd "$opaque-as" 'Advertising Router: 10.9.0.1'
    sleep 3
    show core ospfd "$opaque-as"
    # Without the flag, then not at all.
    echo "add,11,7,1,$(prefix_tlv $intra $none)" >&7
    until_true vty_has core ospfd "$opaque-as" 80000002
    sleep 2
    echo "del,11,7,1" >&7
    # It stays in the LSDB for a minute.
    until_true vty_has core ospfd "$opaque-as" 'LS age: 3600'
    end
    exec 7>&-
}

# IS-IS: proxy (the neighbour) - inner - border - core, level 1 before the border and level 2 behind it.
isis_router() {
    local where=$1 number=$2 area=$3 of=$4 name level
    shift 4
    {
        for name; do
            level=1
            [ "$name" = core ] || [ "$where" = core ] && level=2
            printf 'interface %s\n ip router isis net\n isis network point-to-point\n isis circuit-type level-%s\n' "$name" $level
        done
        printf 'router isis net\n net 49.%s.0000.0000.000%s.00\n is-type %s\n lsp-gen-interval 1\n' "$area" "$number" "$of"
    } | daemon "$where" isisd
}
isis() {
    case=isis
    routers proxy inner border core
    link proxy inner 1
    link inner border 2
    link border core 3
    isis_router inner 2 0001 level-1 proxy border
    isis_router border 3 0001 level-1-2 inner core
    isis_router core 4 0002 level-2-only border
    begin isis lsp proxy:inner border:inner core:border
    mkfifo "$root/tmp/proxy/flags"
    exec 7<>"$root/tmp/proxy/flags"
    ip netns exec proxy chroot "$root" python3 -c "$isis_neighbour" inner 490001 192.0.2.15 <"$root/tmp/proxy/flags" >>"$out/isis.neighbour.log" 2>&1 7>&- &
    programs="$programs $!"
    until_true vty_has inner isisd 'show isis neighbor' '0000.0000.0001 .* Up '
    until_true vty_has core isisd 'show isis neighbor' ' Up '
    echo 01 >&7
    # Border, which is in both levels, has a route to the proxy, and time to tell core of it.
    until_true vty_has border isisd 'show isis route' 192.0.2.15/32
    sleep 10
    show border isisd 'show isis route'
    show border isisd 'show isis database detail 0000.0000.0001.00-00'
    show core isisd 'show isis database detail'
    # Without the flag, with it, and purged.
    echo 00 >&7
    sleep 5
    echo 01 >&7
    sleep 5
    echo >&7
    until_true vty_lacks border isisd 'show isis database detail' 192.0.2.15/32
    show border isisd 'show isis database'
    end
    exec 7>&-
}

# BGP: proxy (ExaBGP, AS 65000) - reflector - edge - outside (AS 65001). The next hop stays up to the edge.
bgp_router() {
    local where=$1 number=$2 as=$3
    { printf 'router bgp %s\n bgp router-id 10.9.0.%s\n no bgp ebgp-requires-policy\n timers bgp 30 90\n' "$as" "$number"; cat; } | daemon "$where" bgpd
}
bgp_routers() {
    case=bgp
    routers proxy reflector edge outside
    link proxy reflector 1
    link reflector edge 2
    link edge outside 3
    begin bgp 'tcp port 179 and tcp[13] & 8 != 0' proxy:reflector edge:reflector outside:edge
    ip -n reflector route add 192.0.2.15 via 10.0.1.1
    ip -n edge route add 192.0.2.15 via 10.0.2.1
    bgp_router reflector 2 65000 <<'BGP'
 neighbor 10.0.1.1 remote-as 65000
 neighbor 10.0.1.1 passive
 neighbor 10.0.1.1 route-reflector-client
 neighbor 10.0.2.2 remote-as 65000
 neighbor 10.0.2.2 route-reflector-client
BGP
    bgp_router edge 3 65000 <<'BGP'
 neighbor 10.0.2.1 remote-as 65000
 neighbor 10.0.3.2 remote-as 65001
BGP
    bgp_router outside 4 65001 <<'BGP'
 neighbor 10.0.3.1 remote-as 65000
BGP
}
# Attribute 39 (draft-ietf-idr-nhc): IPv4 unicast, the next hop 192.0.2.15, and PNC without a value.
nhc='attribute [ 0x27 0xc0 0x0001'"01"'04c000020fff000000 ]'
say() { echo "$*" >>"$root/tmp/proxy/exabgp.in"; }
bgp() {
    : >"$root/tmp/proxy/exabgp.in"
    cat >"$root/tmp/proxy/exabgp.conf" <<'BGP'
process commands {
    run /usr/bin/tail -n +1 -f /tmp/proxy/exabgp.in;
    encoder text;
}
neighbor 10.0.1.2 {
    router-id 10.9.0.1;
    local-address 10.0.1.1;
    local-as 65000;
    peer-as 65000;
    family { ipv4 unicast; }
    api { processes [ commands ]; }
}
BGP
    start exabgp proxy env exabgp.daemon.user=root exabgp.api.ack=false exabgp.api.cli=false python3-exabgp /tmp/proxy/exabgp.conf
    local exabgp=$!
    until_true vty_has outside bgpd 'show bgp summary json' '"state":"Established"'
    say "announce route 10.1.0.0/16 next-hop 192.0.2.15 $nhc"
    say "announce route 192.0.2.15/32 next-hop 192.0.2.15 $nhc"
    until_true vty_has outside bgpd 'show bgp ipv4 unicast' 10.1.0.0/16
    for name in reflector edge outside; do show $name bgpd 'show bgp ipv4 unicast 10.1.0.0/16'; done
    sleep 1
    # Again without the characteristic, with it, and withdrawn.
    say "announce route 10.1.0.0/16 next-hop 192.0.2.15"
    sleep 6
    say "announce route 10.1.0.0/16 next-hop 192.0.2.15 $nhc"
    sleep 6
    say "withdraw route 10.1.0.0/16"
    until_true vty_lacks outside bgpd 'show bgp ipv4 unicast' 10.1.0.0/16
    sleep 1
    kill $exabgp
    until_true vty_lacks outside bgpd 'show bgp ipv4 unicast' 192.0.2.15/32
    end
}

ospf_routers
ospf_area
away
ospf_routers
ospf_domain
away
isis
away
bgp_routers
bgp
away
