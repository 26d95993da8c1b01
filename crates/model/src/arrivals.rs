// SPDX-License-Identifier: MIT OR Apache-2.0
//! Release times of the tasks that the launcher starts. They are drawn once, here, so that every
//! lane releases the same tasks at the same times, with the same numbers and names.

use crate::random::{Purpose, Stream};
use crate::{Nanos, Workload};

/// One task that the launcher releases.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Arrival {
    /// Index of its description in [`crate::Workload::tasks`].
    pub spec: u32,
    /// Which instance of the description, from 0.
    pub instance: u32,
    /// Release time (ns since the start of the run).
    pub release_ns: Nanos,
    /// Its name: the description's, with `-instance` when there is more than one.
    pub name: String,
}

impl Workload {
    /// Returns every task that the launcher releases, in order of release time. Tasks with equal
    /// times are in order of description, then of instance. Each description draws from its own
    /// stream ([`Purpose::Arrival`]).
    ///
    /// Without interarrival times each instance draws its own release time. With them the first
    /// instance draws its release time, and each later one the time since the previous one.
    pub fn arrivals(&self, seed: u64) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let mut stream = Stream::new(seed, Purpose::Arrival, index as u64);
            let mut before: Nanos = 0;
            for instance in 0..task.instances {
                before = match task.interarrival_ns {
                    Some(distance) if instance > 0 => {
                        before.saturating_add(distance.draw(&mut stream))
                    }
                    _ => task.release_ns.draw(&mut stream),
                };
                let name = match task.instances {
                    1 => task.name.clone(),
                    _ => format!("{}-{instance}", task.name),
                };
                arrivals.push(Arrival { spec: index as u32, instance, release_ns: before, name });
            }
        }
        arrivals.sort_by_key(|arrival| arrival.release_ns);
        arrivals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramBuilder;
    use crate::{Amount, TaskSpec};

    #[test]
    fn arrivals_are_in_order_and_a_new_description_moves_no_other() {
        let mut poisson = TaskSpec::new("job", ProgramBuilder::new().run(1).build());
        poisson.instances = 50;
        poisson.release_ns = Amount::Constant(7);
        poisson.interarrival_ns = Some(Amount::Exponential { mean: 1_000 });
        let mut late = TaskSpec::new("late", ProgramBuilder::new().run(1).build());
        late.release_ns = Amount::Uniform { low: 3, high: 900 };
        let one = Workload::new("w", vec![poisson.clone()]).arrivals(9);
        let two = Workload::new("w", vec![poisson, late]).arrivals(9);
        assert_eq!((one[0].release_ns, one[0].name.as_str()), (7, "job-0"));
        assert!(two.is_sorted_by_key(|arrival| arrival.release_ns));
        let jobs: Vec<_> = two.iter().filter(|arrival| arrival.spec == 0).cloned().collect();
        assert_eq!(jobs, one);
        assert_eq!(two.iter().find(|arrival| arrival.spec == 1).unwrap().name, "late");
    }
}
