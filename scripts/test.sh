#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every test and prints, as its last line, `N passed, N failed, N skipped`, summed over all
# runners. Exit code 0 only if nothing failed. The line is also left in target/test-summary.
#
# A test that cannot run on this machine prints a line `SKIP name: reason` and counts as skipped.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
export PATH="$HOME/.cargo/bin:$PATH"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never} INSTA_UPDATE=no INSTA_FORCE_PASS=0

target=${CARGO_TARGET_DIR:-target}
logs=$target/test-logs
mkdir -p "$logs"
rm -f "$logs"/*.log target/test-summary
passed=0 failed=0 skipped=0 failures=()

# Runs one step that is a single test of its own: `step NAME COMMAND...`. A line SKIP skips it.
step() {
    local name=$1 log=$logs/$1.log
    shift
    echo "=== $name: $*"
    if "$@" >"$log" 2>&1; then
        if grep -q '^SKIP ' "$log"; then
            grep '^SKIP ' "$log"
            skipped=$((skipped + 1))
        else
            passed=$((passed + 1))
        fi
    else
        tail -n 60 "$log"
        failed=$((failed + 1))
        failures+=("$name")
    fi
}

# Adds the sums that node's test runner prints at its end (`# pass 5` or `i pass 5`).
add_node_summary() {
    local p f s
    read -r p f s < <(awk '$2 ~ /^(pass|fail|skipped)$/ && $3 ~ /^[0-9]+$/ && NF == 3 { n[$2] = $3 }
        END { print n["pass"] + 0, n["fail"] + 0, n["skipped"] + 0 }' "$1")
    [ $((p + f + s)) -gt 0 ] || return 1
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
}

# cargo test: sums its `test result:` lines; a test that passed with a SKIP line counts as skipped.
rust_tests() {
    local log=$logs/cargo-test.log status sums skips
    echo "=== cargo test --workspace"
    cargo test --workspace --no-fail-fast --quiet -- --show-output >"$log" 2>&1
    status=$?
    sums=$(awk '/^test result:/ {
        for (i = 1; i < NF; i++) {
            if ($(i + 1) ~ /^passed/) p += $i
            if ($(i + 1) ~ /^failed/) f += $i
            if ($(i + 1) ~ /^ignored/) s += $i
        }
    } END { print p + 0, f + 0, s + 0 }' "$log")
    skips=$(grep -c '^SKIP ' "$log")
    grep '^SKIP ' "$log"
    # shellcheck disable=SC2086  # three words on purpose
    set -- $sums
    passed=$((passed + $1 - skips))
    failed=$((failed + $2))
    skipped=$((skipped + $3 + skips))
    if [ $status -ne 0 ]; then
        # Without a failed test in the sums, a test did not compile or crashed its process.
        [ "$2" -eq 0 ] && failed=$((failed + 1))
        failures+=("cargo test")
        grep -vE '^(test result: ok|running [0-9]+ tests?|[. ]+$)' "$log" | tail -n 150
    fi
}

# The report in a headless browser.
browser_test() {
    local log=$logs/browser.log status
    [ -x tests/browser/run.sh ] || return 0
    echo "=== tests/browser/run.sh"
    tests/browser/run.sh >"$log" 2>&1
    status=$?
    if add_node_summary "$log"; then
        [ $status -eq 0 ] || { tail -n 60 "$log" && failures+=(browser); }
    elif [ $status -ne 0 ]; then
        tail -n 60 "$log"
        failed=$((failed + 1))
        failures+=(browser)
    elif grep -q '^SKIP' "$log"; then
        grep '^SKIP' "$log"
        skipped=$((skipped + 1))
    else
        passed=$((passed + 1))
    fi
}

# The kernel's example schedulers for the tests that run them unmodified, where the distribution has
# its source; a second run finds them in the target directory.
fetch_examples() {
    local dir=$target/sched-ext-examples
    [ -z "${SCHEDLAB_SCHED_EXT_EXAMPLES:-}" ] || return 0
    if [ ! -d "$dir" ]; then
        # Not `grep -q` behind a pipe: it leaves early, and the pipe fails for whoever still writes.
        [[ $(apt-cache policy linux-source-6.12 2>/dev/null) =~ Candidate:\ [^\(] ]] || return 0
        scripts/fetch-sched-ext-examples.sh "$dir.part" >"$logs/examples.log" 2>&1 || return 0
        mv "$dir.part" "$dir"
    fi
    SCHEDLAB_SCHED_EXT_EXAMPLES=$(cd "$dir" && pwd)
    export SCHEDLAB_SCHED_EXT_EXAMPLES
}

fetch_examples
step fmt cargo fmt --all --check
step clippy cargo clippy --workspace --all-targets --quiet -- -D warnings
step tidy cargo xtask tidy
step wasm cargo xtask wasm
step guest scripts/guest.sh
rust_tests
browser_test

if [ ${#failures[@]} -gt 0 ]; then
    echo "failed: ${failures[*]}; whole logs are in $logs"
fi
mkdir -p target
echo "$passed passed, $failed failed, $skipped skipped" | tee target/test-summary
[ "$failed" -eq 0 ] && [ ${#failures[@]} -eq 0 ]
