#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches the example schedulers of Linux (tools/sched_ext), which are of others and GPL-2.0, from
# Debian's packages with the kernel's source, into DIR, for the tests that run them unmodified:
#
#   scripts/fetch-sched-ext-examples.sh DIR [PACKAGE...]
#   SCHEDLAB_SCHED_EXT_EXAMPLES=DIR cargo test -p schedlab --test compiled
#
# A package is about 150 MB; only a few files of it are kept. One that the system's apt does not
# know is searched in Debian's later suites, with lists of their own; the system does not change.
set -eu
command -v xz >/dev/null || { echo "$0: xz is missing (apt-get install xz-utils)" >&2; exit 1; }
dir=${1:?usage: $0 DIR [PACKAGE...]}
shift
[ $# -gt 0 ] || set -- linux-source-6.12
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# apt with directories of its own, for the suites in which newer kernels are. Lists may be old, as
# those of a mirror that keeps a past state are; their signatures are checked all the same.
later_apt() {
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	conf=$work/apt.conf
	if [ ! -f "$conf" ]; then
		mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial"
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
			grep '/debian/*$' | head -n 1)
		for suite in trixie-backports sid; do
			echo "deb [signed-by=$keys] $mirror $suite main"
		done >"$work/apt/sources.list"
		cat >"$conf" <<-END
			Dir::Etc::sourcelist "$work/apt/sources.list";
			Dir::Etc::sourceparts "-";
			Dir::State::Lists "$work/apt/lists";
			Dir::State::status "/dev/null";
			Dir::Cache "$work/apt";
			Debug::NoLocking "1";
			APT::Sandbox::User "root";
			Acquire::Languages "none";
			Acquire::Check-Valid-Until "false";
		END
		APT_CONFIG=$conf apt-get --quiet update
	fi
	APT_CONFIG=$conf apt-get "$@"
}

mkdir package
for package in "$@"; do
	cd "$work/package"
	apt-get download "$package" || later_apt download "$package"
	dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards '*.tar.xz'
	mkdir "$work/tree"
	tar -xJf "$(find . -name '*.tar.xz')" -C "$work/tree" --strip-components=3 \
		--wildcards '*/tools/sched_ext/*'
	mv "$work/tree" "$dir/$package"
	find "$work/package" -mindepth 1 -delete
done
