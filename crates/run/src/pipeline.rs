// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a sink on its own thread, so that a long trace is read and measured at the same time.
//!
//! Events are passed in batches that are reused, so memory is a few batches, however long the trace
//! is. The sink gets the same calls in the same order.

use schedlab_model::trace::{Found, ObjectInfo, TaskInfo};
use schedlab_model::{Event, Nanos, ObjectId, TaskId, TraceSink};
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Events per batch: about 200 kB.
const BATCH_EVENTS: usize = 4_096;
/// Number of batches between the threads.
const BATCHES: usize = 4;

/// A call of the sink other than `event`.
enum Call {
    Task(TaskId, TaskInfo),
    Object(ObjectId, ObjectInfo),
    Renamed(TaskId, String),
    Found(Found),
    End(Nanos),
}

/// Events, and the call that follows them.
#[derive(Default)]
struct Batch {
    events: Vec<Event>,
    then: Option<Call>,
}

/// The sending end: collects calls and sends them to the other thread.
pub struct Sender {
    batch: Batch,
    full: SyncSender<Batch>,
    empty: Receiver<Batch>,
}

impl Sender {
    fn send(&mut self) {
        let next = self.empty.try_recv().unwrap_or_default();
        // If the sink's thread has panicked, nothing receives; the panic is passed on at the end.
        let _ = self.full.send(mem::replace(&mut self.batch, next));
    }

    fn call(&mut self, call: Call) {
        self.batch.then = Some(call);
        self.send();
    }
}

impl TraceSink for Sender {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        self.call(Call::Task(id, info.clone()));
    }

    fn object(&mut self, id: ObjectId, info: &ObjectInfo) {
        self.call(Call::Object(id, info.clone()));
    }

    fn renamed(&mut self, id: TaskId, name: &str) {
        self.call(Call::Renamed(id, name.into()));
    }

    fn found(&mut self, found: Found) {
        self.call(Call::Found(found));
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        self.batch.events.push(*event);
        if self.batch.events.len() >= BATCH_EVENTS {
            self.send();
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.call(Call::End(end_ns));
    }
}

/// The receiving end: calls the sink until the sender is dropped.
fn play(sink: &mut dyn TraceSink, full: &Receiver<Batch>, empty: &SyncSender<Batch>) {
    for mut batch in full {
        for event in &batch.events {
            sink.event(event);
        }
        batch.events.clear();
        match batch.then.take() {
            Some(Call::Task(id, info)) => sink.task(id, &info),
            Some(Call::Object(id, info)) => sink.object(id, &info),
            Some(Call::Renamed(id, name)) => sink.renamed(id, &name),
            Some(Call::Found(found)) => sink.found(found),
            Some(Call::End(end_ns)) => sink.end(end_ns),
            None => {}
        }
        let _ = empty.try_send(batch);
    }
}

/// Calls `feed` with a sink that passes its calls to `sink` on another thread. Returns the result
/// of `feed` after `sink` has received all calls.
///
/// # Panics
///
/// If `feed` or `sink` panics.
pub fn on_own_thread<T>(
    sink: &mut (dyn TraceSink + Send),
    feed: impl FnOnce(&mut Sender) -> T,
) -> T {
    thread::scope(|scope| {
        let (full, to_play) = sync_channel(BATCHES);
        let (played, empty) = sync_channel(BATCHES + 2);
        let player = scope.spawn(move || play(sink, &to_play, &played));
        let mut sender = Sender { batch: Batch::default(), full, empty };
        let result = feed(&mut sender);
        sender.send();
        drop(sender);
        match player.join() {
            Ok(()) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::trace::MemorySink;
    use schedlab_trace::synthetic::Synthetic;

    #[test]
    fn the_sink_sees_the_same_calls() {
        for nr_events in [0, 1, 4_095, 4_096, 100_000] {
            let what = Synthetic { seed: 3, nr_cpus: 2, nr_tasks: 20, nr_events };
            let (mut here, mut there) = (MemorySink::default(), MemorySink::default());
            what.play(&mut here);
            let result = on_own_thread(&mut there, |sink| {
                what.play(sink);
                7
            });
            assert_eq!(result, 7);
            assert!(!here.objects.is_empty());
            assert_eq!((here.tasks, here.objects), (there.tasks, there.objects));
            assert!(here.events == there.events && here.end_ns == there.end_ns);
        }
    }

    #[test]
    #[should_panic(expected = "this sink fails")]
    fn a_panic_of_the_sink_is_passed_on() {
        struct Fails;
        impl TraceSink for Fails {
            fn task(&mut self, _: TaskId, _: &TaskInfo) {}
            fn event(&mut self, _: &Event) {
                panic!("this sink fails");
            }
        }
        let what = Synthetic { seed: 3, nr_cpus: 2, nr_tasks: 20, nr_events: 100_000 };
        on_own_thread(&mut Fails, |sink| what.play(sink));
    }
}
