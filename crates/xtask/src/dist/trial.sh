# Run by `cargo xtask dist --try` in a system to be thrown away. Lines that begin with "trial: " are shown.
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /fcn-trial
mount -t sysfs sysfs /sys
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
# What others only recommend or suggest goes with who brought it.
apt() {
    apt-get -q -y -o Acquire::Check-Valid-Until=no -o APT::Sandbox::User=root \
        -o APT::AutoRemove::RecommendsImportant=0 -o APT::AutoRemove::SuggestsImportant=0 "$@"
}
fail() { echo "trial failed: $*" >&2; exit 1; }
# Every path but those of caches, logs, accounts of packages, and what groupadd keeps of the list before.
paths() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /fcn-trial \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \
        -o -path /etc/group- -o -path /etc/gshadow- \) -prune -o -print |
        LC_ALL=C sort
}

. /etc/os-release
apt update
# What debootstrap may have left undone is not ours, nor is what unpacks an archive.
apt install --fix-broken --no-install-recommends xz-utils
paths > before
cp /etc/group group

apt install --no-install-recommends ./fcn-tools_*.deb
for tool in fcn-gen fcn-replay fcn-top; do
    $tool --version > /dev/null
    test -s /usr/share/bash-completion/completions/$tool
done
mkdir out
chmod 777 out
setpriv --reuid 65534 --regid 65534 --clear-groups fcn-gen write fast-cnp -o out/a.pcapng --quiet
fcn-top -r out/a.pcapng --report > report
grep -q fast_cnp report || fail "no Fast CNP in the report"
fcn-replay out/a.pcapng --dry-run > /dev/null
fcn-replay out/a.pcapng -o out/b.pcapng
test -s out/b.pcapng
test ! -e /usr/bin/fcn-top-capture || fail "fcn-top-capture is there although nobody wanted it"
# As the service does.
setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all,+net_raw --ambient-caps -all,+net_raw \
    --bounding-set -all,+net_raw --no-new-privs \
    fcn-top --config /etc/fcn-top/config.toml -i lo --prometheus 0 --duration 1s --json > json
grep -q '"schema"' json || fail "the service's command prints nothing"
echo "trial: fcn-tools $(dpkg-query -W -f '${Version}' fcn-tools) runs on $PRETTY_NAME"

echo "fcn-tools fcn-tools/capture boolean true" | debconf-set-selections
dpkg-reconfigure -f noninteractive fcn-tools
group=$(getent group fcn-capture | cut -d: -f3)
setpriv --reuid 65534 --regid "$group" --clear-groups fcn-top-capture -i lo --duration 1s --json > json
grep -q '"schema"' json || fail "a member of the group captures nothing"
# In a shell: setpriv itself still has root's rights when it starts a program.
if setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "fcn-top-capture --version" 2> /dev/null; then
    fail "anybody may capture"
fi
echo "trial: members of fcn-capture capture without root, others do not"

version=$(apt-cache policy tshark | sed -n 's/^  Candidate: \([0-9]*\.[0-9]*\).*/\1/p')
plugin=fcn-wireshark-$version
if [ -e "$(echo $plugin\_*.deb)" ]; then
    apt install --no-install-recommends tshark ./$plugin\_*.deb
    tshark -G plugins 2> /dev/null | grep -q '^fcn\.so' || fail "tshark does not load the plugin"
    count=$(tshark -r out/a.pcapng -Y fastcnp 2> /dev/null | wc -l)
    test "$count" -gt 0 || fail "tshark shows no Fast CNP"
    test -d /usr/share/wireshark/profiles/fcn
    echo "trial: $plugin loads, and shows $count Fast CNPs"
    apt purge $plugin
    apt autoremove --purge tshark
else
    echo "trial: no package of the plugin for its Wireshark $version"
fi
for archive in fcn-tools-*-x86_64-linux.tar.xz; do
    [ -e "$archive" ] || continue
    tar xf "$archive"
    ./fcn-tools-*-x86_64-linux/bin/fcn-top -r out/a.pcapng --report > report2
    cmp report report2 || fail "the static fcn-top reports something else"
    echo "trial: $archive runs"
done

apt purge fcn-tools
apt autoremove --purge > /dev/null
paths > after
diff before after >&2 || fail "something is left"
diff group /etc/group >&2 || fail "a group is left"
echo "trial: removed, and nothing is left"
