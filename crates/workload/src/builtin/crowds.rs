// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many jobs: with random arrivals, or in two groups.
//!
//! `queue` is the workload of queueing theory (M/G/1 and M/G/m): Kleinrock, Queueing Systems,
//! volume 2, chapter 4. `two_groups` is that of study S4's group scheduling: a user with one
//! process and a user with many.

use super::args::{Args, BuiltinError};
use super::blocks::hog_program;
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{Amount, CgroupId, CgroupSpec, Op, SchedAttr, TaskSpec, Workload};

/// `n` jobs whose CPU times have the mean `work`. They arrive at exponentially distributed
/// intervals, such that `servers` CPUs are busy for `load` percent of the time. With `load=0` all
/// arrive at once.
pub(super) fn queue(args: &Args) -> Result<Workload, BuiltinError> {
    let mean = args.number("work");
    let work = match args.word("service") {
        "constant" => Amount::Constant(mean),
        "uniform" => Amount::Uniform { low: 1, high: 2 * mean },
        _ => Amount::Exponential { mean },
    };
    let program = ProgramBuilder::new().op(Op::Run(work)).build();
    let mut job = TaskSpec::new("job", program);
    job.attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    job.instances = args.count("n");
    let load = args.number("load");
    if load > 0 {
        let per_server = u128::from(mean) * 100 / u128::from(load);
        let distance = (per_server / u128::from(args.number("servers"))).max(1);
        let distance = u64::try_from(distance).map_err(|_| {
            args.conflict("the jobs would arrive more than 584 years apart: give a shorter work")
        })?;
        job.interarrival_ns = Some(Amount::Exponential { mean: distance });
    }
    Ok(Workload::new("queue", vec![job]))
}

/// `a` hogs in one control group and `b` in another; or all in the root group.
pub(super) fn two_groups(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let is_background = args.word("b_group") == "background";
    // Study S4 takes a group for the background if the second character of its path is a b.
    let paths = if is_background { ["/fore_a", "/bg_b"] } else { ["/fore_a", "/fore_b"] };
    let mut workload = Workload::new("two_groups", Vec::new());
    let has_groups = args.word("groups") == "yes";
    for (index, (name, path)) in ["a", "b"].into_iter().zip(paths).enumerate() {
        let mut task = TaskSpec::new(name, hog_program(args.number_or_none("work")));
        task.attr = attr;
        task.instances = args.count(name);
        if has_groups {
            workload.cgroups.push(CgroupSpec::new(path, CgroupId(0), 100));
            task.attr.cgroup = CgroupId(index as u32 + 1);
        }
        workload.tasks.push(task);
    }
    workload.duration_ns = Some(args.number("until"));
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use crate::builtin;
    use schedlab_model::{Amount, CgroupId};

    #[test]
    fn jobs_arrive_as_often_as_the_load_wants() {
        let with = |load| builtin("queue", &[("load", load), ("work", "10ms")]).unwrap();
        let mean = |ns| Some(Amount::Exponential { mean: ns });
        assert_eq!(with("50").tasks[0].interarrival_ns, mean(20_000_000));
        assert_eq!(with("0").tasks[0].interarrival_ns, None);
        let two = builtin("queue", &[("load", "80"), ("servers", "2"), ("work", "8ms")]).unwrap();
        assert_eq!(two.tasks[0].interarrival_ns, mean(5_000_000));
    }

    #[test]
    fn groups_are_told_apart_by_path() {
        let workload = builtin("two_groups", &[("b", "49"), ("b_group", "background")]).unwrap();
        assert_eq!(workload.cgroups[2].path, "/bg_b");
        assert_eq!(workload.tasks[1].instances, 49);
        assert_eq!(workload.tasks[1].attr.cgroup, CgroupId(2));
        let flat = builtin("two_groups", &[("groups", "no")]).unwrap();
        assert_eq!((flat.cgroups.len(), flat.tasks[1].attr.cgroup), (1, CgroupId(0)));
    }
}
