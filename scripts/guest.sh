#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the init of the guests of `schedlab vm`, linked statically.
#
#   scripts/guest.sh            leaves it where schedlab of the same build finds it
#   scripts/guest.sh DIRECTORY  and copies it there; further arguments go to cargo
#
# With --target, the flag that links statically does not touch what the rest of the build has made.
# Paths of this machine do not go into the program: the same sources give the same guest, and runs
# of the same identity, wherever they are built.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

triple=x86_64-unknown-linux-gnu
target=${CARGO_TARGET_DIR:-target}
if [ "$(uname -m)" != x86_64 ]; then
    echo "guest.sh: the guest is built on x86-64 only; schedlab vm will not be there" >&2
    exit 0
fi
libraries=$(gcc -print-file-name=libelf.a)
if [ "$libraries" = libelf.a ]; then
    echo "guest.sh: libelf.a is not here: apt-get install libelf-dev zlib1g-dev" >&2
    exit 3
fi
cargo_home=${CARGO_HOME:-$HOME/.cargo}
export LIBBPF_SYS_LIBRARY_PATH
LIBBPF_SYS_LIBRARY_PATH=$(dirname "$libraries")
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static \
--remap-path-prefix=$PWD=. --remap-path-prefix=$cargo_home=cargo"
CARGO_INCREMENTAL=0 cargo build --quiet --locked -p schedlab-guest --features static \
    --profile guest --target $triple "${@:2}"
if [ $# -gt 0 ]; then
    install -m 755 "$target/$triple/guest/schedlab-guest" "$1/schedlab-guest.new"
    mv "$1/schedlab-guest.new" "$1/schedlab-guest"
fi
