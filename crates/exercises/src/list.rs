// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only list of exercises, from the easiest on. A number is for ever: new exercises go to the
//! end.

use crate::ask::Ask;
use crate::jobs::{Jobs, Priorities};

/// An exercise without its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exercise {
    /// Title.
    pub title: &'static str,
    /// The scheduler's rule, in the words of a textbook.
    pub rule: &'static str,
    /// Scheduler with its settings.
    pub scheduler: &'static str,
    /// CPUs.
    pub cpus: u32,
    /// End of the run, with a unit, if it does not end with its jobs.
    pub until: Option<&'static str>,
    /// How jobs are drawn.
    pub jobs: Jobs,
    /// What is asked.
    pub ask: Ask,
    /// Hints, from the vaguest to the plainest.
    pub hints: &'static [&'static str],
}

const FCFS: &str = "First come, first served: a job runs until it is done with its burst.";
const SJF: &str = "Shortest job first: when the CPU is free, the waiting job with the shortest \
                   burst runs, and it runs to the end of the burst.";
const SRTF: &str = "Shortest remaining time first: the job with the shortest rest of its burst \
                    runs. A new job takes the CPU if its burst is shorter than that rest.";
const RR: &str = "Round robin with a quantum of 4 ms: at its end the job goes to the tail of the \
                  queue. A job that arrives at that very time is queued before it.";
const PRIORITY: &str = "The waiting job with the lowest nice value runs, to the end of its burst.";
const PREEMPTIVE: &str = "The job with the lowest nice value runs. A new job with a lower one \
                          takes the CPU at once.";
const MLFQ: &str = "Multilevel feedback: three queues with quanta of 8, 16 and 32 ms. A new job \
                    enters the first queue. One that uses its whole quantum moves down. The first \
                    queue that is not empty runs, and preempts the queues below.";
const FIFO: &str = "SCHED_FIFO: the job with the highest real-time priority runs until it is done. \
                    A job of SCHED_OTHER runs only when no such job is ready.";
const CFS: &str = "CFS (Linux 6.1): the job with the least vruntime runs next.";
const EEVDF: &str = "EEVDF (Linux 6.12): a job is eligible if its lag is not negative. Of the \
                     eligible ones the one with the earliest deadline runs next.";
const WEIGHTS: &str = "Fair scheduling by weight. Nice 0 has the weight 1024; each step of nice \
                       changes the weight by a factor of about 1.25.";
const TWO_FCFS: &str = "First come, first served on two CPUs with one queue: a CPU that is free \
                        takes the job that has waited longest.";

const READY: &str = "Draw the time axis first: mark when each job is released.";
const AXIS: &str = "Go from event to event: a release, or the end of a burst or of a quantum.";
const TURNAROUND: &str = "Turnaround is the time from the release to the exit.";
const RESPONSE: &str = "Response time is the time from the release to the first run.";
const WAIT: &str = "Run delay is the time a job is ready but does not run: here its turnaround \
                    less its CPU time.";
const SLEEPS: &str = "A sleeping job is not ready: the CPU takes another one, or is idle.";
const QUEUE: &str = "Write down the queue after each quantum, with the rest of each burst.";
const FEWER: &str = "Compare the new job only with the one that runs, and with its rest.";

/// The scheduler `scheduler` on one CPU.
const fn one(
    title: &'static str,
    rule: &'static str,
    scheduler: &'static str,
    jobs: Jobs,
    ask: Ask,
    hints: &'static [&'static str],
) -> Exercise {
    Exercise { title, rule, scheduler, cpus: 1, until: None, jobs, ask, hints }
}

impl Exercise {
    const fn on(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    const fn until(self, time: &'static str) -> Self {
        Self { until: Some(time), ..self }
    }
}

const FOUR: Jobs = Jobs::arriving(4, (2, 9));
const FIVE: Jobs = Jobs::arriving(5, (2, 9));
const TURNS: Jobs = Jobs::arriving(4, (3, 14));
const NICE: Jobs = Jobs::arriving(5, (2, 9)).with(Priorities::Nice);
const NAPS: Jobs = Jobs::arriving(3, (2, 7)).sleeping((2, 8));
const FEEDBACK: Jobs = Jobs::arriving(3, (5, 40));
const REAL_TIME: Jobs = Jobs::arriving(4, (2, 9)).with(Priorities::Fifo);
const HOGS: Jobs = Jobs::together(3, (700, 900)).with(Priorities::Nice);
const SERVED: Jobs = Jobs::arriving(4, (10, 40));

/// All exercises.
pub const EXERCISES: &[Exercise] = &[
    one("Turnaround by hand", FCFS, "fcfs", FOUR, Ask::Turnaround, &[READY, TURNAROUND]),
    one("Mean turnaround", FCFS, "fcfs", FIVE, Ask::MeanTurnaround, &[READY, TURNAROUND]),
    one("Response time", FCFS, "fcfs", FIVE, Ask::Response, &[READY, RESPONSE]),
    one("The convoy", FCFS, "fcfs", FIVE, Ask::MeanWait, &[AXIS, WAIT]),
    one("Shortest job first", SJF, "sjf", FIVE, Ask::Exits, &[AXIS, FEWER]),
    one("How long the long job waits", SJF, "sjf", FIVE, Ask::Wait, &[AXIS, WAIT]),
    one("Shortest job first: the mean", SJF, "sjf", FIVE, Ask::MeanTurnaround, &[AXIS, TURNAROUND]),
    one("Who runs now", SRTF, "srtf", FIVE, Ask::RunsAt, &[AXIS, FEWER]),
    one("Does it preempt", SRTF, "srtf", FOUR, Ask::TakesCpu, &[AXIS, FEWER]),
    one("The least mean", SRTF, "srtf", FIVE, Ask::MeanTurnaround, &[AXIS, TURNAROUND]),
    one("Count the preemptions", SRTF, "srtf", FIVE, Ask::Preemptions, &[AXIS, FEWER]),
    one("Round robin: response", RR, "rr:quantum=4ms", TURNS, Ask::Response, &[QUEUE, RESPONSE]),
    one("Round robin: who runs", RR, "rr:quantum=4ms", TURNS, Ask::RunsAt, &[AXIS, QUEUE]),
    one("Round robin: order of exits", RR, "rr:quantum=4ms", TURNS, Ask::Exits, &[QUEUE]),
    one(
        "Round robin: mean turnaround",
        RR,
        "rr:quantum=4ms",
        TURNS,
        Ask::MeanTurnaround,
        &[QUEUE, TURNAROUND],
    ),
    one("Round robin: mean response", RR, "rr:quantum=4ms", TURNS, Ask::MeanResponse, &[QUEUE]),
    one("Round robin and sleep", RR, "rr:quantum=4ms", NAPS, Ask::Makespan, &[SLEEPS, QUEUE]),
    one("A CPU burst and a sleep", FCFS, "fcfs", NAPS, Ask::Turnaround, &[SLEEPS, TURNAROUND]),
    one("Nice values", PRIORITY, "priority", NICE, Ask::Exits, &[AXIS, FEWER]),
    one("Nice values that preempt", PREEMPTIVE, "priority-preemptive", NICE, Ask::RunsAt, &[AXIS]),
    one("Which waits longest", PREEMPTIVE, "priority-preemptive", NICE, Ask::Wait, &[AXIS, WAIT]),
    one("Feedback queues", MLFQ, "mlfq", FEEDBACK, Ask::RunsAt, &[AXIS, QUEUE]),
    one("Feedback queues: turnaround", MLFQ, "mlfq", FEEDBACK, Ask::Turnaround, &[AXIS, QUEUE]),
    one("Real-time jobs", FIFO, "linux-6.12", REAL_TIME, Ask::Exits, &[AXIS, FEWER]),
    one(
        "Why a wake-up preempts",
        FIFO,
        "linux-6.12",
        Jobs::arriving(3, (4, 12)).with(Priorities::OneOther),
        Ask::TakesCpu,
        &[FEWER],
    ),
    one("Two CPUs", TWO_FCFS, "fcfs", FIVE, Ask::Turnaround, &[READY, TURNAROUND]).on(2),
    one("Two CPUs: the last exit", TWO_FCFS, "fcfs", FIVE, Ask::Makespan, &[READY]).on(2),
    one("Two CPUs: shortest first", SJF, "sjf", FIVE, Ask::Exits, &[AXIS]).on(2),
    one("Two CPUs: round robin", RR, "rr:quantum=4ms", TURNS, Ask::RunsAt, &[QUEUE]).on(2),
    one(
        "Shares by weight",
        WEIGHTS,
        "linux-6.12",
        HOGS,
        Ask::Share,
        &["The share of a job is its weight divided by the sum of all weights."],
    )
    .until("600ms"),
    one(
        "The least vruntime",
        CFS,
        "linux-6.1",
        SERVED,
        Ask::PickOf(&["vruntime"]),
        &["A job that has run less has less vruntime."],
    ),
    one(
        "Lag",
        "The lag of a job is the mean vruntime of all ready jobs of equal weight, the running one \
         included, less its own vruntime.",
        "linux-6.12",
        SERVED,
        Ask::NumberOf("vruntime", "lag"),
        &["All jobs have nice 0: add up the vruntimes, and divide by the number of jobs."],
    ),
    one(
        "Eligible, then the earliest deadline",
        EEVDF,
        "linux-6.12",
        SERVED,
        Ask::PickOf(&["lag", "deadline"]),
        &["Cross out the jobs with a negative lag.", "Of the rest, take the earliest deadline."],
    ),
    one(
        "A new job under EEVDF",
        "EEVDF (Linux 6.12): a new job takes the CPU if it is eligible and its deadline is before \
         that of the running job.",
        "linux-6.12",
        SERVED,
        Ask::TakesCpu,
        &["A new job begins with half a slice, so its deadline is early.", "Is its lag 0 or more?"],
    ),
];
