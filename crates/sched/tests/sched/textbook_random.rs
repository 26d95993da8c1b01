// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random workloads on one to five CPUs under every textbook scheduler: bursts, sleeps, yields,
//! forks, joins, changes of nice, policy and affinity. After every instant the reader of the trace
//! checks that no CPU is idle while a task that may use it waits. Under preemptive priority it also
//! checks that no waiting task could preempt a worse one.

use crate::textbook_support;

use schedlab_model::random::{Purpose, Stream};
use schedlab_model::{CpuId, CpuMask, Policy};
use textbook_support::{Experiment, Job, TEXTBOOK};

fn random_mask(stream: &mut Stream, nr_cpus: u32) -> CpuMask {
    let mut mask = CpuMask::only(CpuId(stream.below(u64::from(nr_cpus)) as u32));
    for cpu in 0..nr_cpus {
        if stream.below(2) == 0 {
            mask.set(CpuId(cpu));
        }
    }
    mask
}

fn random_job(stream: &mut Stream, nr_cpus: u32) -> Job {
    let mut job = Job::at(stream.below(20));
    job.attr.nice = stream.between(0, 8) as i8 - 4;
    if stream.below(3) == 0 {
        job.attr.affinity = Some(random_mask(stream, nr_cpus));
    }
    for _ in 0..stream.between(1, 8) {
        job = match stream.below(9) {
            0..=3 => job.run(stream.between(1, 30)),
            4 | 5 => job.run(stream.below(12)).sleep(stream.below(12)),
            6 => job.yields(),
            7 => match stream.below(3) {
                0 => job.set_nice(stream.between(0, 8) as i8 - 4),
                1 => job.set_policy(Policy::Batch),
                _ => job.set_policy(Policy::Normal),
            },
            _ => {
                let mask = random_mask(stream, nr_cpus);
                job.set_affinity(mask)
            }
        };
    }
    job
}

/// Released jobs, and some jobs that an earlier job forks.
fn random_jobs(stream: &mut Stream, nr_cpus: u32) -> Vec<Job> {
    let mut jobs: Vec<Job> =
        (0..stream.between(1, 25)).map(|_| random_job(stream, nr_cpus)).collect();
    for child in jobs.len()..jobs.len() + stream.below(8) as usize {
        let parent = stream.below(child as u64) as usize;
        let mut forking = jobs[parent].clone().forks(child as u32).run(stream.below(9));
        if stream.below(2) == 0 {
            forking = forking.joins().run(stream.below(9));
        }
        jobs[parent] = forking;
        jobs.push(random_job(stream, nr_cpus).forked());
    }
    jobs
}

#[test]
fn no_cpu_is_idle_beside_a_task_and_no_time_is_lost() {
    for scheduler in TEXTBOOK {
        for round in 0..60 {
            let mut stream = Stream::new(round, Purpose::Experiment, 0);
            let nr_cpus = stream.between(1, 5) as u32;
            let jobs = random_jobs(&mut stream, nr_cpus);
            let mut experiment = Experiment::new(scheduler).cpus(nr_cpus);
            experiment.short_quanta(&mut stream);
            if round % 2 == 0 && scheduler.starts_with("priority") {
                experiment = experiment.set("aging", 0);
            }
            let run = experiment.run(&jobs);
            for (task, job) in (0..).zip(&jobs) {
                assert_eq!(run.cpu_time(task), job.work(), "{scheduler}, round {round}: {task}");
            }
            assert_eq!(run.exits().len(), jobs.len());
        }
    }
}
