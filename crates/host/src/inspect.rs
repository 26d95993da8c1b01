// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a running task: its control group, policy, priority and slice. Switches it to another
//! policy, as study S4's `processtest` does with its WRR class.

use crate::attr;
use crate::error::HostError;
use crate::ext;
use crate::sys::{self, RawSchedAttr};
use schedlab_model::{CpuMask, Nanos, Policy, SchedAttr};
use schedlab_workload::policy::{POLICIES, has_nice};
use std::io;

/// The properties of a task.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct TaskView {
    /// Thread id.
    pub pid: u32,
    /// Name (comm), as the kernel shortens it.
    pub name: String,
    /// Path of its group in the hierarchy with the cpu controller.
    pub group: String,
    /// Whether WRR counts it as background: a name in the group's path begins with b.
    pub is_background: bool,
    /// Policy, such as `OTHER`; a number if it has no name.
    pub policy: String,
    /// Real-time priority, 1 to 99; 0 under other policies.
    pub rt_priority: u32,
    /// Nice value; `None` under real-time policies.
    pub nice: Option<i32>,
    /// Its slice from sched_rr_get_interval(2) (ns), in whole ticks; 0: less than one, or
    /// unlimited.
    pub slice_ns: Nanos,
    /// OTHER and BATCH: the slice of the fair class (6.12 and later), ns; DEADLINE: its runtime.
    pub runtime_ns: Option<Nanos>,
    /// CPUs that it may use.
    pub cpus: String,
    /// Whether its children start under OTHER.
    pub resets_on_fork: bool,
    /// The sched_ext scheduler that schedules it, if any.
    pub scheduler: Option<String>,
}

/// A policy of this kernel.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PolicyView {
    /// Name, such as `RR`.
    pub name: &'static str,
    /// Number (SCHED_*).
    pub number: u32,
    /// Least and greatest real-time priority; `None`: the kernel does not know the policy.
    pub priorities: Option<(i32, i32)>,
    /// Attributes that go with it.
    pub takes: &'static str,
}

/// Changes of a task's attributes. `None`: no change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// The new policy.
    pub policy: Option<Policy>,
    /// The new real-time priority, with FIFO and RR.
    pub priority: Option<u8>,
    /// The new nice value, with OTHER, BATCH and EXT.
    pub nice: Option<i8>,
}

/// Every policy, with the kernel's range of priorities.
pub fn policies() -> Vec<PolicyView> {
    POLICIES
        .iter()
        .map(|&policy| PolicyView {
            name: policy.name(),
            number: policy as u32,
            priorities: sys::priority_range(policy as i32),
            takes: match policy {
                Policy::Normal | Policy::Batch => "nice -20 to 19; a slice of its own from 6.12 on",
                Policy::Idle => "nothing",
                Policy::Fifo | Policy::Rr => "priority",
                Policy::Deadline => "runtime, deadline and period: set by a workload's file",
                Policy::Ext => "nice; needs a sched_ext scheduler, else it is OTHER",
            },
        })
        .collect()
}

fn gone(pid: u32, error: &io::Error) -> HostError {
    match error.raw_os_error() {
        Some(libc::ESRCH) => HostError::Input(format!(
            "there is no task {pid}: it has ended, or it is in another pid namespace; `ps -eL` \
             lists what there is"
        )),
        _ => HostError::System(format!("task {pid}: {error}")),
    }
}

/// The group in the line of /proc/PID/cgroup with the cpu controller, or else in that of the
/// unified hierarchy.
fn group_of(text: &str) -> String {
    let mut unified = "/";
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "cpu") {
            return path.into();
        }
        if controllers.is_empty() {
            unified = path;
        }
    }
    unified.into()
}

fn is_background(group: &str) -> bool {
    group.split('/').any(|name| name.starts_with('b'))
}

/// Reads the properties of task `pid`.
///
/// # Errors
/// There is no such task, or the kernel refuses.
pub fn view(pid: u32) -> Result<TaskView, HostError> {
    let raw = sys::sched_getattr(pid).map_err(|error| gone(pid, &error))?;
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}"));
    let text = |name: &str| {
        let bytes =
            read(name).map_err(|_| gone(pid, &io::Error::from_raw_os_error(libc::ESRCH)))?;
        Ok::<String, HostError>(String::from_utf8_lossy(&bytes).trim_end().to_string())
    };
    let group = group_of(&text("cgroup").unwrap_or_default());
    let policy = POLICIES.into_iter().find(|policy| *policy as u32 == raw.policy);
    let state = ext::kernel_state().unwrap_or_default();
    let is_fair = policy.is_some_and(|policy| policy.is_fair());
    let has = policy == Some(Policy::Ext) || (is_fair && state.switch_all);
    let is_enabled = state.state == "enabled";
    let cpus = sys::sched_getaffinity(pid).unwrap_or(CpuMask::empty());
    Ok(TaskView {
        pid,
        name: text("comm")?,
        is_background: is_background(&group),
        group,
        policy: policy.map_or_else(|| raw.policy.to_string(), |policy| policy.name().into()),
        rt_priority: raw.priority,
        nice: policy.is_none_or(has_nice).then_some(raw.nice),
        slice_ns: sys::rr_interval_ns(pid).map_err(|error| gone(pid, &error))?,
        runtime_ns: Some(raw.runtime).filter(|runtime| *runtime > 0),
        cpus: cpus.to_string(),
        resets_on_fork: raw.flags & sys::RESET_ON_FORK != 0,
        scheduler: (has && is_enabled).then_some(state.ops),
    })
}

/// `raw` after `change`.
fn changed(pid: u32, raw: &RawSchedAttr, change: Change) -> Result<SchedAttr, HostError> {
    let input = |text: String| Err(HostError::Input(text));
    let old = POLICIES.into_iter().find(|policy| *policy as u32 == raw.policy);
    let Some(policy) = change.policy.or(old) else {
        return input(format!("task {pid} has policy {}, which has no name: name one", raw.policy));
    };
    let name = policy.name();
    if policy == Policy::Deadline {
        return input(format!(
            "policy DEADLINE needs a runtime and a period, which task {pid} is not given here: \
             chrt(1) sets them, or a workload's file"
        ));
    }
    if change.priority.is_some() && !policy.is_rt() {
        return input(format!("policy {name} has no priority: FIFO and RR have"));
    }
    if change.nice.is_some() && !has_nice(policy) {
        return input(format!("policy {name} has no nice value: OTHER, BATCH and EXT have"));
    }
    let kept = if old.is_some_and(Policy::is_rt) { raw.priority as u8 } else { 0 };
    let rt_priority = match (policy.is_rt(), change.priority) {
        (false, _) => 0,
        (true, Some(priority)) => priority,
        (true, None) if kept > 0 => kept,
        (true, None) => {
            return input(format!("policy {name} needs a priority from 1 to 99: add --priority N"));
        }
    };
    let nice = change.nice.unwrap_or(raw.nice.clamp(-20, 19) as i8);
    let keeps_slice = matches!(policy, Policy::Normal | Policy::Batch)
        && matches!(old, Some(Policy::Normal | Policy::Batch));
    // The kernel shows the default slice like a requested one. This process requested none, so a
    // value that differs from its own was requested.
    let default_ns = sys::sched_getattr(0).map_or(0, |own| own.runtime);
    let slice_ns = Some(raw.runtime).filter(|ns| keeps_slice && *ns > 0 && *ns != default_ns);
    Ok(SchedAttr { policy, rt_priority, nice, slice_ns, ..SchedAttr::default() })
}

/// Changes task `pid`. Returns its new properties.
///
/// # Errors
/// There is no such task, the values contradict each other, the kernel does not know the policy, or
/// this user may not.
pub fn switch(pid: u32, change: Change) -> Result<TaskView, HostError> {
    let raw = sys::sched_getattr(pid).map_err(|error| gone(pid, &error))?;
    let wanted = changed(pid, &raw, change)?;
    let mut set = RawSchedAttr::new(&wanted);
    set.flags |= raw.flags & sys::RESET_ON_FORK;
    sys::sched_setattr(pid, &set).map_err(|error| refused(pid, &wanted, &error))?;
    view(pid)
}

fn refused(pid: u32, wanted: &SchedAttr, error: &io::Error) -> HostError {
    let is_ext = wanted.policy == Policy::Ext;
    match error.raw_os_error() {
        Some(libc::ESRCH) => gone(pid, error),
        Some(libc::EINVAL) if is_ext && ext::kernel_state().is_none() => {
            HostError::Unavailable(format!(
                "task {pid} cannot have policy EXT: this kernel has no sched_ext (Linux 6.12 and \
                 later with CONFIG_SCHED_CLASS_EXT)"
            ))
        }
        Some(libc::EACCES) if is_ext => HostError::Unavailable(format!(
            "task {pid} cannot have policy EXT: the scheduler that is loaded refuses it"
        )),
        _ => HostError::Unavailable(format!("task {pid}: {}", attr::explain(wanted, error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_what_it_is() {
        let own = view(std::process::id()).unwrap();
        assert_eq!(own.pid, std::process::id());
        assert!(!own.name.is_empty() && own.group.starts_with('/'));
        assert!(!own.cpus.is_empty());
        let error = view(u32::MAX / 2).unwrap_err();
        assert!(matches!(&error, HostError::Input(_)), "{error}");
        assert!(error.to_string().contains("there is no task"), "{error}");
    }

    #[test]
    fn the_cpu_controller_decides_which_group() {
        let mixed = "12:cpuset:/a\n4:cpu,cpuacct:/bg/x:y\n0::/u\n";
        assert_eq!(group_of(mixed), "/bg/x:y");
        assert_eq!(group_of("1:name=systemd:/a\n0::/user.slice\n"), "/user.slice");
        assert_eq!(group_of("what\n"), "/");
        assert!(is_background("/bg_non_interactive"));
        assert!(is_background("/user.slice/background.slice"));
        assert!(!is_background("/user.slice/tab"));
    }

    #[test]
    fn values_that_do_not_go_together_are_refused_before_the_kernel_is_asked() {
        let raw = RawSchedAttr::new(&SchedAttr::default());
        let of = |policy, priority, nice| {
            changed(7, &raw, Change { policy, priority, nice }).map_err(|error| error.to_string())
        };
        assert!(of(Some(Policy::Rr), None, None).unwrap_err().contains("--priority"));
        assert!(of(Some(Policy::Batch), Some(3), None).unwrap_err().contains("has no priority"));
        assert!(of(Some(Policy::Fifo), Some(3), Some(1)).unwrap_err().contains("no nice value"));
        assert!(of(Some(Policy::Deadline), None, None).unwrap_err().contains("runtime"));
        let rr = of(Some(Policy::Rr), Some(3), None).unwrap();
        assert_eq!((rr.policy, rr.rt_priority), (Policy::Rr, 3));
        let nice = of(None, None, Some(5)).unwrap();
        assert_eq!((nice.policy, nice.nice), (Policy::Normal, 5));
    }

    #[test]
    fn a_child_of_ones_own_can_be_made_nicer() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let before = view(child.id()).unwrap();
        let nice = before.nice.unwrap_or(0).min(18) as i8 + 1;
        let change = Change { policy: Some(Policy::Batch), nice: Some(nice), priority: None };
        let after = switch(child.id(), change);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = after.unwrap();
        assert_eq!((after.policy.as_str(), after.nice), ("BATCH", Some(i32::from(nice))));
        let error = switch(child.id(), change).unwrap_err();
        assert!(error.to_string().contains("there is no task"), "{error}");
    }

    #[test]
    fn every_policy_is_listed() {
        let views = policies();
        assert_eq!(views.len(), POLICIES.len());
        let rr = views.iter().find(|view| view.name == "RR").unwrap();
        assert_eq!((rr.number, rr.priorities), (2, Some((1, 99))));
        let ext = views.iter().find(|view| view.name == "EXT").unwrap();
        assert_eq!(ext.number, 7);
    }
}
