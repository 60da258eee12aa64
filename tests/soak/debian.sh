#!/bin/bash
# Builds Backstay in a root of another Debian, plays `make check` and kills one program of each MPI
# there. Usage: debian.sh SOURCES SUITE. Needs root and debootstrap. It has a mount namespace of its
# own, so nothing stays mounted. Environment: BACKSTAY_DEBIAN_MIRROR, BACKSTAY_PIP_ARGS.
set -euo pipefail
sources=$1 suite=$2
mirror=${BACKSTAY_DEBIAN_MIRROR:-http://deb.debian.org/debian}
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "debian.sh: left out: needs root and Debian's package debootstrap"
  exit 77
fi
if [ -z "${BACKSTAY_IN_NAMESPACE:-}" ]; then
  BACKSTAY_IN_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

root=$(mktemp -d /var/tmp/backstay-debian-XXXXXX)
trap 'umount -lR "$root" 2>/dev/null; rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase --include=ca-certificates,git,make,python3 "$suite" "$root" "$mirror"
cp /etc/resolv.conf "$root/etc/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
git clone -q "$sources" "$root/backstay"

settings=(HOME=/root TERM=dumb PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
          PIP_CERT=/etc/ssl/certs/ca-certificates.crt
          BACKSTAY_PIP_ARGS="${BACKSTAY_PIP_ARGS:-}")
chroot "$root" /usr/bin/env -i "${settings[@]}" bash -euo pipefail -c '
  cd /backstay
  make check
  scripts/build release everything_to_test
  ctest --test-dir build/release --output-on-failure --no-tests=error \
    -R "^(cli_transparent_mpi|cli_transparent_mpis|cli_calls_mpis)\$"'
