#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds reports of synthetic results and the site, and tests them in headless Chromium.
#
#   tests/browser/run.sh            exit code 0: passed, or skipped with the reason printed
#   CHROMIUM=/path/to/chrome        the browser, if it is not in PATH
#   REPORT_HTML=/path/to/file.html  test this report of the synthetic results, build none
#   REPORT_LONG_HTML=...            the same for the one of 1,000,000 slices
#   REPORT_INDEX=...                the same for the index of a reproduction
#   SITE=/path/to/site              test this folder that `cargo xtask site` has built, build none
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

for tool in node npm; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "SKIP browser tests: $tool is not installed (apt-get install nodejs npm)"
        exit 0
    fi
done
if [ -z "${CHROMIUM:-}" ]; then
    CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome ||
        true)
fi
if [ -z "$CHROMIUM" ] || [ ! -x "$CHROMIUM" ]; then
    echo "SKIP browser tests: no Chromium found (apt-get install chromium or set CHROMIUM)"
    exit 0
fi
export CHROMIUM

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
synthetic() {
    # With --workspace cargo compiles no crate again that it compiled for the tests.
    (cd "$root" && cargo build --quiet --locked --workspace --example synthetic)
    "${CARGO_TARGET_DIR:-$root/target}/debug/examples/synthetic" "$@"
}
if [ -z "${REPORT_HTML:-}" ]; then
    REPORT_HTML="$work/report.html"
    synthetic "$REPORT_HTML"
fi
if [ -z "${REPORT_LONG_HTML:-}" ]; then
    REPORT_LONG_HTML="$work/long.html"
    synthetic --long "$REPORT_LONG_HTML"
fi
if [ -z "${REPORT_INDEX:-}" ]; then
    mkdir "$work/studies"
    REPORT_INDEX="$work/studies/report.html"
    synthetic --studies "$REPORT_INDEX"
fi
export REPORT_HTML REPORT_LONG_HTML REPORT_INDEX
site_tests='playground.test.mjs exercises.test.mjs documentation.test.mjs'
if [ -z "${SITE:-}" ]; then
    libraries=$(cd "$root" && rustc --print target-libdir --target wasm32-unknown-unknown || true)
    if [ -d "$libraries" ]; then
        (cd "$root" && cargo xtask site)
        SITE="${CARGO_TARGET_DIR:-$root/target}/site"
    else
        echo "SKIP tests of the site: \`rustup target add wasm32-unknown-unknown\`"
        site_tests=
    fi
fi
export SITE

cd "$here"
installed=node_modules/.package-lock.json
if [ ! -f "$installed" ] || [ package-lock.json -nt "$installed" ]; then
    npm ci --no-audit --no-fund --loglevel=error
fi
# shellcheck disable=SC2086
node --test --test-reporter=tap report.test.mjs pages.test.mjs $site_tests
