#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests a sched_ext scheduler of a git checkout, as the GitHub action does (action.yml), on any
# machine: simulates it, searches for bugs, compares it with the base commit's version, and asks the
# verifier. Needs clang and git; neither root nor KVM. Run it in the checkout:
#
#   SCHEDLAB_SCHEDULER=my_sched.bpf.c SCHEDLAB_BASE=origin/main scripts/action.sh
#
#   SCHEDLAB_SCHEDULER    the .bpf.c, seen from the top of the checkout
#   SCHEDLAB_WORKLOADS    one a line: built-in workloads, or files seen from there
#   SCHEDLAB_CPUS         modelled CPUs                                      [default: 4]
#   SCHEDLAB_REPETITIONS  seeds of each workload                             [default: 10]
#   SCHEDLAB_CASES        random workloads to search for bugs; 0: none       [default: 100]
#   SCHEDLAB_BASE         commit to compare with; empty: none
#   SCHEDLAB_VERIFY       auto (where QEMU is), always or never              [default: auto]
#   SCHEDLAB_KERNELS      kernels of the verifier, separated by commas       [default: stored ones]
#   SCHEDLAB_PROGRAM      the program                                        [default: schedlab]
#   SCHEDLAB_OUTPUT       directory for the summary and the traces    [default: schedlab-action]
#
# Appends a Markdown summary to $GITHUB_STEP_SUMMARY and the paths to $GITHUB_OUTPUT, if they are
# set; prints the summary otherwise. Exit codes: 0, 1 a check failed, 2 wrong input, 3 this machine
# lacks something.
set -euo pipefail

refuse() {
    echo "action.sh: $*" >&2
    exit 2
}

scheduler=${SCHEDLAB_SCHEDULER:-}
workloads=${SCHEDLAB_WORKLOADS:-$'hogs:n=8,work=100ms\ninteractive:n=4\nhackbench'}
cpus=${SCHEDLAB_CPUS:-4}
repetitions=${SCHEDLAB_REPETITIONS:-10}
cases=${SCHEDLAB_CASES:-100}
base=${SCHEDLAB_BASE:-}
verify=${SCHEDLAB_VERIFY:-auto}
kernels=${SCHEDLAB_KERNELS:-}
program=${SCHEDLAB_PROGRAM:-schedlab}

# --- inputs: nobody may pass an option, a second scheduler or a place outside of the checkout -----

[[ $scheduler ]] || refuse "SCHEDLAB_SCHEDULER is empty: name a .bpf.c"
[[ $scheduler =~ ^[A-Za-z0-9_./+-]+\.c$ ]] ||
    refuse "SCHEDLAB_SCHEDULER may have letters, digits and _ . / + - only, and ends with .c"
[[ $scheduler != /* && /$scheduler/ != */../* ]] ||
    refuse "SCHEDLAB_SCHEDULER is seen from the top of the checkout: no / first, no .."
[[ $cpus =~ ^[0-9]{1,4}$ ]] || refuse "SCHEDLAB_CPUS is no number"
[[ $repetitions =~ ^[0-9]{1,4}$ ]] || refuse "SCHEDLAB_REPETITIONS is no number up to 9999"
[[ $cases =~ ^[0-9]{1,6}$ ]] || refuse "SCHEDLAB_CASES is no number up to 999999"
[[ $verify =~ ^(auto|always|never)$ ]] || refuse "SCHEDLAB_VERIFY is auto, always or never"
[[ $kernels =~ ^[A-Za-z0-9_.,/+-]*$ && $kernels != -* ]] || refuse "SCHEDLAB_KERNELS is no list"
[[ $base != -* ]] || refuse "SCHEDLAB_BASE is no commit"
command -v "$program" >/dev/null || refuse "there is no program $program: set SCHEDLAB_PROGRAM"
program=$(realpath "$(command -v "$program")")
if ! top=$(git rev-parse --show-toplevel); then
    case $(git rev-parse 2>&1) in
    *dubious*)
        refuse "git does not trust the checkout's owner: if you do, run git's command above"
        ;;
    *) refuse "run it in a git checkout" ;;
    esac
fi
[ -f "$top/$scheduler" ] || refuse "the checkout has no file $scheduler"

output=$(realpath -m "${SCHEDLAB_OUTPUT:-schedlab-action}")
mkdir -p "$output"
# What an earlier run has left is not of this one.
rm -f "$output"/trace-[0-9]*.pftrace "$output"/run-[0-9]*.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
summary=$work/summary.md
worst=0

# A runner takes lines that begin with :: for commands. Sources and names are not to give any.
if [ "${GITHUB_ACTIONS:-}" = true ]; then
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$token"
    trap 'rm -rf "$work"; echo "::$token::"' EXIT
fi

# --- tools ----------------------------------------------------------------------------------------

# Text of programs as an indented block of Markdown, without control characters.
block() { head -c 60000 "$1" | tr -d '\000-\010\013-\037\177' | sed 's/^/    /'; }

# Keeps the worst exit code.
keep() {
    if [ "$1" -gt "$worst" ]; then worst=$1; fi
}

# schedlab in the directory of both versions. Standard error goes to the log and to $work/stderr.
run() {
    local code=0
    (cd "$work" && "$program" "$@" 2>"$work/stderr") || code=$?
    cat "$work/stderr" >&2
    return $code
}

# Adds what a failed command has printed to the summary.
failed() {
    printf '\n**%s failed with exit code %s:**\n\n' "$1" "$2"
    block "$work/stderr"
    printf '\n'
}

# --- both versions, as head/ and base/ ------------------------------------------------------------

ln -s "$top" "$work/head"
head=head/$scheduler
old=
note=
if [ "$base" ]; then
    # A checkout of depth 1 lacks the commit.
    if [[ $base =~ ^[0-9a-f]{40}$ ]] &&
        ! git -C "$top" cat-file -e "$base^{commit}" 2>/dev/null; then
        git -C "$top" fetch --quiet --no-tags --depth=1 origin "$base" 2>/dev/null || true
    fi
    if ! commit=$(git -C "$top" rev-parse --quiet --verify --end-of-options "$base^{commit}"); then
        note="The checkout lacks the base commit, so nothing is compared (fetch-depth: 0 has it)."
    elif ! git -C "$top" cat-file -e "$commit:$scheduler" 2>/dev/null; then
        note="The scheduler is new: the base commit has no version of it."
    else
        mkdir "$work/base"
        # The whole tree: headers may have changed too.
        git -C "$top" archive "$commit" | tar -x -C "$work/base"
        old=base/$scheduler
    fi
fi

# --- the tests ------------------------------------------------------------------------------------

# Whether the scheduler compiles and runs at all. If not, its error is shown once.
starts() {
    local code=0
    run sim hogs:n=1,work=1ms --scheduler "$head" --cpus "$cpus" >"$work/first.txt" || code=$?
    [ $code = 0 ] && return 0
    failed "A first run of one short task" $code
    keep $code
    return 1
}

# One workload: a run with its trace, then both versions over all seeds.
workload() {
    local number=$1 name=$2 code=0 both=$head
    [ "$old" ] && both=$old,$head
    printf '\n### `%s`\n\n' "$(tr -d '`\000-\037' <<<"$name")"
    run sim "$name" --scheduler "$head" --cpus "$cpus" --trace "$output/trace-$number.pftrace" \
        >"$output/run-$number.txt" || code=$?
    if [ $code != 0 ]; then
        failed "The run" $code
        keep $code
        return
    fi
    local compare=(compare "$name" --cpus "$cpus" --repetitions "$repetitions" --markdown)
    run "${compare[@]}" --scheduler "$both" >"$work/table.md" || code=$?
    if [ $code != 0 ] && [ "$old" ]; then
        # It is no fault of this version if the old one fails.
        failed "The comparison" $code
        code=0
        run "${compare[@]}" --scheduler "$head" >"$work/table.md" || code=$?
        [ $code = 0 ] && printf '\nThis version alone:\n\n'
    fi
    cat "$work/table.md"
    if [ $code != 0 ]; then
        failed "The comparison" $code
        keep $code
    fi
}

# Random workloads, and the rules that every run must keep.
search() {
    local code=0
    printf '\n### Search for bugs\n\n'
    run check "$head" --seeds "$cases" --output "$output/findings" >"$work/check.txt" || code=$?
    block "$work/check.txt"
    if [ $code != 0 ]; then
        failed "The search" $code
        keep $code
    fi
}

verifier() {
    local code=0
    if [ "$verify" = never ]; then return; fi
    printf '\n### Verifier\n\n'
    if [ "$verify" = auto ] && ! command -v qemu-system-x86_64 >/dev/null; then
        echo "Not asked: there is no QEMU here."
        return
    fi
    run scx verify "$head" ${kernels:+--kernel "$kernels"} >"$work/verdict.txt" || code=$?
    block "$work/verdict.txt"
    if [ $code = 3 ] && [ "$verify" = auto ]; then
        printf '\nNot asked, since this machine cannot:\n\n'
        block "$work/stderr"
    elif [ $code != 0 ]; then
        failed "The verifier" $code
        keep $code
    fi
}

{
    printf '## schedlab: `%s`\n\n' "$scheduler"
    if [ "$note" ]; then echo "$note"; fi
    if [ "$old" ]; then echo "\`base/\` is commit ${commit:0:12}, \`head/\` this checkout."; fi
} >>"$summary"
names=()
while IFS= read -r name; do
    name=${name%$'\r'}
    [[ $name =~ ^[[:space:]]*$ ]] && continue
    [[ $name != -* && $name != *.toml ]] || refuse "SCHEDLAB_WORKLOADS: $name is no workload"
    # A file is seen from the top of the checkout.
    [[ $name != /* && ($name == */* || $name == *.json) ]] && name=head/$name
    names+=("$name")
done <<<"$workloads"
[ ${#names[@]} != 0 ] || refuse "SCHEDLAB_WORKLOADS has no line"
if starts >>"$summary"; then
    for number in "${!names[@]}"; do
        workload $((number + 1)) "${names[number]}" >>"$summary"
    done
    [ "$cases" = 0 ] || search >>"$summary"
    verifier >>"$summary"
fi

# --- results --------------------------------------------------------------------------------------

cp "$summary" "$output/summary.md"
if [ "${GITHUB_STEP_SUMMARY:-}" ]; then
    # A step's summary has at most 1 MiB.
    head -c 1000000 "$summary" >>"$GITHUB_STEP_SUMMARY"
else
    cat "$summary"
fi
if [ "${GITHUB_OUTPUT:-}" ]; then
    [[ $output != *$'\n'* ]] || refuse "SCHEDLAB_OUTPUT has a line break"
    {
        if [ -f "$output/trace-1.pftrace" ]; then echo "trace=$output/trace-1.pftrace"; fi
        echo "summary=$output/summary.md"
        echo "directory=$output"
    } >>"$GITHUB_OUTPUT"
fi
exit $worst
