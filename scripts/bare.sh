#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs `./lab COMMAND` in a new, minimal Debian, as someone with nothing but a network would.
#
#   scripts/bare.sh COMMAND [SUITE]     such as `demo` or `test`; the suite is bookworm if not given
#
# Needs root and debootstrap. The system is made in a new directory of $TMPDIR [default: /var/tmp],
# and removed at the end; SCHEDLAB_BARE_KEEP=1 keeps it. Tests only what is committed.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: scripts/bare.sh COMMAND [SUITE]" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
    echo "bare.sh: needs root and debootstrap (apt-get install debootstrap)" >&2
    exit 3
fi
command=$1
suite=${2:-bookworm}
system=$(mktemp -d "${TMPDIR:-/var/tmp}/schedlab-bare.XXXXXX")
# The root of the system must be open to users without rights, whom mktemp keeps out.
chmod 755 "$system"
cleanup() { [ -n "${SCHEDLAB_BARE_KEEP:-}" ] || rm -rf --one-file-system "$system"; }
trap cleanup EXIT

echo "bare.sh: making a minimal Debian $suite in $system" >&2
if ! debootstrap --variant=minbase "$suite" "$system" >"$system.log" 2>&1; then
    tail -n 5 "$system.log" >&2
    rm -f "$system.log"
    exit 3
fi
rm -f "$system.log"
cp /etc/resolv.conf "$system/etc/resolv.conf"
mkdir "$system/srv/schedlab"
git archive HEAD | tar -x -C "$system/srv/schedlab"

# What the system's programs trust, where this machine trusts more than Debian does.
environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
if [ -n "${SSL_CERT_FILE:-}" ]; then
    cp "$SSL_CERT_FILE" "$system/etc/trusted.crt"
    for name in SSL_CERT_FILE CURL_CA_BUNDLE CARGO_HTTP_CAINFO PIP_CERT NODE_EXTRA_CA_CERTS; do
        environment+=("$name=/etc/trusted.crt")
    done
fi

# In namespaces of its own: every mount and process ends with it.
# shellcheck disable=SC2016  # $1 and $2 are the inner shell's
unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount --rbind --make-rslave /sys "$1/sys"
    mount --rbind --make-rslave /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/tmp"
    shift
    exec "$@"
' bare "$system" chroot "$system" env -i "${environment[@]}" \
    sh -c 'cd /srv/schedlab && exec ./lab "$1"' lab "$command"
