// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search through seeds, on several threads. The first breach is that of the least seed, so the
//! number of threads changes no result.

use crate::output::{is_watched, without_panic_texts};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use schedlab_check::{Breach, Case, Shape, Verdict, generate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Cases between two looks at the clock, in the simulator.
pub const BATCH: u64 = 64;

/// A search.
pub struct Search<'s> {
    /// What is searched, for people.
    pub name: String,
    /// Plays a case and judges it.
    pub play: Box<dyn Fn(&Case) -> Verdict + Sync + 's>,
    pub shape: Shape,
    /// The first seed.
    pub first: u64,
    /// Most seeds.
    pub nr_seeds: Option<u64>,
    /// Longest time.
    pub budget: Option<Duration>,
    pub threads: usize,
    /// Cases between two looks at the clock.
    pub batch: u64,
}

/// What a search found.
pub struct Searched {
    pub nr_cases: u64,
    /// Cases that the scheduler cannot play.
    pub nr_refused: u64,
    pub elapsed: Duration,
    /// The first seed with a breach.
    pub found: Option<(u64, Case, Breach)>,
}

/// Threads of this machine.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

impl Search<'_> {
    /// Searches until a breach is found, or nothing is left of seeds or time.
    pub fn run(&self) -> Searched {
        without_panic_texts(|| self.searched())
    }

    fn searched(&self) -> Searched {
        let start = Instant::now();
        let bar = self.bar();
        let end = self.nr_seeds.map_or(u64::MAX, |count| self.first.saturating_add(count));
        let mut searched =
            Searched { nr_cases: 0, nr_refused: 0, elapsed: Duration::ZERO, found: None };
        let mut next = self.first;
        while next < end && self.budget.is_none_or(|budget| start.elapsed() < budget) {
            let last = next.saturating_add(self.batch).min(end);
            for (seed, verdict) in self.batch(next, last) {
                searched.nr_cases += 1;
                match verdict {
                    Verdict::Passed => {}
                    Verdict::Refused(_) => searched.nr_refused += 1,
                    Verdict::Broken(breach) => {
                        let case = generate(&self.shape, seed);
                        searched.found = Some((seed, case, breach));
                        break;
                    }
                }
            }
            bar.set_position(searched.nr_cases);
            if searched.found.is_some() {
                break;
            }
            next = last;
        }
        bar.finish_and_clear();
        searched.elapsed = start.elapsed();
        searched
    }

    /// Verdicts of the seeds from `first` to before `last`, in their order.
    fn batch(&self, first: u64, last: u64) -> Vec<(u64, Verdict)> {
        let next = AtomicU64::new(first);
        let verdicts = Mutex::new(Vec::new());
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= last {
                    return;
                }
                let verdict = (self.play)(&generate(&self.shape, seed));
                let mut verdicts = verdicts.lock().unwrap_or_else(|broken| broken.into_inner());
                verdicts.push((seed, verdict));
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        let mut verdicts = verdicts.into_inner().unwrap_or_else(|broken| broken.into_inner());
        verdicts.sort_by_key(|(seed, _)| *seed);
        verdicts
    }

    fn bar(&self) -> ProgressBar {
        let target =
            if is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(self.nr_seeds, target);
        let template = match self.nr_seeds {
            Some(_) => "{elapsed_precise} [{wide_bar}] {pos}/{len} cases {msg}",
            None => "{elapsed_precise} {pos} cases, {per_sec} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(self.name.clone());
        bar.enable_steady_tick(Duration::from_millis(250));
        bar
    }
}
