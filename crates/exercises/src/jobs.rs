// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the jobs of an exercise, and writes them as a workload file.

use schedlab_model::random::Stream;
use serde::Serialize;
use std::fmt::Write as _;

/// A job. Times are whole milliseconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Job {
    /// Name.
    pub name: String,
    /// Release time.
    pub release: u64,
    /// CPU time of a burst.
    pub run: u64,
    /// Sleep between bursts.
    pub sleep: u64,
    /// Number of bursts.
    pub rounds: u64,
    /// Policy, such as `OTHER` or `FIFO`.
    pub policy: &'static str,
    /// Nice value, or real-time priority under `FIFO` and `RR`.
    pub priority: i64,
}

/// How the priorities of jobs are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priorities {
    /// All are 0.
    None,
    /// Distinct nice values from -5 to 10.
    Nice,
    /// FIFO with distinct real-time priorities.
    Fifo,
    /// The first job has SCHED_OTHER, the others FIFO.
    OneOther,
}

/// How jobs are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jobs {
    /// How many.
    pub count: u64,
    /// Time from one release to the next: the least and the greatest.
    pub gap: (u64, u64),
    /// CPU time of a burst: the least and the greatest. Lengths are distinct if there is room.
    pub run: (u64, u64),
    /// Each length is a multiple of this.
    pub step: u64,
    /// Sleep between two bursts; the greatest is 0 for jobs of one burst.
    pub sleep: (u64, u64),
    /// Priorities.
    pub priorities: Priorities,
}

impl Jobs {
    /// Jobs of one burst, released one after the other.
    pub const fn arriving(count: u64, run: (u64, u64)) -> Self {
        let (step, sleep, priorities) = (1, (0, 0), Priorities::None);
        Self { count, gap: (1, 3), run, step, sleep, priorities }
    }

    /// Jobs of one burst, all released at 0.
    pub const fn together(count: u64, run: (u64, u64)) -> Self {
        Self { gap: (0, 0), ..Self::arriving(count, run) }
    }

    /// The same with these priorities.
    pub const fn with(self, priorities: Priorities) -> Self {
        Self { priorities, ..self }
    }

    /// The same with lengths that are multiples of `step`.
    pub const fn in_steps(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// The same with two bursts, and a sleep between them.
    pub const fn sleeping(self, sleep: (u64, u64)) -> Self {
        Self { sleep, ..self }
    }

    /// Draws the jobs A, B, C, ...
    pub fn draw(&self, random: &mut Stream) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut release = 0;
        for index in 0..self.count {
            if index > 0 {
                release += between(random, self.gap);
            }
            let run = (0..20).map(|_| between(random, self.run) / self.step * self.step);
            let run: Vec<u64> = run.map(|run| run.max(self.step)).collect();
            let is_new = |run: &&u64| jobs.iter().all(|job| job.run != **run);
            let run = *run.iter().find(is_new).unwrap_or(&run[0]);
            let sleeps = self.sleep.1 > 0;
            let (policy, priority) = self.priority(index, &jobs, random);
            jobs.push(Job {
                name: char::from(b'A' + index as u8).to_string(),
                release,
                run,
                sleep: if sleeps { between(random, self.sleep) } else { 0 },
                rounds: if sleeps { 2 } else { 1 },
                policy,
                priority,
            });
        }
        jobs
    }

    fn priority(&self, index: u64, jobs: &[Job], random: &mut Stream) -> (&'static str, i64) {
        let is_new = |value: &i64| jobs.iter().all(|job| job.priority != *value);
        let mut distinct = |least: i64, most: i64| {
            let values = (0..50).map(|_| least + random.below((most - least + 1) as u64) as i64);
            let values: Vec<i64> = values.collect();
            *values.iter().find(|value| is_new(value)).unwrap_or(&values[0])
        };
        match self.priorities {
            Priorities::None => ("OTHER", 0),
            Priorities::Nice => ("OTHER", distinct(-5, 10)),
            Priorities::OneOther if index == 0 => ("OTHER", 0),
            Priorities::Fifo | Priorities::OneOther => ("FIFO", distinct(1, 50)),
        }
    }
}

/// A whole number from the first to the second.
pub fn between(random: &mut Stream, (least, most): (u64, u64)) -> u64 {
    least + random.below(most - least + 1)
}

/// The workload file of jobs, one line for each.
pub fn file_of(jobs: &[Job]) -> String {
    let lines: Vec<String> = jobs.iter().map(line_of).collect();
    format!("{{\n  \"tasks\": {{\n{}\n  }}\n}}\n", lines.join(",\n"))
}

fn line_of(job: &Job) -> String {
    let mut line = format!("    \"{}\": {{ ", job.name);
    if job.release > 0 {
        let _ = write!(line, "\"delay\": \"{}ms\", ", job.release);
    }
    if job.policy != "OTHER" {
        let _ = write!(line, "\"policy\": \"SCHED_{}\", ", job.policy);
    }
    if job.priority != 0 {
        let _ = write!(line, "\"priority\": {}, ", job.priority);
    }
    let _ = write!(line, "\"loop\": 1, \"run\": \"{}ms\"", job.run);
    if job.rounds > 1 {
        let _ = write!(
            line,
            ", \"repeat\": {{ \"loop\": {}, \"sleep\": \"{}ms\", \"run\": \"{}ms\" }}",
            job.rounds - 1,
            job.sleep,
            job.run
        );
    }
    line + " }"
}
