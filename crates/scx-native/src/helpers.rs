// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF helpers and functions that do not concern maps: time, random numbers, tasks, groups, memory,
//! text.
//!
//! Semantics: kernel/bpf/helpers.c, kernel/trace/bpf_trace.c of Linux 6.18.

use super::guard;
use super::host::with;
use super::maps::errno::{EFAULT, EINVAL, EOPNOTSUPP};
use super::text;
use super::touch;
use schedlab_model::{CgroupId, TaskId};
use schedlab_scx::{Kernel, kernel};

/// The task of a pointer that the scheduler passes. Any other pointer ends the callback.
pub fn task(run: &super::run::Run, p: u64, function: &str) -> Result<TaskId, String> {
    run.tasks.task(p).ok_or_else(|| no_task(run, p, function))
}

/// Describes a pointer that should refer to a task but does not.
#[cold]
pub fn no_task(run: &super::run::Run, p: u64, function: &str) -> String {
    match p {
        0 => format!("{function} was given NULL for a task"),
        _ if run.tasks.is_task(p) => format!("{function} was given an idle task"),
        _ => format!("{function} was given {p:#x}, which is no task"),
    }
}

/// Returns the value, or ends the callback if there was an error. Nothing is borrowed at this
/// point.
pub fn ok<T>(answer: Result<T, String>) -> T {
    match answer {
        Ok(value) => value,
        Err(what) => guard::broken(what),
    }
}

pub extern "C" fn jiffies64() -> u64 {
    with(|k, _| k.jiffies() + u64::from(k.hz()) * (kernel::UPTIME_NS / 1_000_000_000))
}

pub extern "C" fn prandom_u32() -> u32 {
    with(|k, _| k.prandom_u32())
}

pub extern "C" fn numa_node_id() -> i64 {
    with(|k, _| k.cpu_node(k.this_cpu().0 as i32).map_or(0, i64::from))
}

pub extern "C" fn current_task() -> u64 {
    ok(with(|k, run| match k.current() {
        Some(task) => run.tasks.show(k, &mut run.groups, task),
        None => Ok(run.tasks.idle(k.this_cpu().0)),
    }))
}

fn current_ids(k: &Kernel<'_>) -> (u32, u32) {
    k.current().map_or((0, 0), |task| (k.pid(task), k.tgid(task)))
}

pub extern "C" fn current_pid_tgid() -> u64 {
    let (pid, tgid) = with(|k, _| current_ids(k));
    u64::from(tgid) << 32 | u64::from(pid)
}

/// All tasks belong to root.
pub extern "C" fn current_uid_gid() -> u64 {
    0
}

pub extern "C" fn current_cgroup_id() -> u64 {
    with(|k, _| {
        let group = k.current().map_or(CgroupId(0), |task| k.task_cgroup(task));
        k.cgroup_kernfs_id(group)
    })
}

pub extern "C" fn current_comm(to: u64, size: u32) -> i64 {
    let comm = with(|k, _| match k.current() {
        Some(task) => k.comm(task).to_owned(),
        None => format!("swapper/{}", k.this_cpu().0),
    });
    let mut bytes = comm.into_bytes();
    bytes.resize(size as usize, 0);
    if let Some(last) = bytes.last_mut() {
        *last = 0;
    }
    touch::copy_to(to, &bytes);
    0
}

pub extern "C" fn per_cpu_ptr(p: u64, cpu: u32) -> u64 {
    ok(with(|k, run| run.per_cpu(k, p, cpu)))
}

pub extern "C" fn this_cpu_ptr(p: u64) -> u64 {
    per_cpu_ptr(p, with(|k, _| k.this_cpu().0))
}

pub extern "C" fn task_from_pid(pid: i32) -> u64 {
    ok(with(|k, run| {
        let known = u32::try_from(pid).ok();
        let Some(task) = known.and_then(|pid| k.task_from_pid(pid)) else { return Ok(0) };
        let p = run.tasks.show(k, &mut run.groups, task)?;
        run.tasks.acquire(p);
        Ok(p)
    }))
}

pub extern "C" fn task_acquire(p: u64) -> u64 {
    if with(|_, run| run.tasks.acquire(p)) { p } else { 0 }
}

pub extern "C" fn task_release(p: u64) {
    let is_ok = with(|_, run| run.tasks.release(p));
    if !is_ok {
        guard::broken("bpf_task_release of a task that it holds no reference to".into());
    }
}

fn group(run: &super::run::Run, p: u64, function: &str) -> Result<CgroupId, String> {
    run.groups.group(p).ok_or_else(|| match p {
        0 => format!("{function} was given NULL for a cgroup"),
        _ => format!("{function} was given {p:#x}, which is no cgroup"),
    })
}

/// The group of a pointer, for other modules.
pub fn cgroup(run: &super::run::Run, p: u64, function: &str) -> Result<CgroupId, String> {
    group(run, p, function)
}

pub extern "C" fn cgroup_from_id(id: u64) -> u64 {
    with(|k, run| k.cgroup_from_id(id).map_or(0, |group| run.groups.show(k, group)))
}

pub extern "C" fn cgroup_ancestor(p: u64, level: i32) -> u64 {
    ok(with(|k, run| {
        let group = group(run, p, "bpf_cgroup_ancestor")?;
        let above = u32::try_from(level).ok().and_then(|level| k.cgroup_ancestor(group, level));
        Ok(above.map_or(0, |above| run.groups.show(k, above)))
    }))
}

pub extern "C" fn cgroup_acquire(p: u64) -> u64 {
    ok(with(|_, run| group(run, p, "bpf_cgroup_acquire").map(|_| p)))
}

pub extern "C" fn cgroup_release(p: u64) {
    ok(with(|_, run| group(run, p, "bpf_cgroup_release").map(|_| ())));
}

/// Orders of an iteration (`enum bpf_cgroup_iter_order`). Its state is in the scheduler's `struct
/// bpf_iter_css`: number of the next group plus one, top, order.
const ORDER_SELF_ONLY: u64 = 1;
const ORDER_PRE: u64 = 2;
const ORDER_POST: u64 = 3;
const ORDER_UP: u64 = 4;

pub extern "C" fn iter_css_new(it: u64, start: u64, order: u32) -> i32 {
    let order = u64::from(order);
    let top = ok(with(|_, run| group(run, start, "bpf_iter_css_new")));
    let valid = matches!(order, ORDER_SELF_ONLY | ORDER_PRE | ORDER_POST | ORDER_UP);
    let first = match order {
        ORDER_POST => with(|k, _| post_order_first(k, top)),
        _ => top,
    };
    let next = if valid { u64::from(first.0) + 1 } else { 0 };
    touch::put_words(it, &[next, u64::from(top.0), order]);
    if valid { 0 } else { -EINVAL as i32 }
}

pub extern "C" fn iter_css_next(it: u64) -> u64 {
    let [next, top_number, order] = touch::get3(it);
    if next == 0 {
        return 0;
    }
    let (at, top) = (CgroupId(next as u32 - 1), CgroupId(top_number as u32));
    let (p, next) = with(|k, run| {
        let next = match order {
            ORDER_PRE => super::groups::Groups::next_below(k, top, at),
            ORDER_POST => post_order_next(k, top, at),
            ORDER_UP if at.0 != 0 => Some(k.cgroup(at).parent),
            _ => None,
        };
        (run.groups.show(k, at), next)
    });
    let next = next.map_or(0, |next| u64::from(next.0) + 1);
    touch::put_words(it, &[next, top_number, order]);
    p
}

pub extern "C" fn iter_css_destroy(_it: u64) {}

/// The deepest first child below `group`, or `group` itself.
fn post_order_first(k: &Kernel<'_>, group: CgroupId) -> CgroupId {
    let mut at = group;
    while let Some(child) = children(k, at).next() {
        at = child;
    }
    at
}

fn post_order_next(k: &Kernel<'_>, top: CgroupId, at: CgroupId) -> Option<CgroupId> {
    if at == top {
        return None;
    }
    let parent = k.cgroup(at).parent;
    let sibling = children(k, parent).find(|child| child.0 > at.0);
    Some(sibling.map_or(parent, |sibling| post_order_first(k, sibling)))
}

fn children<'a>(k: &'a Kernel<'_>, parent: CgroupId) -> impl Iterator<Item = CgroupId> + 'a {
    (1..k.nr_cgroups()).map(CgroupId).filter(move |group| k.cgroup(*group).parent == parent)
}

pub extern "C" fn probe_read(to: u64, size: u32, from: u64) -> i64 {
    let mut bytes = vec![0u8; size as usize];
    if !touch::try_copy_from(from, &mut bytes) {
        bytes.fill(0);
        touch::copy_to(to, &bytes);
        return -EFAULT;
    }
    touch::copy_to(to, &bytes);
    0
}

/// Copies a text with its final zero. Returns its length with the zero.
pub extern "C" fn probe_read_str(to: u64, size: u32, from: u64) -> i64 {
    if size == 0 {
        return -EINVAL;
    }
    let Some(mut text) = touch::try_text(from, size as usize - 1) else {
        touch::copy_to(to, &[0]);
        return -EFAULT;
    };
    text.push(0);
    touch::copy_to(to, &text);
    text.len() as i64
}

pub extern "C" fn strncmp(a: u64, size: u32, b: u64) -> i64 {
    let (Some(a), Some(b)) = (touch::try_text(a, size as usize), touch::try_text(b, size as usize))
    else {
        guard::broken("bpf_strncmp of memory that is not there".into());
    };
    match a.cmp(&b) {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }
}

/// The arguments of a format.
pub fn words(data: u64, len: u32) -> Vec<u64> {
    let mut bytes = vec![0u8; (len / 8 * 8) as usize];
    if !bytes.is_empty() {
        touch::copy_from(data, &mut bytes);
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks_exact(8).map(word).collect()
}

/// Longest format.
const FORMAT_MAX: usize = 4096;

/// Formats a text with its arguments.
pub fn formatted(format: u64, data: u64, len: u32) -> String {
    let Some(format) = touch::try_text(format, FORMAT_MAX) else {
        guard::broken("a format that is not there".into());
    };
    let words = words(data, len);
    text::format(&String::from_utf8_lossy(&format), &words, &|at| {
        let text = touch::try_text(at, FORMAT_MAX)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    })
}

pub extern "C" fn snprintf(to: u64, size: u32, format: u64, data: u64, len: u32) -> i64 {
    let mut bytes = formatted(format, data, len).into_bytes();
    bytes.push(0);
    let whole = bytes.len() as i64;
    if size > 0 {
        bytes.truncate(size as usize);
        if let Some(last) = bytes.last_mut() {
            *last = 0;
        }
        touch::copy_to(to, &bytes);
    }
    whole
}

/// No task of a run may be sent a signal by its scheduler.
pub extern "C" fn not_supported() -> i64 {
    -EOPNOTSUPP
}

pub extern "C" fn stream_vprintk(_stream: i32, format: u64, data: u64, len: u32) -> i32 {
    trace_vprintk(format, 0, data, len) as i32
}

pub extern "C" fn trace_vprintk(format: u64, _size: u32, data: u64, len: u32) -> i64 {
    let line = formatted(format, data, len);
    let len = line.len() as i64;
    with(|k, run| run.print(k, line));
    len
}

pub extern "C" fn trace_printk(format: u64, _size: u32, a: u64, b: u64, c: u64) -> i64 {
    let Some(format) = touch::try_text(format, FORMAT_MAX) else {
        guard::broken("a format that is not there".into());
    };
    let line = text::format(&String::from_utf8_lossy(&format), &[a, b, c], &|at| {
        let text = touch::try_text(at, FORMAT_MAX)?;
        Some(String::from_utf8_lossy(&text).into_owned())
    });
    let len = line.len() as i64;
    with(|k, run| run.print(k, line));
    len
}

pub extern "C" fn alloc(size: u64) -> u64 {
    with(|_, run| run.alloc(size))
}

pub extern "C" fn free(at: u64) {
    let was = with(|_, run| run.free(at));
    if !was {
        guard::broken(format!("it gave back {at:#x}, which it had not got"));
    }
}

pub extern "C" fn broken(what: u64, returns_to: u64) -> ! {
    let what = touch::try_text(what, FORMAT_MAX).unwrap_or_default();
    let what = String::from_utf8_lossy(&what).into_owned();
    guard::fail(guard::Fault::Broken { what, at: Some(returns_to.saturating_sub(1)) })
}
