#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tries the packages in DIR as their users would, and fails at the first that does not work. It
# installs and removes programs: `scripts/bare.sh --packages` runs it in a new, minimal Debian.
#
#   scripts/try-packages.sh DIR
set -eu
dir=${1:?usage: $0 DIR}
export DEBIAN_FRONTEND=noninteractive

say() { printf '\ntry-packages: %s\n' "$*" >&2; }
one() {
    [ $# = 1 ] && [ -e "$1" ] || {
        echo "try-packages: one package was expected, and there is: $*" >&2
        exit 1
    }
    printf '%s\n' "$1"
}
# The first commands of a new user.
try() {
    "$1" sim hogs:n=3,work=30ms --scheduler fcfs,linux-6.12 --cpus 1
    "$1" sim hogs:n=3,work=30ms --scheduler rr --report "$2/report.html"
    grep -q '</html>' "$2/report.html"
    "$1" exercise 4 --seed 7 --answer
    printf 'policy({ pick: (cpu, waiting) => waiting[0] });' >"$2/own.js"
    "$1" check "$2/own.js" --seeds 20
}

deb=$(one "$dir"/schedlab_*.deb)
say "installing $(basename "$deb") as the Containerfile does"
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$deb" >/dev/null
try schedlab /tmp
for file in man/man1/schedlab-sim.1.gz bash-completion/completions/schedlab \
    zsh/vendor-completions/_schedlab fish/vendor_completions.d/schedlab.fish; do
    # Minimal images leave manual pages out by a setting of dpkg.
    [ -s "/usr/share/$file" ] || grep -rqs 'path-exclude' /etc/dpkg/dpkg.cfg.d || {
        echo "try-packages: the package has not installed /usr/share/$file" >&2
        exit 1
    }
done
apt-get remove -y -qq schedlab >/dev/null
[ -z "$(find /usr -name '*schedlab*')" ] || {
    echo "try-packages: removing the package leaves $(find /usr -name '*schedlab*')" >&2
    exit 1
}

tarball=$(one "$dir"/schedlab-*-linux.tar.gz)
say "unpacking $(basename "$tarball") as a user without rights"
mkdir /tmp/user
chown nobody /tmp/user
setpriv --reuid nobody --clear-groups env HOME=/tmp/user sh -euc '
    cd /tmp/user
    tar -xzf "$1"
    PATH=$PWD/$(ls)/bin:$PATH
    schedlab --version
    schedlab-*/lab demo --first /tmp/user/first
    test -s /tmp/user/first/first.html
' try "$tarball"

wheel=$(one "$dir"/schedlab-*.whl)
apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
    say "installing $(basename "$wheel") into a new environment"
    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install -q --no-index "$wheel"
    /tmp/venv/bin/python - <<'END'
import schedlab

result = schedlab.simulate("hogs:n=2,work=10ms", "rr:quantum=5ms", keep="slices")
assert result.totals["makespan_ns"] == 20_000_000
assert result.slices.column("name") == ["hog-0", "hog-1", "hog-0", "hog-1"]
END
else
    say "SKIP the wheel: it needs Python 3.10 or later, and here is $(python3 --version)"
fi
say "all packages that were tried work"
