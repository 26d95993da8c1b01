#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs what building and testing need on Debian 12 and Ubuntu 24.04 (and later ones).
#
#   scripts/install.sh          compiler for the recorder, libraries, the pinned Rust toolchain
#   scripts/install.sh dist     the same, and what makes a wheel for Python
#   scripts/install.sh demo     the same, and the third-party programs of the studies
#   scripts/install.sh test     all of that, a browser for the report, and what tests run
#
# Safe to repeat: what is there stays, and a second run takes a second. Without root and sudo, or
# without network, it says what is missing and how to get it.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-build}
case $mode in
build | dist | demo | test) ;;
*)
    echo "install.sh: unknown argument '$mode': allowed are build, dist, demo and test" >&2
    exit 2
    ;;
esac

say() { echo "install: $*" >&2; }

# --- packages -------------------------------------------------------------------------------------

have_package() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }
in_archive() {
    # Not `grep -q` behind a pipe: it leaves early, and the pipe fails for whoever still writes.
    [[ $(apt-cache policy "$1" 2>/dev/null) =~ Candidate:\ [^\(] ]]
}

# Runs a command as root, by sudo if need be.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        sudo "$@"
    else
        return 1
    fi
}

# As root apt warns that its sandbox user cannot read root's files; nothing is wrong then.
apt_options=(-qq -o APT::Sandbox::User=root)

updated=
update_lists() {
    [ -n "$updated" ] && return
    updated=1
    say "reading the package lists"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${apt_options[@]}" update >/dev/null || true
}

# Installs those of the given packages that are missing.
need_packages() {
    local missing=() package
    for package in "$@"; do
        have_package "$package" || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    update_lists
    say "installing ${missing[*]}"
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get "${apt_options[@]}" install -y \
        --no-install-recommends "${missing[@]}" >/dev/null; then
        say "could not install: ${missing[*]}"
        say "needs root (or sudo) and the network; by hand: apt-get install ${missing[*]}"
        return 1
    fi
}

if ! command -v apt-get >/dev/null; then
    say "no apt-get here: this script knows Debian and Ubuntu only."
    say "needed: clang (14 or later), llvm, libelf, zlib (with headers), pkg-config, make, gcc"
else
    clang=
    if ! command -v clang-16 >/dev/null && ! command -v clang >/dev/null; then
        in_archive clang-16 || update_lists
        if in_archive clang-16; then clang="clang-16 llvm-16"; else clang="clang llvm"; fi
    fi
    # shellcheck disable=SC2086  # two words on purpose
    need_packages $clang libelf-dev zlib1g-dev pkg-config make gcc libc6-dev
    # What `schedlab vm` needs at run time: everything else works without.
    if [ "$(uname -m)" = x86_64 ]; then
        need_packages qemu-system-x86 debian-archive-keyring ||
            say "schedlab vm will say what it lacks"
    fi
fi

# --- Rust -----------------------------------------------------------------------------------------

channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
export PATH="$HOME/.cargo/bin:$PATH"

# Downloads rustup's installer to a file and checks it against its published sum.
rustup_by_download() {
    local triple base folder
    triple="$(uname -m)-unknown-linux-gnu"
    base="https://static.rust-lang.org/rustup/dist/$triple"
    folder=$(mktemp -d)
    need_packages ca-certificates curl || return 1
    say "downloading rustup"
    curl -fsS --retry 2 --connect-timeout 20 -o "$folder/rustup-init" "$base/rustup-init" &&
        curl -fsS --retry 2 --connect-timeout 20 -o "$folder/sum" "$base/rustup-init.sha256" &&
        echo "$(cut -d' ' -f1 "$folder/sum")  $folder/rustup-init" | sha256sum -c --quiet &&
        chmod +x "$folder/rustup-init" &&
        "$folder/rustup-init" -y -q --no-modify-path --default-toolchain none >/dev/null
    local status=$?
    rm -rf "$folder"
    return $status
}

# Debian 12 carries a current compiler for its browsers. It is not the pinned one, and good enough.
rust_by_web_packages() {
    in_archive cargo-web && need_packages rustc-web cargo-web rustfmt-web rust-web-clippy
}

if ! command -v rustup >/dev/null && ! command -v cargo >/dev/null; then
    command -v apt-get >/dev/null && ! in_archive rustup && update_lists
    if command -v apt-get >/dev/null && in_archive rustup; then
        need_packages rustup
    else
        rustup_by_download || rust_by_web_packages || {
            say "could not install Rust: needs the network; by hand: https://rustup.rs"
            exit 3
        }
    fi
fi

if command -v rustup >/dev/null; then
    if ! rustup run "$channel" cargo clippy --version >/dev/null 2>&1 ||
        ! rustup run "$channel" cargo fmt --version >/dev/null 2>&1; then
        say "installing the Rust toolchain $channel"
        rustup toolchain install "$channel" --profile minimal -c rustfmt -c clippy >/dev/null || {
            say "could not install the Rust toolchain $channel: needs the network"
            exit 3
        }
    fi
    rustup target add --toolchain "$channel" wasm32-unknown-unknown >/dev/null 2>&1 ||
        say "no wasm32-unknown-unknown here: the test that builds for it will be skipped"
fi
cargo --version >/dev/null || {
    say "cargo does not run: see the messages above"
    exit 3
}

# --- third-party programs, and what tests need besides --------------------------------------------

if [ "$mode" = dist ] && command -v apt-get >/dev/null; then
    need_packages python3-venv || say "the wheel cannot be built"
fi

if { [ "$mode" = demo ] || [ "$mode" = test ]; } && command -v apt-get >/dev/null; then
    need_packages rt-tests mariadb-server-core sysbench ||
        say "no hackbench and no database server: what runs them will be skipped"
    need_packages glmark2-x11 xvfb libgl1-mesa-dri ||
        say "no glmark2: what runs a program that draws will be skipped"
fi

if [ "$mode" = test ] && command -v apt-get >/dev/null; then
    browser=
    if ! command -v chromium >/dev/null; then
        in_archive chromium || update_lists
        browser=chromium
    fi
    node=
    command -v npm >/dev/null || node="nodejs npm"
    # shellcheck disable=SC2086
    need_packages $browser $node || say "the browser test will be skipped"
    need_packages python3-venv || true
    need_packages debootstrap || say "the test in a minimal system will be skipped"
    # To unpack the schedulers of others that tests run unmodified.
    command -v xz >/dev/null || need_packages xz-utils || say "examples of kernels will be skipped"
    command -v git >/dev/null || need_packages git || say "tests of git ranges will be skipped"
fi

# Perfetto's own schema, for the test that reads a trace by it. Debian 12 lets nobody install into
# the system's Python, so it has an environment of its own, of the Python that python3-venv is for.
if [ "$mode" = test ]; then
    python=${CARGO_TARGET_DIR:-target}/python
    "$python/bin/python3" -c 'import perfetto' 2>/dev/null || {
        say "installing the Python package perfetto"
        mkdir -p "$(dirname "$python")" &&
            /usr/bin/python3 -m venv --clear "$python" >/dev/null &&
            "$python/bin/pip" install --quiet --disable-pip-version-check perfetto==0.59.1
    } || say "the test with Perfetto's schema will be skipped"
fi
say "everything is there"
