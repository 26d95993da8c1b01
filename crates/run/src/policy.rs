// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of policies, and how a workload runs under another policy than its own.

use crate::place::unknown;
use crate::{LaneKind, StudyError};
use schedlab_model::{Nanos, Op, Policy, SchedAttr, Workload};

/// Default real-time priority if a study names only the policy: the least important one, so that
/// the kernel's own threads stay above the tasks.
pub const RT_PRIORITY_DEFAULT: u8 = 1;

/// Sets `policy` for every task without its own policy, and for every later change back to that
/// default. Nice values stay. Real-time policies get the priority `rt_priority`.
pub fn apply_policy(workload: &mut Workload, policy: Policy, rt_priority: u8) {
    for_each_attr(workload, |attr| {
        if attr.policy == Policy::Normal {
            attr.policy = policy;
            attr.rt_priority = if policy.is_rt() { rt_priority } else { 0 };
        }
    });
}

/// Sets `nice` for every task with the default nice value, and for every later change back to it.
pub fn apply_nice(workload: &mut Workload, nice: i8) {
    for_each_attr(workload, |attr| {
        if attr.nice == 0 {
            attr.nice = nice;
        }
    });
}

/// Gives the custom slice `slice_ns` to every task that has none, and to every later change.
pub fn apply_slice(workload: &mut Workload, slice_ns: Nanos) {
    for_each_attr(workload, |attr| {
        attr.slice_ns.get_or_insert(slice_ns);
    });
}

/// The attributes that tasks start with, and those that their programs set.
fn for_each_attr(workload: &mut Workload, apply: impl Fn(&mut SchedAttr)) {
    for task in &mut workload.tasks {
        apply(&mut task.attr);
        for op in &mut task.program.ops {
            if let Op::SetAttr(attr) = op {
                apply(attr);
            }
        }
    }
}

/// Finds a policy by its name, with or without `SCHED_`, in any case.
pub fn policy_by_name(text: &str) -> Option<Policy> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SCHED_").unwrap_or(&upper);
    let name = if name == "NORMAL" { "OTHER" } else { name };
    POLICIES.into_iter().find(|policy| policy.name() == name)
}

/// Every policy, in order of the kernel's numbers.
pub const POLICIES: [Policy; 7] = [
    Policy::Normal,
    Policy::Fifo,
    Policy::Rr,
    Policy::Batch,
    Policy::Idle,
    Policy::Deadline,
    Policy::Ext,
];

/// The policy with the same rule as a textbook scheduler: for tasks of one priority both decide
/// alike (sched(7)). `None`: no policy has its rule.
pub fn textbook_policy(scheduler: &str) -> Option<Policy> {
    match scheduler {
        "fcfs" => Some(Policy::Fifo),
        "rr" => Some(Policy::Rr),
        _ => None,
    }
}

/// A simulated scheduler as people write it everywhere: `linux-6.12`, `linux-6.12:FIFO`,
/// `linux-6.12:base_slice=3ms`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec<'t> {
    /// Name.
    pub name: &'t str,
    /// Policy of tasks that name none.
    pub policy: Option<Policy>,
    /// Tunables, as text with units.
    pub tunables: Vec<(&'t str, &'t str)>,
}

impl<'t> Spec<'t> {
    /// Splits the text at `:`, and what follows the name at commas too.
    pub fn parse(text: &'t str) -> Result<Self, StudyError> {
        let (name, more) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = Self { name: name.trim(), policy: None, tunables: Vec::new() };
        for part in more.split([',', ':']).map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
                Some(("", _)) => {
                    let found = format!("{text:?} sets a tunable without a name");
                    return Err(StudyError::new(found, SPELLING));
                }
                Some(tunable) => spec.tunables.push(tunable),
                None if spec.policy.is_some() => {
                    let found = format!("{text:?} names two policies");
                    return Err(StudyError::new(found, "give one, as in linux-6.12:FIFO"));
                }
                None => {
                    let found = named(part);
                    let helped = |error: StudyError| StudyError { help: SPELLING.into(), ..error };
                    spec.policy = Some(found.map_err(helped)?);
                }
            }
        }
        Ok(spec)
    }

    /// The tunables, and then those of `set`, which replace ones of the same name.
    pub fn tunables_with(&self, set: Vec<(String, String)>) -> Vec<(String, String)> {
        let stays = |name: &str| !set.iter().any(|(other, _)| other == name);
        let own = self.tunables.iter().filter(|(name, _)| stays(name));
        let own = own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        own.collect::<Vec<_>>().into_iter().chain(set).collect()
    }
}

/// What may follow a scheduler's name.
const SPELLING: &str =
    "after a colon comes a policy (linux-6.12:FIFO) or a tunable (rr:quantum=3ms)";

fn named(policy: &str) -> Result<Policy, StudyError> {
    let names = POLICIES.iter().map(|policy| policy.name());
    policy_by_name(policy).ok_or_else(|| unknown("policy", policy, names))
}

/// The name of an entry of a list, and its policy: `FIFO` on the host. In the vm lane an entry
/// names a kernel and a scheduler (`6.18:wrr`) or policy (`6.18:FIFO`); the lane splits it itself.
/// In the sim lane [`Spec`] also has the tunables.
pub fn scheduler_of(lane: LaneKind, text: &str) -> Result<(String, Option<Policy>), StudyError> {
    match lane {
        LaneKind::Sim => Spec::parse(text).map(|spec| (spec.name.into(), spec.policy)),
        LaneKind::Vm => Ok((text.into(), None)),
        LaneKind::Host => named(text).map(|found| (found.name().into(), Some(found))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::{TaskSpec, program::ProgramBuilder};

    #[test]
    fn an_unknown_policy_is_refused_with_the_known_ones() {
        let error = scheduler_of(LaneKind::Host, "FAIR").unwrap_err().to_string();
        assert!(error.contains("OTHER, FIFO, RR, BATCH, IDLE"), "{error}");
        assert_eq!(policy_by_name("sched_fifo"), Some(Policy::Fifo));
        assert_eq!(policy_by_name("normal"), Some(Policy::Normal));
    }

    #[test]
    fn a_scheduler_can_have_a_policy_and_tunables() {
        let spec = Spec::parse("linux-6.12:FIFO,base_slice=3ms").unwrap();
        assert_eq!((spec.name, spec.policy), ("linux-6.12", Some(Policy::Fifo)));
        assert_eq!(spec.tunables, [("base_slice", "3ms")]);
        assert_eq!(Spec::parse("linux-6.12:base_slice=3ms:FIFO").unwrap(), spec);
        assert_eq!(Spec::parse("rr").unwrap().tunables, []);
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let two = Spec::parse("x:a=1:b=2").unwrap().tunables_with(vec![set("a", "3")]);
        assert_eq!(two, [set("b", "2"), set("a", "3")]);
        for (text, found) in [
            ("rr:FFO", "did you mean `FIFO`?"),
            ("rr:FIFO:RR", "names two policies"),
            ("rr:=3ms", "tunable without a name"),
            ("rr:3ms", "a tunable (rr:quantum=3ms)"),
        ] {
            let error = Spec::parse(text).unwrap_err();
            assert!(format!("{} {}", error.text, error.help).contains(found), "{error:?}");
        }
    }

    #[test]
    fn a_tasks_own_policy_stays() {
        let task = TaskSpec::new("hog", ProgramBuilder::new().run(1_000).build());
        let mut workload = Workload::new("w", vec![task]);
        workload.tasks[0].attr.policy = Policy::Idle;
        apply_policy(&mut workload, Policy::Fifo, 5);
        assert_eq!(workload.tasks[0].attr.policy, Policy::Idle);
    }
}
