// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs of control groups (cpuset.cpus).

use super::{CgroupSpec, Workload};
use crate::{CpuMask, SchedAttr};

/// The CPUs that the tasks of each group may use (cpuset.cpus.effective): those of `own`, within
/// those of the group above. A group of which nothing is left gets the group's above. `own` are the
/// CPUs that groups name.
pub fn effective_cpus(
    groups: &[CgroupSpec],
    own: impl Fn(usize) -> Option<CpuMask>,
    all: CpuMask,
) -> Vec<CpuMask> {
    let mut effective = Vec::with_capacity(groups.len());
    effective.push(all);
    for (id, spec) in groups.iter().enumerate().skip(1) {
        let above: CpuMask = effective[spec.parent.index()];
        let within = own(id).map_or(above, |own| own.and(&above));
        effective.push(if within.is_empty() { above } else { within });
    }
    effective
}

impl Workload {
    /// Whether a group has CPUs of its own at the start.
    pub fn has_cpusets(&self) -> bool {
        self.cgroups.iter().any(|group| group.cpus.is_some())
    }

    /// Checks the CPUs with which groups start.
    pub(super) fn check_cpusets(&self, nr_cpus: u32) -> Result<(), String> {
        if !self.has_cpusets() {
            return Ok(());
        }
        let all = CpuMask::first(nr_cpus);
        for (index, group) in self.cgroups.iter().enumerate() {
            let Some(cpus) = group.cpus else { continue };
            if index == 0 {
                return Err("the root group has no cpuset.cpus: name a group below it".into());
            }
            if cpus.and(&all).is_empty() {
                return Err(format!(
                    "group {:?}: its CPUs are {cpus}, but the machine has CPUs 0-{}: name at least \
                     one of them",
                    group.path,
                    nr_cpus.saturating_sub(1)
                ));
            }
        }
        let effective = effective_cpus(&self.cgroups, |group| self.cgroups[group].cpus, all);
        self.tasks.iter().try_for_each(|task| {
            self.check_within(&task.attr, &effective[task.attr.cgroup.index()])
                .map_err(|why| format!("task {:?}: {why}", task.name))
        })
    }

    /// sched_setaffinity(2) refuses CPUs of which the group has none.
    fn check_within(&self, attr: &SchedAttr, of_group: &CpuMask) -> Result<(), String> {
        match attr.affinity {
            Some(own) if own.and(of_group).is_empty() => Err(format!(
                "its affinity is CPU {own}, but its group {:?} has CPU {of_group}: name at least \
                 one of these",
                self.cgroups[attr.cgroup.index()].path
            )),
            _ => Ok(()),
        }
    }
}

/// The bytes of a group without CPUs of its own are those that they were before groups had any:
/// stored runs are known by their sums. So the mark of the limit also tells of the CPUs.
#[cfg(feature = "borsh")]
mod bytes {
    use super::CgroupSpec;
    use crate::CgroupId;
    use borsh::io::{Error, ErrorKind, Read, Result, Write};
    use borsh::{BorshDeserialize, BorshSerialize};

    const HAS_LIMIT: u8 = 1;
    const HAS_CPUS: u8 = 2;

    impl BorshSerialize for CgroupSpec {
        fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
            let Self { path, parent, weight, weight_nice, cpu_max, cpus } = self;
            (path, parent, weight, weight_nice).serialize(writer)?;
            let limit = if cpu_max.is_some() { HAS_LIMIT } else { 0 };
            let mask = if cpus.is_some() { HAS_CPUS } else { 0 };
            (limit | mask).serialize(writer)?;
            if let Some(cpu_max) = cpu_max {
                cpu_max.serialize(writer)?;
            }
            cpus.map_or(Ok(()), |cpus| cpus.serialize(writer))
        }
    }

    impl BorshDeserialize for CgroupSpec {
        fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Self> {
            let path = String::deserialize_reader(reader)?;
            let parent = CgroupId::deserialize_reader(reader)?;
            let weight = u32::deserialize_reader(reader)?;
            let weight_nice = Option::deserialize_reader(reader)?;
            let mark = u8::deserialize_reader(reader)?;
            if mark & !(HAS_LIMIT | HAS_CPUS) != 0 {
                return Err(Error::new(ErrorKind::InvalidData, format!("mark {mark} of a group")));
            }
            let cpu_max = match mark & HAS_LIMIT {
                0 => None,
                _ => Some(BorshDeserialize::deserialize_reader(reader)?),
            };
            let cpus = match mark & HAS_CPUS {
                0 => None,
                _ => Some(BorshDeserialize::deserialize_reader(reader)?),
            };
            Ok(Self { path, parent, weight, weight_nice, cpu_max, cpus })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ROOT_CGROUP;
    use crate::{CgroupId, CpuId, TaskSpec};

    fn only(cpu: u32) -> CpuMask {
        CpuMask::only(CpuId(cpu))
    }

    fn groups(cpus: [Option<CpuMask>; 2]) -> Vec<CgroupSpec> {
        let [a, b] = cpus;
        vec![
            CgroupSpec::root(),
            CgroupSpec { cpus: a, ..CgroupSpec::new("/a", ROOT_CGROUP, 100) },
            CgroupSpec { cpus: b, ..CgroupSpec::new("/a/b", CgroupId(1), 100) },
        ]
    }

    #[test]
    fn a_group_has_what_the_groups_above_leave_it() {
        let of = |cpus| {
            let groups = groups(cpus);
            effective_cpus(&groups, |group| groups[group].cpus, CpuMask::first(4))
        };
        let all = CpuMask::first(4);
        assert_eq!(of([Some(only(1)), None]), [all, only(1), only(1)]);
        assert_eq!(of([None, Some(only(2))]), [all, all, only(2)]);
        assert_eq!(of([Some(only(1)), Some(only(2))]), [all, only(1), only(1)]);
    }

    #[test]
    fn impossible_cpus_are_refused() {
        let error = |cpus, affinity| {
            let mut task = TaskSpec::new("t", Default::default());
            task.attr = SchedAttr { affinity, cgroup: CgroupId(1), ..SchedAttr::default() };
            let mut workload = Workload::new("w", vec![task]);
            workload.cgroups = groups([cpus, None]);
            workload.check(2).map_err(|error| error.to_string())
        };
        assert_eq!(error(Some(only(1)), None), Ok(()));
        assert!(error(Some(only(7)), None).unwrap_err().contains("machine has CPUs 0-1"));
        let apart = error(Some(only(1)), Some(only(0))).unwrap_err();
        assert!(apart.contains("affinity is CPU 0, but its group \"/a\" has CPU 1"), "{apart}");
    }

    #[cfg(feature = "borsh")]
    #[test]
    fn a_group_comes_back_as_it_went() {
        for cpus in [[None, None], [Some(only(1)), Some(only(3))]] {
            for mut group in groups(cpus) {
                for cpu_max in
                    [None, Some(super::super::CpuMax { quota_ns: 1, period_ns: 2, burst_ns: 3 })]
                {
                    group.cpu_max = cpu_max;
                    let bytes = borsh::to_vec(&group).unwrap();
                    assert_eq!(borsh::from_slice::<CgroupSpec>(&bytes).unwrap(), group);
                }
            }
        }
    }
}
