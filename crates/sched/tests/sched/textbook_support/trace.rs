// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a trace: which task ran where and when, and whether the CPUs were well used at every
//! instant.

use super::{Job, MS, Piece, Run};
use schedlab_model::trace::MemorySink;
use schedlab_model::{CpuId, CpuMask, Event, EventKind, Nanos, SchedAttr, TaskId};

/// A task as the trace shows it.
#[derive(Clone, Default)]
struct Seen {
    attr: SchedAttr,
    runnable: bool,
    on_cpu: Option<CpuId>,
    release_ns: Option<Nanos>,
    exit_ns: Option<Nanos>,
}

struct Reader<'a> {
    jobs: &'a [Job],
    /// Job of each task.
    job_of: Vec<usize>,
    /// By job.
    tasks: Vec<Seen>,
    /// Job and start of the running task of each CPU.
    running: Vec<Option<(usize, Nanos)>>,
    pieces: Vec<Piece>,
    /// Whether to check that no waiting task ranks above a running one.
    keeps_levels: bool,
}

/// Reads the trace of `jobs`, each of which is at most one task.
pub fn read(jobs: &[Job], nr_cpus: u32, keeps_levels: bool, trace: &MemorySink) -> Run {
    let job_of = trace.tasks.iter().map(|task| task.spec.expect("from a job") as usize).collect();
    let tasks = jobs.iter().map(|job| Seen { attr: job.attr, ..Seen::default() }).collect();
    let running = vec![None; nr_cpus as usize];
    let mut reader = Reader { jobs, job_of, tasks, running, pieces: Vec::new(), keeps_levels };
    let mut now = 0;
    for event in &trace.events {
        assert!(event.time_ns >= now, "{event:?} comes after {now}");
        if event.time_ns > now {
            reader.check_instant(now);
            now = event.time_ns;
        }
        reader.event(event);
    }
    for cpu in 0..nr_cpus {
        reader.end_piece(CpuId(cpu), trace.end_ns);
    }
    let mut pieces = reader.pieces;
    pieces.sort_by_key(|piece| (piece.start_ns, piece.cpu));
    Run {
        pieces,
        release_ns: reader.tasks.iter().map(|task| task.release_ns).collect(),
        exit_ns: reader.tasks.iter().map(|task| task.exit_ns).collect(),
    }
}

impl Reader<'_> {
    fn event(&mut self, event: &Event) {
        let now = event.time_ns;
        match event.kind {
            EventKind::Switch { prev, next, out } => {
                let left = self.end_piece(event.cpu, now);
                assert_eq!(left, prev.map(|task| self.job(task)), "{event:?}");
                if let Some(left) = left {
                    self.tasks[left].runnable = !out.is_voluntary();
                }
                if let Some(next) = next {
                    self.begin_piece(event.cpu, next, now);
                }
            }
            EventKind::Wakeup { task, .. } => self.make_runnable(task),
            EventKind::Fork { task, .. } => {
                let job = self.job(task);
                let before = self.tasks[job].release_ns.replace(now);
                assert_eq!(before, None, "P{} exists twice", job + 1);
                if !self.jobs[job].forked {
                    assert_eq!(now, self.jobs[job].arrival * MS);
                }
                self.make_runnable(task);
            }
            EventKind::Exit { task } => {
                let job = self.job(task);
                assert_eq!(self.tasks[job].exit_ns.replace(now), None);
            }
            EventKind::Phase { task, phase } => {
                let job = self.job(task);
                self.tasks[job].attr = self.jobs[job].changes[phase as usize];
            }
            EventKind::Migrate { task, .. } => {
                let allowed = self.cpus_allowed(self.job(task));
                assert!(allowed.contains(event.cpu), "{event:?}");
            }
            EventKind::Block { .. } => {}
            EventKind::Progress { .. } | EventKind::Lost { .. } => panic!("{event:?}"),
        }
    }

    fn job(&self, task: TaskId) -> usize {
        self.job_of[task.index()]
    }

    fn cpus_allowed(&self, job: usize) -> CpuMask {
        let all = CpuMask::first(self.running.len() as u32);
        self.tasks[job].attr.affinity.unwrap_or(all).and(&all)
    }

    fn make_runnable(&mut self, task: TaskId) {
        let job = self.job(task);
        assert!(!self.tasks[job].runnable, "P{} becomes runnable twice", job + 1);
        self.tasks[job].runnable = true;
    }

    fn begin_piece(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let job = self.job(task);
        assert!(self.cpus_allowed(job).contains(cpu), "P{} may not run on CPU {cpu}", job + 1);
        assert!(self.tasks[job].runnable, "P{} runs at {now} but sleeps", job + 1);
        assert_eq!(self.tasks[job].on_cpu.replace(cpu), None, "P{} runs twice", job + 1);
        self.running[cpu.index()] = Some((job, now));
    }

    /// Ends the stay on `cpu`. A stay of length 0 is dropped.
    fn end_piece(&mut self, cpu: CpuId, end_ns: Nanos) -> Option<usize> {
        let (job, start_ns) = self.running[cpu.index()].take()?;
        self.tasks[job].on_cpu = None;
        if start_ns < end_ns {
            self.pieces.push(Piece { task: job as u32, cpu: cpu.0, start_ns, end_ns });
        }
        Some(job)
    }

    /// Checks the instant `now` after all its events. While a task waits, no CPU that it may use is
    /// idle or, with `keeps_levels`, runs a worse task.
    fn check_instant(&self, now: Nanos) {
        for (job, task) in self.tasks.iter().enumerate() {
            if !task.runnable || task.on_cpu.is_some() {
                continue;
            }
            for cpu in self.cpus_allowed(job).iter() {
                let Some((beside, _)) = self.running[cpu.index()] else {
                    panic!("at {now} CPU {cpu} is idle beside P{}", job + 1);
                };
                let prio = self.tasks[beside].attr.kernel_prio();
                assert!(
                    !self.keeps_levels || prio <= task.attr.kernel_prio(),
                    "at {now} CPU {cpu} runs P{} beside P{}",
                    beside + 1,
                    job + 1
                );
            }
        }
    }
}
