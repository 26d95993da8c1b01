// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control files that tasks write while they run.
//!
//! The launcher opens them with root's rights before it makes the tasks, which have no rights of
//! their own. A task writes a file itself, so that the kernel makes the change in the task's time
//! and on its CPU. The groups are removed after the run, so nothing is restored.

use super::CpuController;
use schedlab_model::workload::CpuMaxWrite;
use schedlab_model::{CgroupId, Change, CpuMax, Workload};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The open files of one group.
#[derive(Debug, Default)]
struct GroupFiles {
    /// cpu.weight, or cpu.shares.
    weight: Option<File>,
    /// cpu.max; or under v1 the period and the quota, in this order.
    limit: Vec<File>,
    /// The burst, if the group ever has one.
    burst: Option<File>,
    /// cpuset.cpus.
    cpus: Option<File>,
}

/// The open files of all groups that tasks change.
#[derive(Debug, Default)]
pub(super) struct ChangeFiles {
    is_v1: bool,
    groups: BTreeMap<CgroupId, GroupFiles>,
}

impl ChangeFiles {
    /// Opens what the changes of `workload` write. `dirs`: directories of the groups.
    pub fn open(
        controller: &CpuController,
        dirs: &[PathBuf],
        workload: &Workload,
    ) -> Result<Self, String> {
        let is_v1 = matches!(controller, CpuController::V1(_));
        let mut groups: BTreeMap<CgroupId, GroupFiles> = BTreeMap::new();
        for change in workload.changes() {
            let group = change.group();
            let Some(dir) = dirs.get(group.index()) else { continue };
            let files = groups.entry(group).or_default();
            match change {
                Change::Weight { .. } if files.weight.is_none() => {
                    let name = if is_v1 { "cpu.shares" } else { "cpu.weight" };
                    files.weight = Some(open(dir, name)?);
                }
                Change::CpuMax { .. } if files.limit.is_empty() => {
                    let names: &[&str] = match is_v1 {
                        true => &["cpu.cfs_period_us", "cpu.cfs_quota_us"],
                        false => &["cpu.max"],
                    };
                    files.limit =
                        names.iter().map(|name| open(dir, name)).collect::<Result<_, _>>()?;
                    if has_burst(workload, group) {
                        let name = if is_v1 { "cpu.cfs_burst_us" } else { "cpu.max.burst" };
                        files.burst = Some(open(dir, name)?);
                    }
                }
                Change::Cpus { .. } if files.cpus.is_none() => {
                    files.cpus = Some(open(dir, "cpuset.cpus")?);
                }
                _ => {}
            }
        }
        Ok(Self { is_v1, groups })
    }

    /// Makes a change.
    pub fn write(&self, change: &Change) -> io::Result<()> {
        let Some(files) = self.groups.get(&change.group()) else { return Ok(()) };
        match change {
            Change::Weight { weight, .. } => {
                let text = if self.is_v1 { super::shares(*weight) } else { u64::from(*weight) };
                files.weight.as_ref().map_or(Ok(()), |file| put(file, &text.to_string()))
            }
            Change::CpuMax { cpu_max, .. } => {
                let burst_us = files.burst.as_ref().map_or(Ok(0), read_number)?;
                // The order of the writes depends on the burst only.
                let old = CpuMax { quota_ns: 0, period_ns: 0, burst_ns: burst_us * 1_000 };
                CpuMax::writes(Some(old), *cpu_max).try_for_each(|write| files.limit(&write))
            }
            Change::Cpus { cpus, .. } => {
                // The lane names the CPUs of the run instead of none: a group with tasks does not
                // take an empty list.
                match (&files.cpus, cpus) {
                    (Some(file), Some(cpus)) => put(file, &cpus.to_string()),
                    _ => Ok(()),
                }
            }
        }
    }
}

impl GroupFiles {
    fn limit(&self, write: &CpuMaxWrite) -> io::Result<()> {
        if write.is_burst {
            let text = (write.burst_ns / 1_000).to_string();
            return self.burst.as_ref().map_or(Ok(()), |file| put(file, &text));
        }
        let period = (write.period_ns / 1_000).to_string();
        let quota = write.quota_ns.map(|ns| (ns / 1_000).to_string());
        match &self.limit[..] {
            [both] => put(both, &format!("{} {period}", quota.as_deref().unwrap_or("max"))),
            [period_file, quota_file] => {
                put(period_file, &period)?;
                put(quota_file, quota.as_deref().unwrap_or("-1"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether `group` has a burst at some time.
fn has_burst(workload: &Workload, group: CgroupId) -> bool {
    let at_first = workload.cgroups.get(group.index()).and_then(|spec| spec.cpu_max);
    let later = workload.changes().filter_map(|change| match change {
        Change::CpuMax { group: of, cpu_max } if *of == group => *cpu_max,
        _ => None,
    });
    at_first.into_iter().chain(later).any(|max| max.burst_ns > 0)
}

fn open(dir: &Path, name: &str) -> Result<File, String> {
    let path = dir.join(name);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|error| format!("{}: {error}{}", path.display(), super::advice(name, &error)))
}

fn put(file: &File, text: &str) -> io::Result<()> {
    file.write_at(text.as_bytes(), 0).map(drop)
}

fn read_number(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 24];
    let len = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..len]);
    Ok(text.trim().parse().unwrap_or(0))
}
