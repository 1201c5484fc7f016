#!/bin/sh
# Runs a program of this machine in an emulated guest (TCG) with a current kernel, whose two interfaces eth0 and eth1 are wired to
# each other and whose drivers do AF_XDP zero copy. ROOT has unpacked packages of Debian: emulator, kernel, busybox; NIC is virtio
# or igb, QUEUES at least 2, LIMIT in seconds. The arguments are the command; a word that is a file's whole path is copied, with the
# libraries it loads. Ends as the command does. Nothing is installed, and no interface of this machine is used.
# Where NIC is none, the guest has no interface but what it makes itself: with PROGRAMS and MODULES of ROOT, QUEUES processors, and
# the file DISK as /dev/vda.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
in=$work/in
mkdir -p "$in/bin" "$in/dev" "$in/proc" "$in/sys" "$in/tmp" "$in/guest"
cp "$ROOT/usr/bin/busybox" "$in/bin/"
# A program, and the libraries that it loads: those of ROOT, as its C library serves programs of this machine, too.
loader=$ROOT/usr/lib64/ld-linux-x86-64.so.2
libraries=usr/lib/x86_64-linux-gnu
put() {
    for file in "$loader" "$@"; do
        place=$in${file#"$ROOT"}
        mkdir -p "${place%/*}"
        cp -L "$file" "$place"
    done
}
program() { put "$1" $("$loader" --library-path "$ROOT/$libraries" --list "$1" 2>/dev/null | sed -n 's/.* => \([^ ]*\) .*/\1/p'); }
for word; do
    case $word in /*) [ ! -f "$word" ] || program "$word" ;; esac
done
for name in ${PROGRAMS:-}; do
    file=$(ls "$ROOT/usr/bin/$name" "$ROOT/usr/sbin/$name" 2>/dev/null | head -n 1)
    [ -n "$file" ] || { echo "the unpacked packages lack $name: --refresh fetches them again"; exit 1; } >&2
    program "$file"
done
ln -s usr/lib64 "$in/lib64"

# A module behind those that it depends on. One that has no file is built in: else the guest finds no interface.
modules=$(echo "$ROOT"/usr/lib/modules/*)
module() {
    file=$(find "$modules/kernel" -name "$(echo "$1" | sed 's/[-_]/[-_]/g').ko*" | head -n 1)
    [ -n "$file" ] || return 0
    case $file in *.xz) xz -dc "$file" ;; *.zst) zstd -dc "$file" ;; *) cat "$file" ;; esac >"$in/guest/$1.ko"
    for needed in $(tr '\0' '\n' <"$in/guest/$1.ko" | sed -n 's/^depends=//p' | tr ',-' ' _'); do module "$needed"; done
    grep -qsx "$1" "$in/guest/modules" || echo "$1" >>"$in/guest/modules"
}
touch "$in/guest/modules"
interfaces='eth0 eth1'
case $NIC in
# virtio's driver refuses zero copy unless it may map memory itself.
virtio) module virtio_pci && module virtio_net
    device=virtio-net-pci,disable-legacy=on,iommu_platform=on,rx_queue_size=1024,mq=on,vectors=$((2 * QUEUES + 2)) ;;
# Takes a queue for each processor.
igb) module igb
    device=igb ;;
none) for name in virtio_pci virtio_blk $MODULES; do module "$name"; done
    # Loaded by name, by whoever opens a device for soft RoCE, or ends a thread.
    put "$ROOT/etc/libibverbs.d/rxe.driver" "$ROOT/$libraries"/libibverbs/librxe-* "$ROOT/$libraries/libgcc_s.so.1"
    # Sockets over RDMA, for programs that know TCP.
    put "$ROOT/$libraries/rsocket/librspreload.so"
    interfaces='' ;;
esac
echo "$interfaces" >"$in/guest/interfaces"

# A word for the guest's shell.
quoted() { printf "'%s' " "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
{
    echo "export GUEST_NIC=$NIC GUEST_QUEUES=$QUEUES"
    printf 'timeout -s KILL %s ' "$LIMIT"
    for word; do quoted "$word"; done
} >"$in/guest/command"
cat >"$in/init" <<'INIT'
#!/bin/busybox sh
# The kernel's messages go to the first serial line, the program's output to the second.
export PATH=/bin HOME=/ TERM=dumb NO_COLOR=1
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
stty -F /dev/ttyS1 raw
exec </dev/null >/dev/ttyS1 2>&1
end() {
    echo "guest: $*"
    poweroff -f
}
for module in $(cat /guest/modules); do
    insmod "/guest/$module.ko" || end "broken: module $module does not load"
done
ip link set lo up
for interface in $(cat /guest/interfaces); do
    [ -e /sys/class/net/$interface ] || end "broken: no $interface"
    echo 1 >/proc/sys/net/ipv6/conf/$interface/disable_ipv6
    ip link set $interface up
done
for interface in $(cat /guest/interfaces); do
    waited=0
    until [ "$(cat /sys/class/net/$interface/carrier 2>/dev/null)" = 1 ]; do
        [ $((waited += 1)) -le 100 ] || end "broken: no carrier on $interface"
        sleep 0.1
    done
done
echo "guest: Linux $(uname -r), $(nproc) processors, $(ls -d /sys/class/net/eth0/queues/tx-* 2>/dev/null | wc -l) queues"
sh /guest/command
end "exit $?"
INIT
chmod +x "$in/init"
(cd "$in" && find . | "$ROOT/usr/bin/busybox" cpio -o -H newc 2>/dev/null) >"$work/initramfs"

set -- -no-user-config -nodefaults -display none -machine q35 -accel tcg,thread=multi -cpu max -m 1G -no-reboot \
    -smp "$QUEUES" -serial "file:$work/console" -serial stdio -append "console=ttyS0 panic=-1" -initrd "$work/initramfs" \
    -kernel "$(ls "$modules/vmlinuz" "$ROOT/boot/vmlinuz-${modules##*/}" 2>/dev/null | head -n 1)"
for side in ${interfaces:+0 1}; do
    # igb's virtual functions take slots of the bus that they are on.
    set -- "$@" -device "pcie-root-port,id=port$side,chassis=$side,slot=$side" \
        -device "$device,netdev=side$side,bus=port$side,romfile=" -netdev
    case $NIC in
    virtio) set -- "$@" "tap,id=side$side,ifname=tap$side,script=no,downscript=no,queues=$QUEUES" ;;
    # One queue as qemu sees it, which igb spreads over its own.
    igb) set -- "$@" "hubport,id=side$side,hubid=0" ;;
    esac
done
[ -n "$interfaces" ] || set -- "$@" -drive "file=$DISK,if=none,format=raw,id=disk" -device virtio-blk-pci,drive=disk
set -- timeout -s KILL $((LIMIT + 120)) "$loader" --library-path "$ROOT/$libraries" \
    "$ROOT/usr/bin/qemu-system-x86_64" -L "$ROOT/usr/share/qemu" -L "$ROOT/usr/share/seabios" "$@"

# Taps of several queues, joined by a bridge, in a namespace that goes with the emulator. A bridge that learned addresses would keep
# frames back whose destination it saw on the side that they come from.
taps='set -e
ip link add wire type bridge mcast_snooping 0
ip link set wire up
for tap in tap0 tap1; do
    ip tuntap add dev $tap mode tap multi_queue vnet_hdr
    echo 1 >/proc/sys/net/ipv6/conf/$tap/disable_ipv6
    ip link set $tap mtu 9000 txqueuelen 20000 master wire up
    ip link set $tap type bridge_slave learning off
done
exec "$@"'
[ -n "$interfaces" ] || taps='exec "$@"'
if [ "$(id -u)" != 0 ]; then set -- --user --map-root-user --net -- sh -c "$taps" sh "$@"; else set -- --net -- sh -c "$taps" sh "$@"; fi
unshare "$@" </dev/null 2>"$work/complaints" | tee "$work/said" || true
status=$(tr -d '\r' <"$work/said" | sed -n 's/^guest: exit //p')
[ -n "$status" ] || { echo "the guest ended before the command did"; tail -n 12 "$work/complaints" "$work/console"; exit 1; } >&2
exit "$status"
