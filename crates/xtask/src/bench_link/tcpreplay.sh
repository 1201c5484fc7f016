#!/bin/sh
# Builds the newest tcpreplay of Debian with AF_XDP as $1/tcpreplay, and puts the libraries that it was linked with into $1/lib.
# Nothing is installed: apt works on a state of its own, and headers are unpacked into a folder that goes again.
set -eu
folder=$1 work=$1/work keys=/usr/share/keyrings/debian-archive-keyring.gpg
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/source" "$folder/lib"
cd "$work"
mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $3 !~ /-/ { print $2; exit }')
[ -n "$mirror" ] || { echo "apt knows no Debian mirror" >&2; exit 1; }
[ ! -f $keys ] || signed="[signed-by=$keys] "
echo "deb-src ${signed-}$mirror sid main" >sources.list
# A mirror may be a snapshot, and it may not answer.
get() { timeout 90 apt-get -qq -o APT::Sandbox::User=root "$@" >/dev/null; }
own="-o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$work/lists
    -o Dir::Cache=$work -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none"
get $own update
# apt checks the archive against the signed index; dpkg-source, which would unpack it, need not be there.
get $own source --download-only --only-source tcpreplay
tar -x --strip-components=1 -C source -f "$(ls tcpreplay_*.orig.tar.* | grep -v '\.asc$' | head -n 1)"
# What AF_XDP needs beside it, of the version that this system has.
get download libxdp-dev libxdp1 libbpf-dev libbpf1
for package in *.deb; do dpkg-deb --extract "$package" root; done
libraries=$(dirname "$work"/root/usr/lib/*/libxdp.so.1)
cd source
export CFLAGS="-O2 -I$work/root/usr/include" LDFLAGS="-L$libraries -Wl,-rpath-link,$libraries"
timeout 180 ./configure --quiet
timeout 180 make --silent --jobs="$(nproc)"
LD_LIBRARY_PATH=$libraries src/tcpreplay --version 2>&1 | grep -q AF_XDP || { echo "its configure found no libxdp" >&2; exit 1; }
# Libraries first: a program that is there is taken for complete.
cp -a "$libraries/." "$folder/lib"
cp src/tcpreplay "$folder/"
