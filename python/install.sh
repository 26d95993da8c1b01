#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the Python package and installs it into the active environment (VIRTUAL_ENV), or else into
# a new one in the target directory: Debian's own Python takes no packages from pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../target}
venv=${VIRTUAL_ENV:-$target/venv}
if [ ! -x "$venv/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$venv" || {
        echo "install.sh: no environment could be made: apt-get install python3-venv" >&2
        exit 1
    }
fi
"$venv/bin/python" -m pip install --disable-pip-version-check "$here"
if [ -z "${VIRTUAL_ENV:-}" ]; then
    echo "installed; to use it: . $(cd "$venv" && pwd)/bin/activate"
fi
