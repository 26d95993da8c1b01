// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that a natively compiled scheduler may call, by name, and how they find their run.
//!
//! A function that is not in the list (or in rt.c) is refused when a scheduler is loaded. A
//! function finds its run through a thread-local pointer, which is set during a callback. So many
//! runs can execute in parallel.

use super::guard;
use super::lines::Lines;
use super::object::ObjectFile;
use super::run::Run;
use super::{checks, cids, helpers, kfuncs, storage, subs};
use schedlab_model::KernelVersion;
use schedlab_scx::Kernel;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ptr::null_mut;
use std::sync::Arc;

/// A function for schedulers.
#[derive(Clone, Copy, Debug)]
pub struct HostFn {
    /// Its name.
    pub name: &'static str,
    /// Its code.
    pub address: *const (),
    /// First release with it.
    pub since: KernelVersion,
}

// SAFETY: the address of a function is a constant.
unsafe impl Sync for HostFn {}

impl HostFn {
    /// Whether a release has it. Names that were removed by 6.18 (`scx_bpf_consume`, and
    /// `scx_bpf_dispatch*` for the present `scx_bpf_dsq_*`) are kept for sources written for 6.12,
    /// whose headers have no others: the function is the same.
    pub fn exists_in(&self, kernel: KernelVersion) -> bool {
        self.since <= kernel
    }
}

macro_rules! functions {
    ($($name:literal $(since $major:literal $minor:literal)? => $function:path,)*) => {
        /// Every function, in order of names.
        pub static FUNCTIONS: &[HostFn] = &[$(HostFn {
            name: $name,
            address: $function as *const (),
            since: functions!(@or_6_12 $($major $minor)?),
        },)*];
    };
    (@or_6_12) => { KernelVersion::series(6, 12) };
    (@or_6_12 $major:literal $minor:literal) => { KernelVersion::series($major, $minor) };
}

functions! {
    "__asan_handle_no_return" => checks::nothing,
    "__asan_init" => checks::nothing,
    "__asan_memcpy" => checks::memcpy,
    "__asan_memmove" => checks::memcpy,
    "__asan_memset" => checks::memset,
    "__asan_report_load1" => checks::load1,
    "__asan_report_load16" => checks::load16,
    "__asan_report_load2" => checks::load2,
    "__asan_report_load4" => checks::load4,
    "__asan_report_load8" => checks::load8,
    "__asan_report_load_n" => checks::load_n,
    "__asan_report_store1" => checks::store1,
    "__asan_report_store16" => checks::store16,
    "__asan_report_store2" => checks::store2,
    "__asan_report_store4" => checks::store4,
    "__asan_report_store8" => checks::store8,
    "__asan_report_store_n" => checks::store_n,
    "__scx_bpf_dsq_insert_vtime" since 6 19 => kfuncs::dsq_insert_vtime_args,
    "__scx_bpf_select_cpu_and" since 6 19 => kfuncs::select_cpu_and_args,
    "bpf_arena_alloc_pages" => storage::arena_alloc_pages,
    "bpf_arena_free_pages" => storage::arena_free_pages,
    "bpf_arena_reserve_pages" since 6 18 => storage::arena_reserve_pages,
    "bpf_cgroup_acquire" => helpers::cgroup_acquire,
    "bpf_cgroup_ancestor" => helpers::cgroup_ancestor,
    "bpf_cgroup_from_id" => helpers::cgroup_from_id,
    "bpf_cgroup_release" => helpers::cgroup_release,
    "bpf_cgrp_storage_delete" => storage::cgrp_storage_delete,
    "bpf_cgrp_storage_get" => storage::cgrp_storage_get,
    "bpf_copy_from_user" => helpers::probe_read,
    "bpf_for_each_map_elem" => storage::for_each_map_elem,
    "bpf_get_current_cgroup_id" => helpers::current_cgroup_id,
    "bpf_get_current_comm" => helpers::current_comm,
    "bpf_get_current_pid_tgid" => helpers::current_pid_tgid,
    "bpf_get_current_task" => helpers::current_task,
    "bpf_get_current_task_btf" => helpers::current_task,
    "bpf_get_current_uid_gid" => helpers::current_uid_gid,
    "bpf_get_numa_node_id" => helpers::numa_node_id,
    "bpf_get_prandom_u32" => helpers::prandom_u32,
    "bpf_iter_css_destroy" => helpers::iter_css_destroy,
    "bpf_iter_css_new" => helpers::iter_css_new,
    "bpf_iter_css_next" => helpers::iter_css_next,
    "bpf_iter_scx_dsq_destroy" => kfuncs::iter_dsq_destroy,
    "bpf_iter_scx_dsq_new" => kfuncs::iter_dsq_new,
    "bpf_iter_scx_dsq_next" => kfuncs::iter_dsq_next,
    "bpf_jiffies64" => helpers::jiffies64,
    "bpf_map_delete_elem" => storage::map_delete_elem,
    "bpf_map_lookup_percpu_elem" => storage::map_lookup_percpu_elem,
    "bpf_map_peek_elem" => storage::map_peek_elem,
    "bpf_map_pop_elem" => storage::map_pop_elem,
    "bpf_map_push_elem" => storage::map_push_elem,
    "bpf_map_update_elem" => storage::map_update_elem,
    "bpf_per_cpu_ptr" => helpers::per_cpu_ptr,
    "bpf_perf_event_output" => helpers::not_supported,
    "bpf_perf_event_read_value" => storage::perf_event_read_value,
    "bpf_probe_read" => helpers::probe_read,
    "bpf_probe_read_kernel" => helpers::probe_read,
    "bpf_probe_read_kernel_str" => helpers::probe_read_str,
    "bpf_probe_read_str" => helpers::probe_read_str,
    "bpf_probe_read_user" => helpers::probe_read,
    "bpf_ringbuf_discard" => storage::ringbuf_discard,
    "bpf_ringbuf_output" => storage::ringbuf_output,
    "bpf_ringbuf_query" => storage::ringbuf_query,
    "bpf_ringbuf_reserve" => storage::ringbuf_reserve,
    "bpf_ringbuf_submit" => storage::ringbuf_submit,
    "bpf_send_signal" => helpers::not_supported,
    "bpf_snprintf" => helpers::snprintf,
    "bpf_stream_vprintk" since 6 17 => helpers::stream_vprintk,
    "bpf_strncmp" => helpers::strncmp,
    "bpf_task_acquire" => helpers::task_acquire,
    "bpf_task_from_pid" => helpers::task_from_pid,
    "bpf_task_from_vpid" since 6 14 => helpers::task_from_pid,
    "bpf_task_release" => helpers::task_release,
    "bpf_task_storage_delete" => storage::task_storage_delete,
    "bpf_this_cpu_ptr" => helpers::this_cpu_ptr,
    "bpf_timer_cancel" => storage::timer_cancel,
    "bpf_timer_init" => storage::timer_init,
    "bpf_timer_set_callback" => storage::timer_set_callback,
    "bpf_timer_start" => storage::timer_start,
    "bpf_trace_printk" => helpers::trace_printk,
    "bpf_trace_vprintk" => helpers::trace_vprintk,
    "schedlab_alloc" => helpers::alloc,
    "schedlab_broken" => helpers::broken,
    "schedlab_frames_full" => checks::frames_full,
    "schedlab_free" => helpers::free,
    "schedlab_map_lookup_elem" => storage::map_lookup_elem,
    "schedlab_map_lookup_u32" => storage::map_lookup_u32,
    "schedlab_task_storage_get" => storage::task_storage_get,
    "schedlab_user_record" => storage::user_record,
    "scx_bpf_cid_curr" since 7 2 => cids::cid_curr,
    "scx_bpf_cid_override" since 7 2 => cids::cid_override,
    "scx_bpf_cid_to_cpu" since 7 2 => cids::cid_to_cpu,
    "scx_bpf_cid_topo" since 7 2 => cids::cid_topo,
    "scx_bpf_cidperf_cap" since 7 2 => cids::cidperf_cap,
    "scx_bpf_cidperf_cur" since 7 2 => cids::cidperf_cur,
    "scx_bpf_cidperf_set" since 7 2 => cids::cidperf_set,
    "scx_bpf_consume" => kfuncs::dsq_move_to_local,
    "scx_bpf_cpu_curr" since 6 18 => kfuncs::cpu_curr,
    "scx_bpf_cpu_node" since 6 15 => kfuncs::cpu_node,
    "scx_bpf_cpu_rq" => kfuncs::cpu_rq,
    "scx_bpf_cpu_to_cid" since 7 2 => cids::cpu_to_cid,
    "scx_bpf_cpuperf_cap" => kfuncs::cpuperf_cap,
    "scx_bpf_cpuperf_cur" => kfuncs::cpuperf_cur,
    "scx_bpf_cpuperf_set" => kfuncs::cpuperf_set,
    "scx_bpf_create_dsq" => kfuncs::create_dsq,
    "scx_bpf_destroy_dsq" => kfuncs::destroy_dsq,
    "scx_bpf_dispatch" => kfuncs::dsq_insert,
    "scx_bpf_dispatch_cancel" => kfuncs::dispatch_cancel,
    "scx_bpf_dispatch_from_dsq" => kfuncs::dsq_move,
    "scx_bpf_dispatch_from_dsq_set_slice" => kfuncs::dsq_move_set_slice,
    "scx_bpf_dispatch_from_dsq_set_vtime" => kfuncs::dsq_move_set_vtime,
    "scx_bpf_dispatch_nr_slots" => kfuncs::dispatch_nr_slots,
    "scx_bpf_dispatch_vtime" => kfuncs::dsq_insert_vtime,
    "scx_bpf_dispatch_vtime_from_dsq" => kfuncs::dsq_move_vtime,
    "scx_bpf_dsq_insert" => kfuncs::dsq_insert,
    "scx_bpf_dsq_insert___v2" since 6 19 => kfuncs::dsq_insert,
    "scx_bpf_dsq_insert_vtime" => kfuncs::dsq_insert_vtime,
    "scx_bpf_dsq_move" => kfuncs::dsq_move,
    "scx_bpf_dsq_move_set_slice" => kfuncs::dsq_move_set_slice,
    "scx_bpf_dsq_move_set_vtime" => kfuncs::dsq_move_set_vtime,
    "scx_bpf_dsq_move_to_local" => kfuncs::dsq_move_to_local,
    "scx_bpf_dsq_move_vtime" => kfuncs::dsq_move_vtime,
    "scx_bpf_dsq_nr_queued" => kfuncs::dsq_nr_queued,
    "scx_bpf_dsq_peek" since 6 19 => kfuncs::dsq_peek,
    "scx_bpf_dsq_reenq" since 7 1 => kfuncs::dsq_reenq,
    "scx_bpf_dump_bstr" => kfuncs::dump_bstr,
    "scx_bpf_error_bstr" => kfuncs::error_bstr,
    "scx_bpf_events" since 6 15 => kfuncs::events,
    "scx_bpf_exit_bstr" => kfuncs::exit_bstr,
    "scx_bpf_get_idle_cpumask" => kfuncs::get_idle_cpumask,
    "scx_bpf_get_idle_cpumask_node" since 6 15 => kfuncs::get_idle_cpumask_node,
    "scx_bpf_get_idle_smtmask" => kfuncs::get_idle_smtmask,
    "scx_bpf_get_idle_smtmask_node" since 6 15 => kfuncs::get_idle_smtmask_node,
    "scx_bpf_get_online_cpumask" => kfuncs::get_possible_cpumask,
    "scx_bpf_get_possible_cpumask" => kfuncs::get_possible_cpumask,
    "scx_bpf_kick_cid" since 7 2 => cids::kick_cid,
    "scx_bpf_kick_cpu" => kfuncs::kick_cpu,
    "scx_bpf_locked_rq" since 6 18 => kfuncs::locked_rq,
    "scx_bpf_nr_cids" since 7 2 => cids::nr_cids,
    "scx_bpf_nr_cpu_ids" => kfuncs::nr_cpu_ids,
    "scx_bpf_nr_node_ids" since 6 15 => kfuncs::nr_node_ids,
    "scx_bpf_nr_online_cids" since 7 2 => cids::nr_cids,
    "scx_bpf_online_cmask" since 7 3 => cids::online_cmask,
    "scx_bpf_pick_any_cpu" => kfuncs::pick_any_cpu,
    "scx_bpf_pick_any_cpu_node" since 6 15 => kfuncs::pick_any_cpu_node,
    "scx_bpf_pick_idle_cpu" => kfuncs::pick_idle_cpu,
    "scx_bpf_pick_idle_cpu_node" since 6 15 => kfuncs::pick_idle_cpu_node,
    "scx_bpf_put_cpumask" => kfuncs::put_cpumask,
    "scx_bpf_put_idle_cpumask" => kfuncs::put_cpumask,
    "scx_bpf_reenqueue_local" => kfuncs::reenqueue_local,
    "scx_bpf_reenqueue_local___v2" since 6 19 => kfuncs::reenqueue_local,
    "scx_bpf_select_cpu_and" since 6 16 => kfuncs::select_cpu_and,
    "scx_bpf_select_cpu_dfl" => kfuncs::select_cpu_dfl,
    "scx_bpf_sub_caps" since 7 3 => subs::caps,
    "scx_bpf_sub_dispatch" since 7 1 => subs::dispatch,
    "scx_bpf_sub_grant" since 7 3 => subs::of_child,
    "scx_bpf_sub_kill_bstr" since 7 3 => subs::of_child,
    "scx_bpf_sub_revoke" since 7 3 => subs::revoke,
    "scx_bpf_task_cgroup" => kfuncs::task_cgroup,
    "scx_bpf_task_cid" since 7 2 => cids::task_cid,
    "scx_bpf_task_cpu" => kfuncs::task_cpu,
    "scx_bpf_task_running" => kfuncs::task_running,
    "scx_bpf_task_set_dsq_vtime" since 6 19 => kfuncs::task_set_dsq_vtime,
    "scx_bpf_task_set_slice" since 6 19 => kfuncs::task_set_slice,
    "scx_bpf_test_and_clear_cpu_idle" => kfuncs::test_and_clear_cpu_idle,
    "scx_bpf_this_cid" since 7 2 => cids::this_cid,
    "scx_bpf_tid_to_task" since 7 2 => cids::tid_to_task,
}

/// Index of a function by its name.
pub fn find(name: &str) -> Option<usize> {
    FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok()
}

/// Names of everything that a scheduler may call on a modelled kernel: [`FUNCTIONS`], and those
/// functions of the compiled rt.c that have names of the kernel.
pub fn names(kernel: KernelVersion, run_time: &ObjectFile) -> BTreeSet<&str> {
    let own = FUNCTIONS.iter().filter(|function| function.exists_in(kernel));
    let of_c = run_time.symbols.iter().filter(|symbol| symbol.is_function && !symbol.is_local);
    let names = own.map(|function| function.name).chain(of_c.map(|symbol| symbol.name.as_str()));
    names.filter(|name| name.starts_with("bpf_") || name.contains("scx_bpf_")).collect()
}

/// Address to which calls of missing functions go.
pub fn absent_address() -> u64 {
    called_absent as *const () as u64
}

extern "C" fn called_absent(index: u32) -> ! {
    let name = with(|_, run| run.program.absent[index as usize].clone());
    guard::broken(format!(
        "it called {name}, which the modelled kernel does not have (bpf_ksym_exists() tells)"
    ))
}

/// A running callback.
pub struct Call {
    kernel: *mut Kernel<'static>,
    run: *mut Run,
    is_checked: bool,
    lines: *const Lines,
}

thread_local! {
    static CALL: Cell<*mut Call> = const { Cell::new(null_mut()) };
}

/// Calls `call`. Meanwhile the functions of this list use `run` and `k`.
#[inline(always)]
pub fn during<R>(k: &mut Kernel<'_>, run: &mut Run, call: impl FnOnce() -> R) -> R {
    let kernel: *mut Kernel<'_> = k;
    let is_checked = run.zone.is_checked();
    let lines = Arc::as_ptr(&run.lines);
    let mut this = Call { kernel: kernel.cast(), run, is_checked, lines };
    let outer = CALL.replace(&raw mut this);
    let answer = call();
    CALL.set(outer);
    answer
}

/// Whether a callback is running whose accesses are checked.
#[inline]
pub fn is_checked() -> bool {
    let call = CALL.get();
    // SAFETY: `during` keeps it alive.
    !call.is_null() && unsafe { (*call).is_checked }
}

/// The place in the source from which the running callback has called the simulator last.
pub fn place_of_last_call() -> Option<String> {
    let call = CALL.get();
    if call.is_null() {
        return None;
    }
    // SAFETY: `during` keeps both alive; the run does not own the lines exclusively.
    let lines = unsafe { &*(*call).lines };
    Some(lines.name(lines.last_call()))
}

/// Describes memory of the running callback that it may not use.
pub fn place_of(at: u64, bytes: usize) -> String {
    if !is_checked() {
        return format!("at {at:#x}, which are not there");
    }
    let nr = super::touch::usable(at, bytes as u64);
    let place = with(|_, run| run.describe_place(at.wrapping_add(nr)));
    match nr {
        0 => place,
        _ => format!("of which {nr} are an object's; the next is {place}"),
    }
}

/// Calls `f` with the kernel and the run of the running callback.
#[inline]
pub fn with<R>(f: impl FnOnce(&mut Kernel<'_>, &mut Run) -> R) -> R {
    let call = CALL.get();
    assert!(!call.is_null(), "a function for schedulers was called outside of a callback");
    // SAFETY: `during` keeps both alive and untouched while the scheduler's code runs, and one
    // function of the list is at work at a time: none calls the scheduler from within `f`.
    unsafe { f(&mut *(*call).kernel, &mut *(*call).run) }
}

#[cfg(test)]
mod tests {
    use super::super::compile::{CompileOptions, compile, find_clang};
    use super::super::program::RUN_TIME;
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(find("scx_bpf_dsq_insert").is_some());
        assert!(find("bpf_redirect").is_none());
    }

    #[test]
    fn the_reference_lists_every_function() {
        if find_clang().is_err() {
            return schedlab_testing::skip("no clang in PATH");
        }
        let newest = schedlab_scx::CORES.last().unwrap().version;
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("x.bpf.c");
        std::fs::write(&source, "").unwrap();
        let compiled = compile(&source, &CompileOptions::default()).unwrap();
        let page = include_str!("../../../docs/reference/sched-ext-in-the-simulator.md");
        for name in names(newest, &compiled.objects[RUN_TIME]) {
            assert!(page.contains(&format!("`{name}`")), "{name} is not in the reference");
        }
    }
}
