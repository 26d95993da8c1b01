#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Packs built programs for people who do not build:
#
#   scripts/package.sh PROGRAM GUEST OUT
#
# PROGRAM is schedlab, GUEST is schedlab-guest, or - where there is none. Leaves in the directory
# OUT a tarball and, where dpkg-deb is installed, a Debian package, and their SHA256SUMS. The same
# programs and commit give the same bytes. SCHEDLAB_PACK_LEVEL, 1 to 9, is that of the compressors.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# != 3 ]; then
    echo "usage: scripts/package.sh PROGRAM GUEST OUT" >&2
    exit 2
fi
program=$(realpath "$1")
guest=$2
mkdir -p "$3"
out=$(realpath "$3")

export PATH="$HOME/.cargo/bin:$PATH"
version=$("$program" --version)
version=${version#schedlab }
machine=$(uname -m)
level=${SCHEDLAB_PACK_LEVEL:-9}
# Times inside the packages: that of the commit, so that they do not depend on the day.
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=schedlab-$version-$machine-linux
tree=$work/$name

# --- the files, as they stand below /usr ----------------------------------------------------------

install -D -m 755 "$program" "$tree/bin/schedlab"
[ "$guest" = - ] || install -D -m 755 "$guest" "$tree/lib/schedlab/schedlab-guest"
"$program" man "$tree/share/man/man1"
gzip -9n "$tree"/share/man/man1/*.1
completions=(
    bash:share/bash-completion/completions/schedlab
    zsh:share/zsh/vendor-completions/_schedlab
    fish:share/fish/vendor_completions.d/schedlab.fish
)
for completion in "${completions[@]}"; do
    mkdir -p "$(dirname "$tree/${completion#*:}")"
    "$program" completion "${completion%%:*}" >"$tree/${completion#*:}"
done
doc=$tree/share/doc/schedlab
mkdir -p "$doc"
cp "$root/README.md" "$doc/"
cp -r "$root/docs" "$doc/docs"
find "$doc" -type f -exec chmod 644 {} +
{
    printf 'schedlab %s\n\nLicensed under MIT or Apache-2.0, at your choice.\n\n' "$version"
    cat "$root/LICENSE-MIT"
    printf '\n\nFor "schedlab qemu build" the program carries the text of these files, which are\n'
    printf 'licensed under GPL-2.0-only (/usr/share/common-licenses/GPL-2):\n\n'
    (cd "$root" && ls crates/vm/qemu/*)
    printf '\n\nThe programs contain these libraries:\n\n'
    cat "$root/scripts/linked.txt"
    (cd "$root" && cargo xtask notices)
} >"$doc/copyright"
find "$tree" -exec touch --no-dereference --date="@$epoch" {} +

# --- the tarball ----------------------------------------------------------------------------------

install -m 755 "$root/lab" "$tree/lab"
touch --date="@$epoch" "$tree/lab" "$tree"
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner "$name" |
    gzip "-${level}n" >"$out/$name.tar.gz"
files=("$name.tar.gz")

# --- the Debian package ---------------------------------------------------------------------------

if command -v dpkg-deb >/dev/null; then
    architecture=$(dpkg --print-architecture)
    deb=schedlab_${version}_$architecture.deb
    mkdir -p "$work/deb/DEBIAN"
    cp -r --preserve=timestamps "$tree" "$work/deb/usr"
    rm "$work/deb/usr/lab"
    size=$(du -sk "$work/deb/usr" | cut -f1)
    cat >"$work/deb/DEBIAN/control" <<END
Package: schedlab
Version: $version
Architecture: $architecture
Maintainer: The schedlab developers <schedlab@localhost>
Installed-Size: $size
Section: devel
Priority: optional
Recommends: qemu-system-x86, debian-archive-keyring, clang
Description: laboratory for Linux CPU schedulers
 schedlab runs one description of a workload in a simulator of the Linux and
 textbook schedulers, on the running kernel, and on other kernels in virtual
 machines. It measures all runs alike, explains each wait, and makes one
 report. sched_ext schedulers run in all three.
END
    (cd "$work/deb" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k2 >DEBIAN/md5sums)
    find "$work/deb" -exec touch --no-dereference --date="@$epoch" {} +
    SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz "-z$level" \
        --build "$work/deb" "$out/$deb" >/dev/null
    files+=("$deb")
else
    echo "package.sh: dpkg-deb is not installed: no Debian package" >&2
fi
(cd "$out" && sha256sum "${files[@]}" >SHA256SUMS && ls -l "${files[@]}")
