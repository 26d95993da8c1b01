#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds what people without a compiler install: programs without shared libraries, which run on
# any Linux of this architecture, in a tarball and a Debian package; and a wheel for Python 3.10 and
# later on any Linux with glibc 2.17.
#
#   scripts/dist.sh [OUT]      OUT is target/dist-packages if not given
#
# The tarball holds `lab`: `./lab demo` there starts with the first report.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

target=${CARGO_TARGET_DIR:-target}
out=${1:-$target/dist-packages}
triple=$(rustc -vV | sed -n 's/^host: //p')
libraries=$(gcc -print-file-name=libelf.a)
if [ "$libraries" = libelf.a ]; then
    echo "dist.sh: libelf.a is missing: apt-get install libelf-dev zlib1g-dev" >&2
    exit 3
fi
export LIBBPF_SYS_LIBRARY_PATH
LIBBPF_SYS_LIBRARY_PATH=$(dirname "$libraries")
cargo_home=${CARGO_HOME:-$HOME/.cargo}
upper=$(echo "$triple" | tr a-z- A-Z_)
# Only for what runs there, not for build scripts; no path of this machine goes into a program.
flags="-C target-feature=+crt-static"
flags="$flags --remap-path-prefix=$PWD=. --remap-path-prefix=$cargo_home=cargo"
env "CARGO_TARGET_${upper}_RUSTFLAGS=$flags" CARGO_INCREMENTAL=0 \
    cargo build --locked --package schedlab --features static --profile dist --target "$triple"
guest=-
if [ "$(uname -m)" = x86_64 ]; then
    scripts/guest.sh "$target/$triple/dist"
    guest=$target/$triple/dist/schedlab-guest
fi
scripts/package.sh "$target/$triple/dist/schedlab" "$guest" "$out"

# The wheel. zig links it against the symbols of an old glibc.
venv=$target/dist-venv
if [ ! -x "$venv/bin/maturin" ]; then
    python3 -m venv "$venv" || {
        echo "dist.sh: no environment could be made: apt-get install python3-venv" >&2
        exit 3
    }
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.7,<2' ziglang
fi
env CARGO_TARGET_DIR="$target/wheel" PATH="$(realpath "$venv/bin"):$PATH" \
    maturin build --release --locked --zig --compatibility manylinux_2_17 \
    --manifest-path python/Cargo.toml --out "$out"
(cd "$out" && sha256sum ./*.whl | sed 's|\./||' >>SHA256SUMS)
