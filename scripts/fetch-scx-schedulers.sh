#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches published sched_ext schedulers, which are of others and GPL-2.0, into DIR, for the tests
# that run them unmodified:
#
#   scripts/fetch-scx-schedulers.sh DIR
#   SCHEDLAB_SCX_SCHEDULERS=DIR cargo test -p schedlab --test scx_schedulers
#
# DIR/kernel has the examples of Linux (tools/sched_ext) from Debian's packages with the kernel's
# source; DIR/registry has the BPF halves of the scx schedulers from the Rust registry, and in
# DIR/registry/include their shared headers. What cannot be had is named and left out.
set -eu
dir=${1:?usage: $0 DIR}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir/registry"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Versions are fixed, so that a result names what it was measured with.
headers=scx_cargo@1.1.4
packages="scx_beerland@1.1.4 scx_bpfland@1.1.4 scx_cake@1.2.2 scx_chaos@1.1.4 scx_cosmos@1.1.7
	scx_flash@1.1.4 scx_lavd@1.1.4 scx_layered@1.1.4 scx_p2dq@1.1.4 scx_pandemonium@5.23.1
	scx_rustland_core@2.4.15 scx_rusty@1.1.4 scx_tickless@1.1.4"
kernels="linux-source-6.12 linux-source-7.2 linux-source-7.3"

# Looking at a package downloads it, and nothing else.
unpack() {
	file=$(echo "$1" | tr @ -)
	[ -d "$dir/registry/$file" ] && return 0
	(cd "$work" && cargo info --quiet "$1" >"$work/info" 2>&1) || true
	archive=$(find "${CARGO_HOME:-$HOME/.cargo}/registry/cache" -name "$file.crate" 2>/dev/null |
		head -n 1)
	if [ -z "$archive" ]; then
		echo "$1: not to be had: $(tail -n 1 "$work/info")" >&2
		return 1
	fi
	tar -xzf "$archive" -C "$dir/registry"
}

for package in $packages; do
	unpack "$package" || true
done
if unpack "$headers"; then
	ln -sfn "$(echo "$headers" | tr @ -)/bpf_h" "$dir/registry/include"
fi
for kernel in $kernels; do
	[ -d "$dir/kernel/$kernel" ] && continue
	"$here/fetch-sched-ext-examples.sh" "$dir/kernel" "$kernel" || echo "$kernel: not to be had" >&2
done
# Without a kernel there is no directory, so that tests can tell.
rmdir "$dir/kernel" 2>/dev/null || true
