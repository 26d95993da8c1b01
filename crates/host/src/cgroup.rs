// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of a run. They are created below the run's own group and removed after it. Where
//! nobody else uses the machine, the tasks outside of groups stay in the root group, as in the
//! model, if that has no limit, and the run has no group of its own.
//!
//! The hierarchy with the cpu controller is used.
//!
//! - v1: the weight becomes cpu.shares (1024 for weight 100). Groups with real-time tasks get a
//!   part of the real-time bandwidth if the kernel has RT_GROUP_SCHED. cpu.max becomes
//!   cpu.cfs_quota_us and cpu.cfs_period_us, cpu.max.burst cpu.cfs_burst_us.
//! - v2: the run's group is a threaded domain, so that tasks and groups can compete in it as in the
//!   model. This needs root, because the cpu controller must be enabled from the root downwards (it
//!   is disabled again after the run).
//!
//! Documentation: Documentation/admin-guide/cgroup-v2.rst,
//! Documentation/scheduler/sched-rt-group.rst.

mod changes;

use changes::ChangeFiles;
use schedlab_model::{CgroupId, CgroupSpec, Change, CpuMax, Workload};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The hierarchy with the cpu controller, and its mount point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CpuController {
    /// cgroup v1.
    V1(PathBuf),
    /// cgroup v2.
    V2(PathBuf),
}

impl CpuController {
    /// The controller of this machine, if it is in a mounted hierarchy.
    pub fn detect() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        find_controller(&mounts, |root| {
            fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default()
        })
    }

    /// Mount point.
    pub fn root(&self) -> &Path {
        match self {
            Self::V1(root) | Self::V2(root) => root,
        }
    }

    /// `v1` or `v2`.
    pub fn version(&self) -> &'static str {
        match self {
            Self::V1(_) => "v1",
            Self::V2(_) => "v2",
        }
    }
}

fn find_controller(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<CpuController> {
    let mut found = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(at), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let root = PathBuf::from(at);
        if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
            found = Some(CpuController::V1(root));
        } else if kind == "cgroup2"
            && controllers(&root).split_whitespace().any(|name| name == "cpu")
        {
            found = Some(CpuController::V2(root));
        }
    }
    found
}

/// The groups of one run. A drop does not remove them; [`Groups::remove`] does, after all tasks
/// have left.
#[derive(Debug, Default)]
pub struct Groups {
    /// Directories in order of creation; index 0 is the run's own group. Empty: no groups.
    dirs: Vec<PathBuf>,
    /// Files through which tasks join each group, opened with root's rights.
    joins: Vec<File>,
    /// Files through which a task joins each group itself.
    own_joins: Vec<File>,
    /// Control files that tasks write.
    changes: ChangeFiles,
    /// `cgroup.subtree_control` files in which a controller was enabled, and its name.
    switched_on: Vec<(PathBuf, &'static str)>,
    /// Controllers that the groups need.
    controllers: &'static [&'static str],
    /// The first directory is the machine's root group, which stays.
    is_in_root: bool,
}

/// What the groups of a run need, in addition to their weights and limits.
#[derive(Debug, Default)]
pub struct GroupNeeds {
    /// Whether each group will hold real-time tasks.
    pub has_rt: Vec<bool>,
    /// Whether groups have CPUs of their own at some time.
    pub has_cpusets: bool,
    /// Whether the machine's root group may be that of the run: nobody else uses the machine, and
    /// no task changes that group.
    pub may_use_root: bool,
}

/// Prefix of the name of a run's own group.
pub const GROUP_PREFIX: &str = "schedlab-";

impl Groups {
    /// Makes the groups of `specs`. Makes none if there is only the root group, without a limit and
    /// with the default weight. `self` keeps a list of the groups made, so that they can be removed
    /// even after a failure.
    pub fn create(
        &mut self,
        controller: Option<&CpuController>,
        specs: &[CgroupSpec],
        needs: &GroupNeeds,
    ) -> Result<(), String> {
        let root = CgroupSpec::root();
        let is_plain = |spec: &CgroupSpec| spec.cpu_max.is_none() && spec.weight == root.weight;
        if specs.len() <= 1 && specs.iter().all(is_plain) {
            return Ok(());
        }
        let Some(controller) = controller else {
            return Err("control groups: no mounted cgroup hierarchy has the cpu controller".into());
        };
        self.controllers = if needs.has_cpusets { &["cpu", "cpuset"] } else { &["cpu"] };
        if needs.has_cpusets && matches!(controller, CpuController::V1(_)) {
            return Err("control groups: a group's `cpus` need cgroup v2, and the cpu \
                        controller of this machine is in a hierarchy of v1: use the lane vm, or \
                        boot with systemd.unified_cgroup_hierarchy=1"
                .into());
        }
        remove_stale(controller);
        let is_v2 = matches!(controller, CpuController::V2(_));
        let is_free = is_plain(&specs[0]) && specs[0].cpus.is_none();
        self.is_in_root = needs.may_use_root && is_v2 && is_free;
        let top = match self.is_in_root {
            true => controller.root().to_owned(),
            false => controller.root().join(format!("{GROUP_PREFIX}{}", std::process::id())),
        };
        if let CpuController::V2(root) = controller {
            self.switch_on(root)?;
        }
        for (index, spec) in specs.iter().enumerate() {
            let dir = match index {
                0 => top.clone(),
                _ => self.dirs[spec.parent.index()].join(dir_name(index, &spec.path)),
            };
            let context =
                |error: io::Error| format!("group {:?} as {}: {error}", spec.path, dir.display());
            if index > 0 || !self.is_in_root {
                fs::create_dir(&dir).map_err(context)?;
            }
            self.dirs.push(dir.clone());
            let join = match controller {
                CpuController::V1(_) => {
                    let shares = shares(spec.weight).to_string();
                    write(&dir.join("cpu.shares"), &shares).map_err(context)?;
                    dir.join("cgroup.procs")
                }
                CpuController::V2(_) => self.configure_v2(index, spec, &dir)?,
            };
            if let Some(cpu_max) = spec.cpu_max {
                limit(controller, &dir, cpu_max)
                    .map_err(|why| format!("group {:?} as {}: {why}", spec.path, dir.display()))?;
            }
            let open = |path| OpenOptions::new().write(true).open(path).map_err(context);
            self.joins.push(open(join)?);
            self.own_joins.push(open(dir.join(match controller {
                CpuController::V1(_) => "tasks",
                CpuController::V2(_) => "cgroup.threads",
            }))?);
        }
        if let CpuController::V1(root) = controller {
            self.grant_rt(root, specs, &needs.has_rt)?;
        }
        Ok(())
    }

    fn configure_v2(
        &mut self,
        index: usize,
        spec: &CgroupSpec,
        dir: &Path,
    ) -> Result<PathBuf, String> {
        let context =
            |error: io::Error| format!("group {:?} as {}: {error}", spec.path, dir.display());
        if index > 0 {
            write(&dir.join("cgroup.type"), "threaded").map_err(context)?;
            self.switch_on(&self.dirs[spec.parent.index()].clone())?;
        }
        if index > 0 || !self.is_in_root {
            write(&dir.join("cpu.weight"), &spec.weight.to_string()).map_err(context)?;
        }
        if let Some(cpus) = spec.cpus {
            let path = dir.join("cpuset.cpus");
            write(&path, &cpus.to_string()).map_err(|error| {
                let advice = advice("cpuset.cpus", &error);
                format!("group {:?} as {}: {error}{advice}", spec.path, path.display())
            })?;
        }
        Ok(dir.join(if index == 0 { "cgroup.procs" } else { "cgroup.threads" }))
    }

    /// Enables the controllers for the children of `dir`, where they are not.
    fn switch_on(&mut self, dir: &Path) -> Result<(), String> {
        let path = dir.join("cgroup.subtree_control");
        let context = |error: io::Error| format!("{}: {error}", path.display());
        let now = fs::read_to_string(&path).map_err(context)?;
        for wanted in self.controllers.iter().copied() {
            if !now.split_whitespace().any(|name| name == wanted) {
                write(&path, &format!("+{wanted}")).map_err(|error| {
                    let advice = match error.raw_os_error() {
                        Some(libc::EINVAL | libc::ENOENT) => {
                            ": the hierarchy of cgroup v2 does not have this controller"
                        }
                        _ => "",
                    };
                    format!("enabling {wanted:?} in {}: {error}{advice}", path.display())
                })?;
                self.switched_on.push((path.clone(), wanted));
            }
        }
        Ok(())
    }

    /// RT_GROUP_SCHED: a new v1 group has no real-time bandwidth. The groups that need it share
    /// 9/10 of the root's.
    fn grant_rt(&self, root: &Path, specs: &[CgroupSpec], has_rt: &[bool]) -> Result<(), String> {
        let needy = has_rt.iter().filter(|has| **has).count() as i64;
        let Ok(total) = fs::read_to_string(root.join("cpu.rt_runtime_us")) else { return Ok(()) };
        let total: i64 = total.trim().parse().unwrap_or(0);
        let period = fs::read_to_string(root.join("cpu.rt_period_us")).unwrap_or_default();
        let period: i64 = period.trim().parse().unwrap_or(1_000_000);
        if needy == 0 || total == 0 {
            return Ok(());
        }
        let available = if total < 0 { period } else { total } * 9 / 10;
        let share = available / needy;
        // A group must have at least as much as its children together.
        let mut need: Vec<i64> = has_rt.iter().map(|has| i64::from(*has) * share).collect();
        for index in (1..specs.len()).rev() {
            need[specs[index].parent.index()] += need[index];
        }
        for (dir, need) in self.dirs.iter().zip(&need).filter(|(_, need)| **need > 0) {
            let path = dir.join("cpu.rt_runtime_us");
            write_when_free(&path, &need.to_string())
                .map_err(|error| format!("real-time bandwidth {}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Sets the limit of a group again: it then has all of its quota, and its queues nothing more.
    /// With another period, the present one still ends when it was to end.
    pub fn limit(&self, group: CgroupId, cpu_max: CpuMax) -> Result<(), String> {
        match CpuController::detect().as_ref().zip(self.dirs.get(group.index())) {
            Some((controller, dir)) => limit(controller, dir, cpu_max),
            None => Ok(()),
        }
    }

    /// The groups of the run, parents first; the root group alone if it has none of its own.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = CgroupId> + use<> {
        (0..self.joins.len().max(1) as u32).map(CgroupId)
    }

    /// Moves `pid` to a group; does nothing if the run has no groups.
    pub fn join(&self, pid: u32, group: CgroupId) -> io::Result<()> {
        match self.joins.first().zip(self.joins.get(group.index())) {
            // v2 lets a process into a threaded group only from within the threaded domain.
            Some((mut top, mut join)) => {
                top.write_all(pid.to_string().as_bytes())?;
                if group.index() > 0 {
                    join.write_all(pid.to_string().as_bytes())?;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Moves the calling task to a group of its run. It moves as a thread: for a process, the
    /// kernel stops all forks and exits, and the caller sleeps for some ticks (synchronize_rcu).
    pub fn join_self(&self, group: CgroupId) -> io::Result<()> {
        match self.own_joins.get(group.index()) {
            Some(mut join) => join.write_all(b"0"),
            None => Ok(()),
        }
    }

    /// Opens the files that tasks of `workload` write. The groups exist.
    pub fn open_changes(
        &mut self,
        controller: Option<&CpuController>,
        workload: &Workload,
    ) -> Result<(), String> {
        if let Some(controller) = controller {
            self.changes = ChangeFiles::open(controller, &self.dirs, workload)?;
        }
        Ok(())
    }

    /// Makes a change, as the calling task.
    pub fn change(&self, change: &Change) -> io::Result<()> {
        self.changes.write(change)
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.dirs.is_empty()
    }

    /// Removes the groups and disables what was enabled. All tasks must have left.
    pub fn remove(&mut self) {
        self.joins.clear();
        self.own_joins.clear();
        self.changes = ChangeFiles::default();
        for dir in self.dirs.drain(..).skip(usize::from(self.is_in_root)).rev() {
            remove_dir(&dir);
        }
        for (path, name) in self.switched_on.drain(..).rev() {
            // Fails if the group no longer exists, or another user of the controller exists by now.
            let _ = write(&path, &format!("-{name}"));
        }
    }
}

/// Sets cpu.max and cpu.max.burst; the kernel counts in whole us.
fn limit(controller: &CpuController, dir: &Path, cpu_max: CpuMax) -> Result<(), String> {
    let (quota_us, period_us) = (cpu_max.quota_ns / 1000, cpu_max.period_ns / 1000);
    let mut settings = match controller {
        CpuController::V1(_) => vec![
            ("cpu.cfs_period_us", period_us.to_string()),
            ("cpu.cfs_quota_us", quota_us.to_string()),
        ],
        CpuController::V2(_) => vec![("cpu.max", format!("{quota_us} {period_us}"))],
    };
    if cpu_max.burst_ns > 0 {
        let file = match controller {
            CpuController::V1(_) => "cpu.cfs_burst_us",
            CpuController::V2(_) => "cpu.max.burst",
        };
        settings.push((file, (cpu_max.burst_ns / 1000).to_string()));
    }
    for (file, value) in settings {
        write(&dir.join(file), &value).map_err(|error| {
            let advice = match error.raw_os_error() {
                Some(libc::EINVAL) => ": a group may not have more than its parent has",
                _ => advice(file, &error),
            };
            format!("{file} = {value}: {error}{advice}")
        })?;
    }
    Ok(())
}

/// What to add to `error`, which came with control file `file`.
fn advice(file: &str, error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT) if file.contains("burst") => {
            ": this kernel has no CONFIG_CFS_BANDWIDTH or is older than 5.14"
        }
        Some(libc::ENOENT) if file.starts_with("cpu.max") || file.contains("cfs") => {
            ": this kernel has no CONFIG_CFS_BANDWIDTH"
        }
        _ => "",
    }
}

/// cpu.shares of v1 for a cpu.weight.
fn shares(weight: u32) -> u64 {
    (u64::from(weight) * 1024 / 100).max(2)
}

/// Writes a file, and retries for a while. The bandwidth of removed groups is released later (RCU,
/// unreaped tasks); until then the kernel returns EINVAL.
fn write_when_free(path: &Path, value: &str) -> io::Result<()> {
    for _ in 0..300 {
        match write(path, value) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            result => return result,
        }
    }
    write(path, value)
}

/// Removes a group's directory. It can be busy shortly after its last task was reaped.
fn remove_dir(dir: &Path) {
    for _ in 0..500 {
        match fs::remove_dir(dir) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            _ => return,
        }
    }
}

/// Removes the groups of runs whose launcher no longer exists, as after a kill -9 of launcher and
/// caller together.
pub fn remove_stale(controller: &CpuController) {
    let Ok(entries) = fs::read_dir(controller.root()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(GROUP_PREFIX)?.parse().ok());
        if pid.is_some_and(|pid: u32| !crate::sys::exists(pid)) {
            remove_tree(&entry.path());
        }
    }
}

fn remove_tree(dir: &Path) {
    if let Ok(entries) = fs::read_dir(dir) {
        for entry in entries.flatten().filter(|entry| entry.path().is_dir()) {
            remove_tree(&entry.path());
        }
    }
    remove_dir(dir);
}

/// A directory name for a group's path. It begins like the group's name, for schedulers that use it
/// (a b means the background in study S4). Its number makes it unique.
fn dir_name(index: usize, path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or("");
    let clean: String = last
        .chars()
        .take(40)
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' })
        .collect();
    format!("{clean}-{index}")
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_with_the_cpu_controller_is_found() {
        let v1 = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                  cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = find_controller(v1, |_| "hugetlb".into());
        assert_eq!(found, Some(CpuController::V1("/sys/fs/cgroup/cpu,cpuacct".into())));
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        let found = find_controller(v2, |_| "cpuset cpu io".into());
        assert_eq!(found, Some(CpuController::V2("/sys/fs/cgroup".into())));
        assert_eq!(find_controller("garbage\n\n", |_| String::new()), None);
        assert_eq!(find_controller("c /x cgroup rw,cpuset 0 0", |_| String::new()), None);
    }

    #[test]
    fn a_path_cannot_leave_the_runs_group() {
        assert_eq!(dir_name(3, "/a/../../etc"), "etc-3");
        assert_eq!(dir_name(1, ".."), "---1");
        assert_eq!(dir_name(2, "/web server"), "web-server-2");
    }
}
