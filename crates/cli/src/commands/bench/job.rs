// SPDX-License-Identifier: MIT OR Apache-2.0
//! The jobs of benchmarks/jobs.json, which is compiled into the program.

use crate::error::{CliError, CliResult, Exit};
use schedlab_model::{Nanos, Workload};
use schedlab_workload::units;
use serde::Deserialize;
use std::collections::BTreeMap;

const JOBS: &str = include_str!("../../../../../benchmarks/jobs.json");

/// A job as written in its file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    /// Description, in one sentence.
    text: String,
    cpus: u32,
    /// Simulated time.
    until: String,
    /// Workload in rt-app's format.
    workload: serde_json::Value,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name: J1, J8, P8, S1.
    pub name: String,
    /// Description, in one sentence.
    pub text: String,
    /// Number of CPUs of the modelled machine, unless an option changes it.
    pub nr_cpus: u32,
    /// Simulated time in ns, unless an option changes it.
    pub until_ns: Nanos,
    workload: String,
}

/// All jobs, by name.
pub fn all() -> Vec<Job> {
    let jobs: BTreeMap<String, Definition> =
        serde_json::from_str(JOBS).expect("benchmarks/jobs.json was checked by a test");
    let job = |(name, found): (String, Definition)| Job {
        name,
        text: found.text,
        nr_cpus: found.cpus,
        until_ns: units::parse_duration(&found.until)
            .expect("benchmarks/jobs.json was checked by a test"),
        workload: found.workload.to_string(),
    };
    jobs.into_iter().map(job).collect()
}

impl Job {
    /// Its tasks on a machine of `nr_cpus` CPUs. `nr_tasks` replaces the number of tasks in the
    /// file.
    pub fn workload(&self, nr_cpus: u32, nr_tasks: Option<u32>) -> CliResult<Workload> {
        let read = schedlab_workload::read_rtapp(&self.name, &self.workload, nr_cpus)
            .map_err(|error| CliError::Report { exit: Exit::Usage, diagnostic: error })?;
        let mut workload = read.workload;
        workload.name.clone_from(&self.name);
        if let (Some(count), Some(task)) = (nr_tasks, workload.tasks.first_mut()) {
            task.instances = count;
        }
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_are_those_of_the_comparison() {
        let jobs = all();
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["J1", "J8", "P8", "S1"]);
        for (job, (nr_cpus, nr_tasks)) in jobs.iter().zip([(1, 8), (8, 32), (8, 32), (1, 8)]) {
            assert!(!job.text.is_empty() && job.until_ns > 0);
            assert_eq!(job.nr_cpus, nr_cpus);
            let workload = job.workload(nr_cpus, None).unwrap();
            assert_eq!(workload.tasks.len(), 1, "--tasks sets the count of the only description");
            assert_eq!(workload.tasks[0].instances, nr_tasks);
            assert_eq!(job.workload(nr_cpus, Some(5)).unwrap().tasks[0].instances, 5);
        }
    }
}
