// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run leaves nothing behind: after a kill -9 of the caller or of the launcher, and after Ctrl-C,
//! while the run is fully started and at fifty random moments from its start on. Also, a thousand
//! real-time hogs do not keep the launcher from killing them.
//!
//! This test has no harness, because it must be able to start itself again as the victim: a caller
//! that plays FIFO hogs in control groups with files.

#![allow(missing_docs)]

use schedlab_host::{HostLane, HostRequest, PolicyOverride};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::random::{Purpose, Stream};
use schedlab_model::trace::NullSink;
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, LoopCount, MutexProtocol, ObjectKind, ObjectSpec, Op, Policy,
    TaskSpec, Workload,
};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const VICTIM: &str = "SCHEDLAB_TEST_VICTIM";

fn main() {
    if std::env::var_os(VICTIM).is_some() {
        return victim();
    }
    let has_rights = has_rights();
    if !has_rights {
        println!("without root and CAP_SYS_NICE: no groups and no real-time policy in this test");
    }
    killed("caller, SIGKILL", |child, _| vec![(child, libc::SIGKILL)]);
    killed("caller, SIGINT", |child, _| vec![(child, libc::SIGINT)]);
    killed("caller, SIGTERM", |child, _| vec![(child, libc::SIGTERM)]);
    killed("launcher, SIGKILL", |_, launcher| vec![(launcher, libc::SIGKILL)]);
    killed("launcher, SIGTERM", |_, launcher| vec![(launcher, libc::SIGTERM)]);
    for moment in Moment::random(50) {
        moment.strike();
    }
    println!("50 random moments: nothing left");
    thousand_hogs(has_rights);
    println!("test result: ok. 7 passed");
}

/// A moment in the life of a run, and the signal at that moment.
struct Moment {
    after: Duration,
    signal: i32,
    strikes_launcher: bool,
}

impl Moment {
    /// Random moments, from before the launcher exists until the run is fully started.
    fn random(count: u32) -> Vec<Self> {
        let mut stream = Stream::new(u64::from(std::process::id()), Purpose::Program, 0);
        let signals = [libc::SIGKILL, libc::SIGINT, libc::SIGTERM];
        let mut moment = |_| Self {
            after: Duration::from_micros(stream.between(0, 150_000)),
            signal: signals[stream.between(0, 2) as usize],
            strikes_launcher: stream.between(0, 2) == 0,
        };
        (0..count).map(&mut moment).collect()
    }

    fn strike(&self) {
        let exe = std::env::current_exe().unwrap();
        let mut command = Command::new(exe);
        command.env(VICTIM, "1").stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        let mut launcher = None;
        while start.elapsed() < self.after {
            launcher = child_of(child.id()).or(launcher);
            std::thread::sleep(Duration::from_micros(200));
        }
        launcher = child_of(child.id()).or(launcher);
        let struck = launcher.filter(|_| self.strikes_launcher).unwrap_or(child.id() as i32);
        // SAFETY: a process that this test started, or its child.
        unsafe { libc::kill(struck, self.signal) };
        // Before the launcher there may be another child, which tests what the kernel supports.
        let deadline = Instant::now() + Duration::from_secs(2);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                // SAFETY: as above.
                unsafe { libc::kill(child.id() as i32, self.signal) };
            }
            launcher = child_of(child.id()).or(launcher);
            std::thread::sleep(Duration::from_millis(2));
        }
        let what = format!("{} after {:?}", self.signal, self.after);
        wait_until_clean(&what, || {
            let mut left = launcher.map_or_else(Vec::new, leftovers);
            left.extend(victims().iter().map(|pid| format!("process {pid}")));
            left
        });
    }
}

/// Processes of the victim: this program, but not this process.
fn victims() -> Vec<i32> {
    let exe = std::env::current_exe().unwrap();
    let own = std::process::id() as i32;
    let is_victim = |pid: &i32| {
        *pid != own && std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|of| of == exe)
    };
    processes().iter().map(|(pid, _)| *pid).filter(is_victim).collect()
}

/// As root: a thousand endless FIFO hogs on every CPU of this machine, for half a second.
fn thousand_hogs(has_rights: bool) {
    if !has_rights {
        let reason = "real-time policies need CAP_SYS_NICE";
        return schedlab_testing::skip_named("a thousand FIFO hogs", reason);
    }
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let mut hog = TaskSpec::new("hog", forever);
    hog.instances = 1000;
    let mut workload = Workload::new("thousand", vec![hog]);
    workload.duration_ns = Some(500_000_000);
    let mut request = HostRequest::new(workload, 1);
    request.policy = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 50 });
    let outcome = HostLane.play(&request, &mut NullSink).expect("the hogs are played");
    assert_eq!(outcome.tasks.len(), 1000);
    assert!(outcome.end_ns < 20_000_000_000, "ended after {} ns", outcome.end_ns);
    wait_until_clean("a thousand hogs", || {
        victims().iter().map(|pid| format!("process {pid}")).collect()
    });
    println!("1000 FIFO hogs: ended after {} ms, nothing left", outcome.end_ns / 1_000_000);
}

fn has_rights() -> bool {
    schedlab_host::lane::is_root() && schedlab_host::lane::may_set_policies()
}

/// Adds tasks that wait forever, each in another kind of system call.
fn add_waiting(workload: &mut Workload) {
    let inherit = ObjectKind::Mutex { protocol: MutexProtocol::Inherit };
    let kinds = [
        ("mutex", ObjectKind::MUTEX),
        ("pi", inherit),
        ("condvar", ObjectKind::Condvar),
        ("barrier", ObjectKind::Barrier { parties: 9 }),
        ("polled", ObjectKind::Semaphore { initial: 0 }),
        ("pipe", ObjectKind::PIPE),
        ("ready", ObjectKind::Barrier { parties: 3 }),
    ];
    let ids = kinds.map(|(name, kind)| workload.add_object(ObjectSpec::new(name, kind)));
    let [mutex, pi, condvar, barrier, _, pipe, ready] = ids;
    workload.wait_sets.push(vec![ids[4], pipe]);
    let mut add = |name: &str, ops: &[Op]| {
        let mut program = ProgramBuilder::new();
        for op in ops {
            program.op(op.clone());
        }
        workload.tasks.push(TaskSpec::new(name, program.build()));
    };
    let (lock, meet) = (|object| Op::Lock { object }, Op::Barrier { object: ready });
    add("holder", &[lock(pi), lock(mutex), meet.clone(), Op::Barrier { object: barrier }]);
    add("plain", &[meet.clone(), lock(mutex)]);
    add("inheriting", &[meet, lock(pi)]);
    add("any", &[Op::WaitAny { set: 0 }]);
    add("reader", &[Op::Receive { channel: pipe, bytes: Amount::Constant(1) }]);
    let own = workload.add_object(ObjectSpec::new("own", ObjectKind::MUTEX));
    let wait = Op::Wait { condvar, mutex: own };
    let mut waiter = ProgramBuilder::new();
    waiter.lock(own).op(wait);
    workload.tasks.push(TaskSpec::new("waiter", waiter.build()));
}

/// Plays until a signal ends it.
fn victim() {
    // A shell starts background commands with SIGINT ignored, and children inherit that.
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: back to the default; no handler of this program is lost.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let io = Op::Io { direction: IoDirection::Write, bytes: Amount::Constant(100), sync: false };
    let mut program = ProgramBuilder::new();
    program.begin_loop(LoopCount::Forever).run(1_000_000).op(io).op(Op::Fork { task: 1 });
    program.op(Op::JoinAll).end_loop();
    let mut hog = TaskSpec::new("hog", program.build());
    hog.instances = 3;
    // By then the others wait, under any policy.
    hog.release_ns = Amount::Constant(5_000_000);
    let forever =
        ProgramBuilder::new().begin_loop(LoopCount::Forever).run(1_000_000).end_loop().build();
    let mut child = TaskSpec::new("child", forever);
    child.instances = 0;
    let mut workload = Workload::new("victim", vec![hog, child]);
    add_waiting(&mut workload);
    let mut request_policy = None;
    if has_rights() {
        for task in &mut workload.tasks {
            task.attr.cgroup = CgroupId(1);
        }
        let group = CgroupSpec::new("/g", CgroupId(0), 100);
        workload.cgroups.push(group);
        request_policy = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 97 });
    }
    let mut request = HostRequest::new(workload, 1);
    request.policy = request_policy;
    request.limit_ns = 20_000_000_000;
    let error = HostLane.play(&request, &mut NullSink).expect_err("nobody ended the victim");
    println!("victim: {error}");
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(15), "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// (pid, process group) of every process.
fn processes() -> Vec<(i32, i32)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        (state != "Z").then_some((pid, group))
    })
    .collect()
}

/// The only child of process `pid`.
fn child_of(pid: u32) -> Option<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The launcher: the victim's only child, leader of a group with several tasks.
fn launcher_of(child: &Child) -> Option<i32> {
    let launcher = child_of(child.id())?;
    let tasks = processes().iter().filter(|(_, group)| *group == launcher).count();
    (tasks > 6).then_some(launcher)
}

fn leftovers(launcher: i32) -> Vec<String> {
    let mut left: Vec<String> = processes()
        .iter()
        .filter(|(_, group)| *group == launcher)
        .map(|(pid, _)| format!("process {pid}"))
        .collect();
    if let Some(controller) = schedlab_host::cgroup::CpuController::detect() {
        let group = controller.root().join(format!("schedlab-{launcher}"));
        left.extend(group.exists().then(|| group.display().to_string()));
    }
    for parent in schedlab_host::files::candidates() {
        left.extend(files_in(&parent, launcher));
    }
    left
}

fn files_in(parent: &Path, launcher: i32) -> Vec<String> {
    let prefix = format!("schedlab-io-{launcher}-");
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

fn killed(name: &str, signals: impl Fn(i32, i32) -> Vec<(i32, i32)>) {
    let exe = std::env::current_exe().unwrap();
    let mut child = Command::new(exe).env(VICTIM, "1").spawn().unwrap();
    let mut launcher = 0;
    wait_for("the victim's tasks", || {
        launcher = launcher_of(&child).unwrap_or(0);
        launcher != 0
    });
    assert!(!leftovers(launcher).is_empty(), "the test sees what it is to look for");
    for (pid, signal) in signals(child.id() as i32, launcher) {
        // SAFETY: a process that this test started.
        unsafe { libc::kill(pid, signal) };
    }
    child.wait().unwrap();
    wait_until_clean(name, || leftovers(launcher));
    println!("{name}: nothing left");
}

fn wait_until_clean(name: &str, leftovers: impl Fn() -> Vec<String>) {
    let mut left = Vec::new();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        left = leftovers();
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{name}: left behind: {left:?}");
}
