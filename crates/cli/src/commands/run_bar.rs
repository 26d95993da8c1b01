// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress of one run on a terminal, shown after two seconds.

use crate::output::is_watched;
use crate::table::duration;
use indicatif::{ProgressBar, ProgressStyle};
use schedlab_model::trace::TaskInfo;
use schedlab_model::{Event, Nanos, TaskId, TraceSink};
use schedlab_run::{LaneKind, RunRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a run must take before the line appears.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
const REFRESH: Duration = Duration::from_millis(250);

/// A line on a terminal that shows how far a run is. Dropping it removes the line.
pub struct RunBar {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    time_ns: Arc<AtomicU64>,
}

impl RunBar {
    /// Makes the line for a run of `request` in `lane`. In a pipe or a log it shows nothing.
    pub fn new(lane: LaneKind, request: &RunRequest) -> Self {
        let time_ns = Arc::new(AtomicU64::new(0));
        let (name, scheduler) = (request.workload.name.clone(), request.scheduler.clone());
        let end_ns = request.bounded(lane).0.until_ns.or(request.workload.duration_ns);
        let seen = Arc::clone(&time_ns);
        let text = move |passed: Duration| match lane {
            LaneKind::Sim => {
                let simulated = so_far(seen.load(Ordering::Relaxed), end_ns);
                format!("{name} under {scheduler}: {simulated} simulated in {} s", passed.as_secs())
            }
            LaneKind::Host | LaneKind::Vm => format!("{name}: running for {} s", passed.as_secs()),
        };
        let thread = is_watched().then(|| {
            let (sender, stopped) = mpsc::channel();
            (sender, std::thread::spawn(move || show(&stopped, &text)))
        });
        Self { thread, time_ns }
    }

    /// A sink that passes simulated time to the line; `None` without a terminal.
    pub fn clock(&self) -> Option<Clock> {
        self.thread.as_ref().map(|_| Clock(Arc::clone(&self.time_ns)))
    }
}

impl Drop for RunBar {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn show(stopped: &mpsc::Receiver<()>, text: &dyn Fn(Duration) -> String) {
    let began = Instant::now();
    if stopped.recv_timeout(SHOWN_AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    loop {
        bar.set_message(text(began.elapsed()));
        bar.tick();
        if stopped.recv_timeout(REFRESH) != Err(RecvTimeoutError::Timeout) {
            return bar.finish_and_clear();
        }
    }
}

/// `3.2 s of 10 s`.
fn so_far(time_ns: Nanos, end_ns: Option<Nanos>) -> String {
    match end_ns {
        Some(end_ns) => format!("{} of {}", duration(time_ns), duration(end_ns)),
        None => duration(time_ns),
    }
}

/// Keeps the time of the last event.
pub struct Clock(Arc<AtomicU64>);

impl TraceSink for Clock {
    fn task(&mut self, _id: TaskId, _info: &TaskInfo) {}

    fn event(&mut self, event: &Event) {
        self.0.store(event.time_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_is_shown_against_the_end_if_there_is_one() {
        assert_eq!(so_far(3_200_000_000, Some(10_000_000_000)), "3.200 s of 10.00 s");
        assert_eq!(so_far(3_200_000_000, None), "3.200 s");
    }
}
