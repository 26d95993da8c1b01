// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one request with the host lane.

use crate::checks::Checks;
use crate::command::Running;
use crate::scheduler::{self, Scheduler};
use schedlab_guest::protocol::{
    BODY, ExtState, GuestReply, GuestRequest, Message, Request, SHARED_BYTES,
};
use schedlab_host::ext::{self, Build};
use schedlab_host::{HostLane, Pace};
use schedlab_model::TraceSink;
use schedlab_model::trace::NullSink;
use schedlab_run::{LaneError, RunRequest, RunResult};
use schedlab_trace::BinarySink;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Lines of the kernel's log that go into a reply.
const LOG_LINES_MAX: usize = 500;

/// CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    schedlab_host::sys::monotonic_ns()
}

/// Sleeps until a time on CLOCK_MONOTONIC.
pub fn sleep_until(time_ns: u64) {
    schedlab_host::sys::sleep_until_ns(time_ns);
}

/// Gives this thread, which converts the recorder's events, a priority below the recorder's thread
/// and above every task. The scheduler under test never decides about it.
pub fn outrank() {
    use schedlab_host::{attr, sys};
    let raw = sys::RawSchedAttr {
        size: size_of::<sys::RawSchedAttr>() as u32,
        policy: libc::SCHED_FIFO as u32,
        flags: sys::RESET_ON_FORK,
        priority: u32::from(attr::TASK_PRIORITY_MAX) + 1,
        ..sys::RawSchedAttr::default()
    };
    if let Err(error) = sys::sched_setattr(0, &raw) {
        eprintln!("schedlab-guest: SCHED_FIFO for init: {error}");
    }
}

/// Does what every run begins with before a snapshot, so that no run has to wait for it.
pub fn prepare() {
    let nr_cpus = schedlab_host::machine::online_cpus().weight();
    schedlab_host::prepare_recorder(Pace::quiet_ring_size(nr_cpus));
}

/// Does what is asked. Returns reply and trace as bytes for the host.
pub fn answer(request: Message) -> (Vec<u8>, Vec<u8>) {
    let log_from = last_log_number();
    let mut reply = GuestReply { ext_before: ext_state(), ..GuestReply::default() };
    let mut trace = Vec::new();
    let done = catch_unwind(AssertUnwindSafe(|| act(request, &mut trace, &mut reply)));
    let done = done.unwrap_or_else(|_| {
        Err(LaneError::System("the guest's init panicked: see the console's text".into()))
    });
    if let Err(error) = done {
        reply.error = Some(error.into());
    }
    if reply.ext_after.is_none() {
        reply.ext_after = ext_state();
    }
    reply.kernel_log = log_since(log_from);
    let mut bytes = serde_json::to_vec(&reply).unwrap_or_default();
    if bytes.len() + trace.len() > SHARED_BYTES - BODY {
        let text = format!(
            "the trace has {} bytes; {} fit into the memory shared with the guest: make the run \
             shorter",
            trace.len(),
            SHARED_BYTES - BODY
        );
        reply.result = None;
        reply.error = Some(LaneError::Unavailable(text).into());
        trace.clear();
        bytes = serde_json::to_vec(&reply).unwrap_or_default();
    }
    (bytes, trace)
}

fn act(message: Message, trace: &mut Vec<u8>, reply: &mut GuestReply) -> Result<(), LaneError> {
    let request = Request::decode(&message)
        .map_err(|error| LaneError::System(format!("the request cannot be read: {error}")))?;
    // Each task pays for the memory of init that it inherits: a program of 30 MB, kept here twice,
    // added 30 ms to the CPU time of each.
    drop(message);
    match request {
        Request::Run(request) => {
            write(&request.writes)?;
            let checks = request.ext.as_ref().and_then(|_| Checks::noted());
            let scheduler = scheduler::load(request.ext.as_ref(), None)?;
            reply.result = Some(play(request, (scheduler, checks), trace, reply)?);
        }
        Request::RunSetUp(request, setup) => {
            write(&request.writes)?;
            let checks = Checks::noted();
            let scheduler = scheduler::load(request.ext.as_ref(), Some(&setup))?;
            reply.result = Some(play(request, (scheduler, checks), trace, reply)?);
        }
        Request::RunUnder(request, command) => {
            write(&request.writes)?;
            scheduler::write_configuration();
            let checks = Checks::noted();
            let scheduler = Scheduler::Program(Running::start(command)?);
            reply.result = Some(play(request, (scheduler, checks), trace, reply)?);
        }
        Request::Verify(ext, setup) => {
            let source = scheduler::keep(&ext)?;
            let log = ext::verify(&source, &Build::default(), &ext.options, setup.as_ref());
            reply.verified = Some(log.map_err(LaneError::from)?);
        }
    }
    Ok(())
}

/// Writes the files of a request.
fn write(files: &[(String, String)]) -> Result<(), LaneError> {
    files.iter().try_for_each(|(path, text)| {
        fs::write(path, text).map_err(|error| {
            LaneError::Unavailable(format!("writing {text:?} to {path} in the guest: {error}"))
        })
    })
}

fn play(
    request: GuestRequest,
    (mut scheduler, checks): (Scheduler, Option<Checks>),
    trace: &mut Vec<u8>,
    reply: &mut GuestReply,
) -> Result<RunResult, LaneError> {
    let mut pace = Pace::quiet(request.cpus.weight());
    if let Some(instruction_ns) = request.instruction_ns {
        pace = pace.counted(instruction_ns, request.switch_jitter_ns);
    }
    if request.instruction_ns.is_none() || request.soak_ns.is_some() {
        // With the host's time, calm takes real seconds and tasks may wake late. A long run
        // consists of rounds; calm would be most of it.
        pace.calm_ns = 0;
    } else if let Some(checks) = checks {
        pace.beat = checks.beat(|| scheduler.check().is_ok());
    }
    let run = RunRequest {
        seed: request.seed,
        until_ns: request.until_ns,
        ..RunRequest::new(request.workload, "", request.cpus)
    };
    let nr_cpus = run.cpus.iter().last().map_or(1, |cpu| cpu.0 + 1);
    let mut sink = BinarySink::new(trace, nr_cpus);
    let begin = monotonic_ns();
    let result = HostLane.run_at(&run, Some(pace), &mut sink as &mut dyn TraceSink)?;
    sink.finish().map_err(|error| LaneError::System(format!("writing the trace: {error}")))?;
    reply.nr_rounds = 1;
    // The result shows the first round; of the others it only matters that they end.
    while let Some(soak_ns) = request.soak_ns
        && monotonic_ns() - begin < soak_ns
        && scheduler.check().is_ok()
    {
        HostLane.run_at(&run, Some(pace), &mut NullSink)?;
        reply.nr_rounds += 1;
    }
    reply.rounds_ns = monotonic_ns() - begin;
    if !matches!(scheduler, Scheduler::Kernel) {
        reply.ext_after = ext_state();
    }
    scheduler.check()?;
    reply.ext_counters = scheduler.counters()?;
    scheduler.stop()?;
    Ok(result)
}

/// The kernel's state of sched_ext.
fn ext_state() -> Option<ExtState> {
    let found = ext::kernel_state()?;
    Some(ExtState { state: found.state, ops: found.ops, nr_rejected: found.nr_rejected })
}

/// Records of the kernel's log: number and text.
fn kernel_log() -> Vec<(u64, String)> {
    let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
    let Ok(mut file) = opened else { return Vec::new() };
    let mut records = Vec::new();
    let mut buffer = vec![0; 8192];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return records,
            Ok(len) => {
                let text = String::from_utf8_lossy(&buffer[..len]);
                let (head, body) = text.split_once(';').unwrap_or(("", &text));
                let number = head.split(',').nth(1).and_then(|number| number.parse().ok());
                let line = body.lines().next().unwrap_or_default();
                records.push((number.unwrap_or(0), line.to_owned()));
            }
            // Overwritten while it was read: the next record exists.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(_) => return records,
        }
    }
}

fn last_log_number() -> u64 {
    kernel_log().last().map_or(0, |(number, _)| *number)
}

fn log_since(number: u64) -> Vec<String> {
    let newer = kernel_log().into_iter().filter(|(found, _)| *found > number);
    newer.map(|(_, line)| line).take(LOG_LINES_MAX).collect()
}
