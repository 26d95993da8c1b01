// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of processes that this machine has room for. A run that needs more is refused before
//! it starts. Otherwise the kernel would refuse a fork in the middle of the run, or kill processes
//! for lack of memory.

use crate::error::HostError;
use crate::machine::read;
use crate::procfs;
use std::path::Path;

/// What the processes of a run do first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// They are forked and play a program of schedlab's.
    Task,
    /// They are forked and execute a command.
    Command,
}

impl Kind {
    /// The least memory that a process needs (bytes): stack (16 KiB), `task_struct` and page tables
    /// in the kernel. A command also needs the pages that it writes before it does anything else.
    const fn bytes(self) -> u64 {
        match self {
            Self::Task => 40 << 10,
            Self::Command => 200 << 10,
        }
    }
}

/// A limit, and its source.
type Bound = (u64, String);

/// Refuses `nr_processes` if a limit of this machine allows fewer.
pub fn check(nr_processes: u64, kind: Kind) -> Result<(), HostError> {
    let memory = procfs::available_bytes().map(|bytes| {
        (bytes / kind.bytes(), format!("{} MiB of memory are available", bytes >> 20))
    });
    let bounds = kernel_bounds().into_iter().chain(group_bounds()).chain(user_bound());
    refuse(nr_processes, bounds.chain(memory))
}

fn refuse(nr_processes: u64, bounds: impl Iterator<Item = Bound>) -> Result<(), HostError> {
    match bounds.min_by_key(|(count, _)| *count) {
        Some((count, limit)) if nr_processes > count => Err(HostError::Unavailable(format!(
            "{nr_processes} processes are asked for, and there is room for {count}: {limit}. Ask \
             for fewer, or raise the limit"
        ))),
        _ => Ok(()),
    }
}

/// Limits of the whole kernel (Documentation/admin-guide/sysctl/kernel.rst: pid_max, threads-max).
fn kernel_bounds() -> Vec<Bound> {
    // The number after the `/` in /proc/loadavg counts every thread (proc(5)).
    let loadavg = read("/proc/loadavg").unwrap_or_default();
    let field = loadavg.split(' ').nth(3).and_then(|field| field.split('/').nth(1));
    let nr_now: u64 = field.and_then(|field| field.parse().ok()).unwrap_or(0);
    ["pid_max", "threads-max"]
        .into_iter()
        .filter_map(|name| {
            let max: u64 = read(format!("/proc/sys/kernel/{name}"))?.parse().ok()?;
            let text = format!("kernel.{name} is {max}, and {nr_now} threads exist");
            Some((max.saturating_sub(nr_now), text))
        })
        .collect()
}

/// Limits of the control groups of this process (`pids.max` of each, up to the root).
fn group_bounds() -> Vec<Bound> {
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let mut bounds = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            "pids" => "/sys/fs/cgroup/pids",
            _ => continue,
        };
        let path = path.trim_start_matches('/');
        for group in Path::new(path).ancestors() {
            let dir = Path::new(mount).join(group);
            let number = |name: &str| read(dir.join(name))?.parse::<u64>().ok();
            if let (Some(max), Some(now)) = (number("pids.max"), number("pids.current")) {
                let text = format!("pids.max of the control group {} is {max}", dir.display());
                bounds.push((max.saturating_sub(now), text));
            }
        }
    }
    bounds
}

/// The limit on processes of one user (RLIMIT_NPROC, setrlimit(2)). Children inherit it, and tasks
/// of a run never belong to root.
fn user_bound() -> Option<Bound> {
    let limits = read("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let max: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((max, format!("one user may have {max} processes (ulimit -u)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_is_named() {
        let bounds = || [(500, "a is 500".to_owned()), (20, "b is 20".to_owned())].into_iter();
        assert_eq!(refuse(20, bounds()), Ok(()));
        let error = refuse(21, bounds()).unwrap_err().to_string();
        assert!(
            error.contains("21 processes") && error.contains("room for 20: b is 20"),
            "{error}"
        );
        assert_eq!(refuse(u64::MAX, std::iter::empty()), Ok(()));
    }

    #[test]
    fn this_machine_has_limits_and_room_for_a_few() {
        assert!(kernel_bounds().iter().all(|(count, _)| *count > 100));
        assert_eq!(kernel_bounds().len(), 2);
        assert!(user_bound().is_none_or(|(count, _)| count > 0));
        check(2, Kind::Command).unwrap();
        assert!(check(50_000_000, Kind::Task).is_err());
    }
}
