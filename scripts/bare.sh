#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs commands of `./lab` in a new, minimal Debian, as someone with nothing but a network would.
#
#   scripts/bare.sh "demo --first" "test tidy"     the words after ./lab, run one after the other
#   SUITE=trixie scripts/bare.sh demo              the suite is bookworm if not given
#   scripts/bare.sh --packages [DIR]               tries the packages of `./lab dist` instead
#
# Needs root, debootstrap, a network and 8 GB; says so and ends with 0 where they lack. The system
# is made in a new directory of $TMPDIR [default: /var/tmp], and removed at the end;
# SCHEDLAB_BARE_KEEP=1 keeps it. Tests only what is committed.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=
if [ "${1:-}" = --packages ]; then
    packages=${2:-${CARGO_TARGET_DIR:-target}/dist-packages}
    [ -f "$packages/SHA256SUMS" ] || {
        echo "bare.sh: $packages has no packages: ./lab dist builds them" >&2
        exit 2
    }
elif [ $# = 0 ]; then
    echo 'usage: scripts/bare.sh COMMAND... (such as "demo --first" or "test tidy")' >&2
    exit 2
fi
skip() {
    echo "SKIP bare: $*"
    exit 0
}
[ "$(id -u)" = 0 ] || skip "only root can make a minimal system"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
unshare --mount --pid --fork true 2>/dev/null || skip "namespaces are not allowed here"
git rev-parse --quiet --verify HEAD >/dev/null || skip "this is no git checkout"
place=${TMPDIR:-/var/tmp}
[ "$(df --output=avail -k "$place" | tail -n 1)" -gt 8000000 ] || skip "$place has less than 8 GB"
suite=${SUITE:-bookworm}
system=$(mktemp -d "$place/schedlab-bare.XXXXXX")
# The root of the system must be open to users without rights, whom mktemp keeps out.
chmod 755 "$system"
cleanup() { [ -n "${SCHEDLAB_BARE_KEEP:-}" ] || rm -rf --one-file-system "$system"; }
trap cleanup EXIT

echo "bare.sh: making a minimal Debian $suite in $system" >&2
if ! debootstrap --variant=minbase "$suite" "$system" >"$system.log" 2>&1; then
    tail -n 5 "$system.log" >&2
    rm -f "$system.log"
    skip "debootstrap cannot make a system here: see the lines above"
fi
rm -f "$system.log"
cp /etc/resolv.conf "$system/etc/resolv.conf"
mkdir "$system/srv/schedlab"
if [ -n "$packages" ]; then
    cp "$packages"/* scripts/try-packages.sh "$system/srv/schedlab/"
else
    git archive HEAD | tar -x -C "$system/srv/schedlab"
fi

# What the system's programs trust, where this machine trusts more than Debian does.
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
if [ -n "${SSL_CERT_FILE:-}" ]; then
    cp "$SSL_CERT_FILE" "$system/etc/trusted.crt"
    for name in SSL_CERT_FILE CURL_CA_BUNDLE CARGO_HTTP_CAINFO PIP_CERT NODE_EXTRA_CA_CERTS; do
        environment+=("$name=/etc/trusted.crt")
    done
fi

# In namespaces of its own: every mount and process ends with it.
# shellcheck disable=SC2016  # the variables are the inner shells'
unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind --make-rslave /sys "$1/sys"
    mount --rbind --make-rslave /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/tmp"
    shift
    exec "$@"
' bare "$system" chroot "$system" env -i "${environment[@]}" \
    sh -euc '
        cd /srv/schedlab
        if [ "$1" = --packages ]; then
            exec ./try-packages.sh /srv/schedlab
        fi
        for command in "$@"; do
            # The words of a command.
            # shellcheck disable=SC2086
            ./lab $command
        done
    ' lab "$@"
