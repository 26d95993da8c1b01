#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches the example schedulers of Linux (tools/sched_ext), which are of others and GPL-2.0, from
# Debian's packages with the kernel's source, into DIR, for the tests that run them unmodified:
#
#   scripts/fetch-sched-ext-examples.sh DIR [PACKAGE...]
#   SCHEDLAB_SCHED_EXT_EXAMPLES=DIR cargo test -p schedlab --test compiled
#
# A package is about 150 MB; only a few files of it are kept. It must be known to apt.
set -eu
dir=${1:?usage: $0 DIR [PACKAGE...]}
shift
[ $# -gt 0 ] || set -- linux-source-6.12
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for package in "$@"; do
	apt-get download "$package"
	dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards '*.tar.xz'
	mkdir -p "$dir/$package"
	tar -xJf "$(find . -name '*.tar.xz')" -C "$dir/$package" --strip-components=3 \
		--wildcards '*/tools/sched_ext/*'
	find . -mindepth 1 -delete
done
