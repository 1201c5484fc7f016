#!/bin/busybox sh
# The guest's first process. The kernel's messages go to the first serial line, what the lab reads to the second.
export PATH=/bin HOME=/ TERM=dumb NO_COLOR=1
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /tmp /run /sys/fs/bpf
mount -t bpf bpf /sys/fs/bpf
stty -F /dev/ttyS1 raw
exec </dev/null >/dev/ttyS1 2>&1
. /lab/environment

end() {
    echo "fcn-lab: $*"
    poweroff -f
}

for module in $(cat /lab/modules); do
    insmod "/lab/$module.ko" || end "broken: module $module does not load"
done
waited=0
until [ -e /sys/class/net/eth1 ]; do
    [ $((waited += 1)) -le 50 ] || end "broken: no eth1: is the driver of $LAB_NIC in this kernel, or among its modules?"
    sleep 0.1
done
ip link set lo up
for interface in eth0 eth1; do
    echo 1 >/proc/sys/net/ipv6/conf/$interface/disable_ipv6
    # igb takes a queue for each processor. Its rings stay as they are: where the receive ring is longer than a
    # socket's fill ring, its zero-copy receive runs over stale descriptors.
    if [ "$LAB_NIC" = igb ]; then
        ethtool -L $interface combined "$LAB_QUEUES"
    fi
    ip link set $interface up
done
for interface in eth0 eth1; do
    waited=0
    until [ "$(cat /sys/class/net/$interface/carrier 2>/dev/null)" = 1 ]; do
        [ $((waited += 1)) -le 100 ] || end "broken: no carrier on $interface"
        sleep 0.1
    done
done
set -- $(cat /proc/uptime)
echo "fcn-lab: ready: Linux $(uname -r), $(nproc) processors, $(ls -d /sys/class/net/eth0/queues/tx-* | wc -l) queues, after $1 s"
timeout -s KILL "$LAB_LIMIT" sh /lab/command
end "exit $?"
