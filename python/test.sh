#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the Python package as a wheel, installs it into an environment of its own, and tests it.
#
#   python/test.sh          exit code 0: passed, or skipped with the reason printed
#   PYTHON=python3.12       the interpreter
#   SCHEDLAB_VENV=DIR       the environment [default: python-venv in the target directory]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-python3}

skip() {
    echo "SKIP Python package: $1"
    exit 0
}

command -v "$PYTHON" >/dev/null 2>&1 || skip "$PYTHON is not installed (apt-get install python3)"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    skip "$("$PYTHON" --version) is too old: it needs 3.10 or later"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    skip "$PYTHON makes no environments (apt-get install python3-venv)"

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$here/../target}"
venv=${SCHEDLAB_VENV:-$CARGO_TARGET_DIR/python-venv}
packages="maturin>=1.7,<2 pytest hypothesis pyarrow>=14 gymnasium>=1.0 numpy distributed>=2024.1
    tqdm optuna>=3.5 nbclient nbformat anywidget>=0.9 ipykernel matplotlib pandas>=2.2
    polars duckdb"
if [ "$(cat "$venv/ready" 2>/dev/null)" != "$packages" ]; then
    "$PYTHON" -m venv "$venv"
    # shellcheck disable=SC2086 # one word a package
    "$venv/bin/pip" install --quiet --disable-pip-version-check $packages ||
        skip "pip cannot install what the tests need (no network?)"
    echo "$packages" > "$venv/ready"
fi
PATH="$venv/bin:$PATH"
export PATH

cd "$here"
cargo fmt --check
if ! cargo fetch --locked --quiet 2>"$venv/fetch.log"; then
    cat "$venv/fetch.log"
    # A stale lock file is a mistake of the checkout, not of the machine.
    ! grep -q 'lock file' "$venv/fetch.log" || exit 1
    skip "cargo cannot fetch the crates of the package (no network?)"
fi
cargo clippy --locked --quiet -- -D warnings
MATURIN_PEP517_ARGS="--profile dev --locked" pip install --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps --force-reinstall "$here"
# The program of this build, whose stored results must be those of a sweep.
if [ -x "$CARGO_TARGET_DIR/debug/schedlab" ]; then
    export SCHEDLAB_PROGRAM="$CARGO_TARGET_DIR/debug/schedlab"
fi
# Not from the sources, but as installed.
exec pytest -q --no-header -p no:cacheprovider -rs tests --doctest-modules --pyargs schedlab
