// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of sched_ext for natively compiled schedulers. They convert C arguments and call the
//! methods of [`Kernel`](schedlab_scx::Kernel), which describe the functions.

use super::guard;
use super::helpers::{formatted, no_task, ok};
use super::host::with;
use super::maps::errno::EBUSY;
use super::run::{Run, node_mask};
use super::touch;
use schedlab_model::CpuMask;
use schedlab_scx::{DsqIter, Kernel};

/// The CPU mask at an address; empty for NULL.
fn mask(at: u64) -> CpuMask {
    let words = touch::get16(at);
    with(|k, _| CpuMask::from_words(words).and(k.possible_cpus()))
}

/// Calls `f` with the task of a pointer.
#[inline]
fn on_task<R>(
    p: u64,
    function: &str,
    f: impl FnOnce(&mut Kernel<'_>, &mut Run, schedlab_model::TaskId) -> R,
) -> R {
    let answer = with(|k, run| run.tasks.task(p).map(|task| f(k, run, task)));
    match answer {
        Some(answer) => answer,
        None => not_a_task(p, function),
    }
}

#[cold]
fn not_a_task(p: u64, function: &str) -> ! {
    guard::broken(with(|_, run| no_task(run, p, function)))
}

pub extern "C" fn create_dsq(id: u64, node: i32) -> i32 {
    with(|k, _| k.create_dsq(id, node))
}

pub extern "C" fn destroy_dsq(id: u64) {
    with(|k, _| k.destroy_dsq(id));
}

pub extern "C" fn dsq_nr_queued(id: u64) -> i32 {
    with(|k, run| {
        let id = run.cids.dsq(k, id);
        k.dsq_nr_queued(id)
    })
}

pub extern "C" fn dsq_insert(p: u64, dsq: u64, slice: u64, flags: u64) -> bool {
    on_task(p, "scx_bpf_dsq_insert", |k, run, p| {
        let dsq = run.cids.dsq(k, dsq);
        k.dsq_insert(p, dsq, slice, flags)
    })
}

pub extern "C" fn dsq_insert_vtime(p: u64, dsq: u64, slice: u64, vtime: u64, flags: u64) -> bool {
    on_task(p, "scx_bpf_dsq_insert_vtime", |k, _, p| {
        k.dsq_insert_vtime(p, dsq, slice, vtime, flags)
    })
}

/// `struct scx_bpf_dsq_insert_vtime_args`: dsq_id, slice, vtime, enq_flags.
pub extern "C" fn dsq_insert_vtime_args(p: u64, args: u64) -> bool {
    let [dsq, slice, vtime] = touch::get3(args);
    let mut flags = [0u8; 8];
    touch::copy_from(args.wrapping_add(24), &mut flags);
    dsq_insert_vtime(p, dsq, slice, vtime, u64::from_le_bytes(flags))
}

pub extern "C" fn dsq_move_to_local(id: u64, _enq_flags: u64) -> bool {
    with(|k, _| k.dsq_move_to_local(id))
}

pub extern "C" fn dispatch_nr_slots() -> u32 {
    with(|k, _| k.dispatch_nr_slots())
}

pub extern "C" fn dispatch_cancel() {
    with(|k, _| k.dispatch_cancel());
}

pub extern "C" fn dsq_peek(id: u64) -> u64 {
    ok(with(|k, run| match k.dsq_peek(id) {
        Some(task) => run.tasks.show(k, &mut run.groups, task),
        None => Ok(0),
    }))
}

/// The state of the iteration is in the scheduler's `struct bpf_iter_scx_dsq`: number plus one, or
/// 0.
pub extern "C" fn iter_dsq_new(it: u64, id: u64, flags: u64) -> i32 {
    match with(|k, _| k.iter_dsq_new(id, flags)) {
        Ok(walk) => {
            touch::put_words(it, &[u64::from(walk.0) + 1]);
            0
        }
        Err(errno) => {
            touch::put_words(it, &[0]);
            errno
        }
    }
}

fn walk(it: u64) -> Option<DsqIter> {
    let mut bytes = [0u8; 8];
    touch::copy_from(it, &mut bytes);
    let number = u64::from_le_bytes(bytes).checked_sub(1)?;
    u32::try_from(number).ok().map(DsqIter)
}

pub extern "C" fn iter_dsq_next(it: u64) -> u64 {
    let Some(walk) = walk(it) else { return 0 };
    ok(with(|k, run| match k.iter_dsq_next(walk) {
        Some(task) => run.tasks.show(k, &mut run.groups, task),
        None => Ok(0),
    }))
}

pub extern "C" fn iter_dsq_destroy(it: u64) {
    if let Some(walk) = walk(it) {
        with(|k, _| k.iter_dsq_destroy(walk));
        touch::put_words(it, &[0]);
    }
}

pub extern "C" fn dsq_move_set_slice(it: u64, slice: u64) {
    if let Some(walk) = walk(it) {
        with(|k, _| k.dsq_move_set_slice(walk, slice));
    }
}

pub extern "C" fn dsq_move_set_vtime(it: u64, vtime: u64) {
    if let Some(walk) = walk(it) {
        with(|k, _| k.dsq_move_set_vtime(walk, vtime));
    }
}

pub extern "C" fn dsq_move(it: u64, p: u64, dsq: u64, flags: u64) -> bool {
    let Some(walk) = walk(it) else { return false };
    on_task(p, "scx_bpf_dsq_move", |k, run, p| {
        let dsq = run.cids.dsq(k, dsq);
        k.dsq_move(walk, p, dsq, flags)
    })
}

pub extern "C" fn dsq_move_vtime(it: u64, p: u64, dsq: u64, flags: u64) -> bool {
    let Some(walk) = walk(it) else { return false };
    on_task(p, "scx_bpf_dsq_move_vtime", |k, _, p| k.dsq_move_vtime(walk, p, dsq, flags))
}

pub extern "C" fn reenqueue_local() -> u32 {
    with(|k, _| k.reenqueue_local())
}

pub extern "C" fn dsq_reenq(id: u64, flags: u64) {
    with(|k, run| {
        let id = run.cids.dsq(k, id);
        k.dsq_reenq(id, flags);
    });
}

pub extern "C" fn kick_cpu(cpu: i32, flags: u64) {
    with(|k, _| k.kick_cpu(cpu, flags));
}

pub extern "C" fn cpuperf_cap(cpu: i32) -> u32 {
    with(|k, _| k.cpuperf_cap(cpu))
}

pub extern "C" fn cpuperf_cur(cpu: i32) -> u32 {
    with(|k, _| k.cpuperf_cur(cpu))
}

pub extern "C" fn cpuperf_set(cpu: i32, perf: u32) {
    with(|k, _| k.cpuperf_set(cpu, perf));
}

pub extern "C" fn nr_cpu_ids() -> u32 {
    with(|k, _| k.nr_cpu_ids())
}

pub extern "C" fn nr_node_ids() -> u32 {
    with(|k, _| k.nr_node_ids())
}

pub extern "C" fn cpu_node(cpu: i32) -> i32 {
    with(|k, _| k.cpu_node(cpu).map_or(-1, |node| node as i32))
}

pub extern "C" fn select_cpu_dfl(p: u64, prev: i32, wake_flags: u64, is_idle: u64) -> i32 {
    let (cpu, found) = on_task(p, "scx_bpf_select_cpu_dfl", |k, run, p| {
        let answer = k.select_cpu_dfl(p, prev, wake_flags);
        run.refresh_idle(k);
        answer
    });
    touch::copy_to(is_idle, &[u8::from(found)]);
    cpu
}

pub extern "C" fn select_cpu_and(
    p: u64,
    prev: i32,
    wake_flags: u64,
    allowed: u64,
    flags: u64,
) -> i32 {
    let allowed = mask(allowed);
    on_task(p, "scx_bpf_select_cpu_and", |k, run, p| {
        let answer = k.select_cpu_and(p, prev, wake_flags, &allowed, flags);
        run.refresh_idle(k);
        answer
    })
}

/// `struct scx_bpf_select_cpu_and_args`: prev_cpu, wake_flags, flags.
pub extern "C" fn select_cpu_and_args(p: u64, allowed: u64, args: u64) -> i32 {
    let [prev, wake_flags, flags] = touch::get3(args);
    select_cpu_and(p, prev as i32, wake_flags, allowed, flags)
}

pub extern "C" fn pick_idle_cpu(allowed: u64, flags: u64) -> i32 {
    // On a busy machine the answer does not depend on the mask.
    if with(|k, _| k.is_every_cpu_busy()) {
        touch::probe16(allowed);
        return -EBUSY as i32;
    }
    let allowed = mask(allowed);
    with(|k, run| {
        let answer = k.pick_idle_cpu(&allowed, flags);
        run.refresh_idle(k);
        answer
    })
}

pub extern "C" fn pick_any_cpu(allowed: u64, flags: u64) -> i32 {
    let allowed = mask(allowed);
    with(|k, run| {
        let answer = k.pick_any_cpu(&allowed, flags);
        run.refresh_idle(k);
        answer
    })
}

/// CPUs of the node first, then all, unless SCX_PICK_IDLE_IN_NODE is set.
fn pick_in_node(allowed: u64, node: i32, flags: u64, any: bool) -> i32 {
    const IN_NODE: u64 = 2;
    let allowed = mask(allowed);
    with(|k, run| {
        let node = u32::try_from(node).ok().filter(|node| *node < k.nr_node_ids());
        let here = node.map_or(allowed, |node| allowed.and(&node_mask(k, node)));
        let mut cpu = k.pick_idle_cpu(&here, flags & !IN_NODE);
        if cpu == -EBUSY as i32 && flags & IN_NODE == 0 {
            cpu = k.pick_idle_cpu(&allowed, flags);
        }
        if cpu < 0 && any {
            cpu = k.pick_any_cpu(if flags & IN_NODE == 0 { &allowed } else { &here }, 0);
        }
        run.refresh_idle(k);
        cpu
    })
}

pub extern "C" fn pick_idle_cpu_node(allowed: u64, node: i32, flags: u64) -> i32 {
    pick_in_node(allowed, node, flags, false)
}

pub extern "C" fn pick_any_cpu_node(allowed: u64, node: i32, flags: u64) -> i32 {
    pick_in_node(allowed, node, flags, true)
}

pub extern "C" fn test_and_clear_cpu_idle(cpu: i32) -> bool {
    with(|k, run| {
        let answer = k.test_and_clear_cpu_idle(cpu);
        run.refresh_idle(k);
        answer
    })
}

pub extern "C" fn get_possible_cpumask() -> u64 {
    with(|_, run| run.possible_mask())
}

pub extern "C" fn get_idle_cpumask() -> u64 {
    with(|k, run| run.idle_mask(k, false))
}

pub extern "C" fn get_idle_smtmask() -> u64 {
    with(|k, run| run.idle_mask(k, true))
}

fn idle_of_node(node: i32, cores: bool) -> u64 {
    with(|k, run| match u32::try_from(node).ok().filter(|node| *node < k.nr_node_ids()) {
        Some(node) => run.idle_mask_of_node(k, node, cores),
        None => run.idle_mask(k, cores),
    })
}

pub extern "C" fn get_idle_cpumask_node(node: i32) -> u64 {
    idle_of_node(node, false)
}

pub extern "C" fn get_idle_smtmask_node(node: i32) -> u64 {
    idle_of_node(node, true)
}

pub extern "C" fn put_cpumask(_mask: u64) {}

pub extern "C" fn task_running(p: u64) -> bool {
    let is_running = with(|k, run| match run.tasks.task(p) {
        Some(task) => Some(k.task_running(task)),
        None => run.tasks.idle_cpu(p).map(|_| true),
    });
    is_running.unwrap_or_else(|| not_a_task(p, "scx_bpf_task_running"))
}

pub extern "C" fn task_cpu(p: u64) -> i32 {
    let cpu = with(|k, run| match run.tasks.task(p) {
        Some(task) => Some(k.task_cpu(task).0),
        None => run.tasks.idle_cpu(p),
    });
    cpu.unwrap_or_else(|| not_a_task(p, "scx_bpf_task_cpu")) as i32
}

pub extern "C" fn task_cgroup(p: u64) -> u64 {
    on_task(p, "scx_bpf_task_cgroup", |k, run, p| {
        let group = k.task_cgroup(p);
        run.groups.show(k, group)
    })
}

pub extern "C" fn cpu_rq(cpu: i32) -> u64 {
    ok(with(|k, run| match k.cpu_curr(cpu) {
        Some(_) => run.rq(k, cpu as u32),
        None => Ok(0),
    }))
}

pub extern "C" fn locked_rq() -> u64 {
    ok(with(|k, run| match k.locked_rq() {
        Some(cpu) => run.rq(k, cpu.0),
        None => Ok(0),
    }))
}

pub extern "C" fn cpu_curr(cpu: i32) -> u64 {
    ok(with(|k, run| match k.cpu_curr(cpu) {
        Some(Some(task)) => run.tasks.show(k, &mut run.groups, task),
        Some(None) => Ok(run.tasks.idle(cpu as u32)),
        None => Ok(0),
    }))
}

pub extern "C" fn task_set_slice(p: u64, slice: u64) -> bool {
    on_task(p, "scx_bpf_task_set_slice", |k, _, p| k.task_set_slice(p, slice))
}

pub extern "C" fn task_set_dsq_vtime(p: u64, vtime: u64) -> bool {
    on_task(p, "scx_bpf_task_set_dsq_vtime", |k, _, p| k.task_set_dsq_vtime(p, vtime))
}

pub extern "C" fn error_bstr(format: u64, data: u64, len: u32) {
    let text = formatted(format, data, len);
    with(|k, _| k.error(text));
}

pub extern "C" fn exit_bstr(code: i64, format: u64, data: u64, len: u32) {
    let text = formatted(format, data, len);
    with(|k, _| k.exit(code, text));
}

pub extern "C" fn dump_bstr(format: u64, data: u64, len: u32) {
    let text = formatted(format, data, len);
    with(|k, _| k.dump(&text));
}

/// `struct scx_event_stats`: counters of 64 bits in the order of vmlinux.h.
pub extern "C" fn events(to: u64, size: u64) {
    let e = with(|k, _| k.events());
    let counters = super::ops::event_words(&e);
    let mut all = vec![0u64; size as usize / 8];
    let nr = all.len().min(counters.len());
    all[..nr].copy_from_slice(&counters[..nr]);
    touch::put_words(to, &all);
}
