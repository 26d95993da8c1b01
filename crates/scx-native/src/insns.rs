// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many instructions a kernel executes in a scheduler's programs. Machines with `bpf_kinsn_ns`
//! turn them into time.
//!
//! Not every instruction is counted. A callback counts [`CALLBACK`], and each function of the
//! kernel that it calls what it takes there, with the program's own instructions around the call.
//!
//! Source: a guest of Linux 7.2 measured how long each callback of 25 schedulers took
//! (`bpf_stats_enabled`) with 8 ns an instruction, and the numbers below are the ones that fit
//! those times best. With the numbers from the other schedulers, the time of all callbacks of a
//! scheduler differs by 10 % (median), at most by 31 %: schedulers that compute much between
//! calls take longer than counted.

/// Instructions of a callback that does nothing, with its entry and exit.
pub const CALLBACK: u32 = 105;

/// Instructions of a function without an entry in [`INSNS`].
const USUAL: u32 = 30;

/// A move from a dispatch queue: the search for the queue, its lock, the task's two lists.
const MOVE: u32 = 370;
/// A question about a dispatch queue: the search for it.
const FIND_QUEUE: u32 = 210;
/// An insertion, which takes place after the program.
const INSERT: u32 = 90;
const INSERT_VTIME: u32 = 155;
/// A change of the mask of idle CPUs, or a search in it.
const IDLE_MASK: u32 = 180;
/// A map that is a hash table.
const HASH: u32 = 320;
const CPUPERF: u32 = 110;
const SET_WORD: u32 = 60;

/// Functions that take longer, in order of names.
const INSNS: &[(&str, u32)] = &[
    ("__scx_bpf_dsq_insert_vtime", INSERT_VTIME),
    ("bpf_cgrp_storage_get", 52),
    ("bpf_iter_scx_dsq_destroy", 0),
    ("bpf_iter_scx_dsq_next", 350),
    ("bpf_map_delete_elem", HASH),
    ("bpf_map_lookup_percpu_elem", 70),
    ("bpf_map_update_elem", HASH),
    ("bpf_task_from_pid", 160),
    ("bpf_task_from_vpid", 160),
    ("schedlab_map_lookup_elem", HASH),
    ("schedlab_map_lookup_u32", HASH),
    ("scx_bpf_consume", MOVE),
    ("scx_bpf_cpuperf_cur", CPUPERF),
    ("scx_bpf_cpuperf_set", CPUPERF),
    ("scx_bpf_dispatch", INSERT),
    ("scx_bpf_dispatch_from_dsq", MOVE),
    ("scx_bpf_dispatch_vtime", INSERT_VTIME),
    ("scx_bpf_dispatch_vtime_from_dsq", MOVE),
    ("scx_bpf_dsq_insert", INSERT),
    ("scx_bpf_dsq_insert___v2", INSERT),
    ("scx_bpf_dsq_insert_vtime", INSERT_VTIME),
    ("scx_bpf_dsq_move", MOVE),
    ("scx_bpf_dsq_move_to_local", MOVE),
    ("scx_bpf_dsq_move_vtime", MOVE),
    ("scx_bpf_dsq_nr_queued", FIND_QUEUE),
    ("scx_bpf_dsq_peek", FIND_QUEUE),
    ("scx_bpf_kick_cpu", 215),
    ("scx_bpf_pick_any_cpu", IDLE_MASK),
    ("scx_bpf_pick_any_cpu_node", IDLE_MASK),
    ("scx_bpf_pick_idle_cpu", IDLE_MASK),
    ("scx_bpf_pick_idle_cpu_node", IDLE_MASK),
    ("scx_bpf_put_cpumask", 0),
    ("scx_bpf_put_idle_cpumask", 0),
    ("scx_bpf_task_set_dsq_vtime", SET_WORD),
    ("scx_bpf_task_set_slice", SET_WORD),
    ("scx_bpf_test_and_clear_cpu_idle", IDLE_MASK),
];

/// Instructions that a call of `name` adds to a program.
pub fn of(name: &str) -> u32 {
    // Checks of accesses, and what the run time needs for itself.
    let is_own = name.starts_with("__asan") || name.starts_with("schedlab");
    match INSNS.binary_search_by(|(own, _)| (*own).cmp(name)) {
        Ok(index) => INSNS[index].1,
        Err(_) if is_own => 0,
        Err(_) => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use super::super::host;
    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_functions_that_exist() {
        assert!(INSNS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, _) in INSNS {
            assert!(host::find(name).is_some(), "{name} is no function");
        }
        assert_eq!(of("scx_bpf_dsq_move_to_local"), MOVE);
        assert_eq!((of("scx_bpf_task_cpu"), of("__asan_memset")), (USUAL, 0));
    }
}
