#!/usr/bin/env bash
# pmemkv for quipu-rivals, without installing anything: from Debian 11, the last release that has it.
#
#   scripts/pmemkv-from-debian.sh [FOLDER]        # default: target/pmemkv
#
# apt fetches Debian's signed index and the packages into FOLDER and proves both (signature, checksums); they are only
# extracted there, and nothing of the system changes. Needs apt-get, dpkg-deb and Debian's keys (package
# debian-archive-keyring), on x86-64; no root. DEBIAN_MIRROR names another mirror, such as
# http://archive.debian.org/debian once the release has moved there.
#
# At the end it prints the setting of LD_LIBRARY_PATH with which quipu-rivals finds the library.
set -euo pipefail
cd "$(dirname "$0")/.."

release=bullseye
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
# pmemkv and what it needs, but for what every system has, and newer.
packages=(libpmemkv1 libpmemobj1 libpmem1 libmemkind0 libtbb2 libndctl6 libdaxctl1 libkmod2 libssl1.1 libhwloc15 libnuma1)

fail() {
  echo "pmemkv-from-debian: $*" >&2
  exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "Debian has pmemkv for x86-64 only, and this is $(uname -m)"
for tool in apt-get dpkg-deb ldd; do
  command -v "$tool" >/dev/null || fail "$tool is missing; on a system without it, build pmemkv 1.4 from its sources"
done
[ -r "$keys" ] || fail "$keys is missing; install debian-archive-keyring"

folder=${1:-target/pmemkv}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
mkdir -p "$folder"/apt/{etc,lists/partial,cache/archives/partial} "$folder"/packages
echo "deb [arch=amd64 signed-by=$keys] $mirror $release main" >"$folder/apt/etc/sources.list"

# All that apt reads and writes is in the folder; the system's settings, with what they call, and its lists are left
# alone. A proxy is taken from http_proxy.
cat >"$folder/apt/etc/apt.conf" <<CONF
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Dir::Etc "$folder/apt/etc";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$folder/apt";
Dir::State::status "/dev/null";
Dir::Cache "$folder/apt/cache";
CONF
apt_here() {
  APT_CONFIG="$folder/apt/etc/apt.conf" apt-get -qq "$@"
}

apt_here update || fail "Debian's index cannot be fetched from $mirror; name another with DEBIAN_MIRROR"
(cd "$folder/packages" && rm -f ./*.deb && apt_here download "${packages[@]}") || fail "a package cannot be fetched"
for package in "$folder"/packages/*.deb; do
  dpkg-deb -x "$package" "$folder/root"
done

libraries=$folder/root/usr/lib/x86_64-linux-gnu
library=$libraries/libpmemkv.so.1
missing=$(LD_LIBRARY_PATH=$libraries ldd "$library" | grep 'not found' || true)
[ -z "$missing" ] || fail "$library still lacks: $missing"

echo "pmemkv is in $folder. To measure it:"
echo
echo "  export LD_LIBRARY_PATH=$libraries"
echo "  cargo run --release -p quipu-rivals -- ops --engine quipu,pmemkv:process"
