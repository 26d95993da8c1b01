// SPDX-License-Identifier: MIT OR Apache-2.0
//! The communication between the host and its guest: one block of shared memory (ivshmem), which
//! one side at a time writes.
//!
//! The host writes the request before the guest starts, or while it is paused. The guest overwrites
//! it with its reply and the trace, and ends. A serial line would take a second for a megabyte of
//! trace; this takes some milliseconds and needs no driver in the guest's kernel.
//!
//! Layout: a page of words (u64, little-endian, see [`word`]), then the request, or the reply
//! (JSON) followed by the trace (schedlab's own log).

use borsh::{BorshDeserialize, BorshSerialize};
use schedlab_host::ext::verdict::ObjectLog;
use schedlab_model::{CpuMask, Nanos, Workload};
use schedlab_run::{LaneError, RunResult};
use schedlab_scx_source::ReadySetup;
use serde::{Deserialize, Serialize};

/// Size of the shared memory (bytes). A trace of some twelve million events fits.
pub const SHARED_BYTES: usize = 64 << 20;
/// Offset of the request and of the reply.
pub const BODY: usize = 4096;
/// Identifies the memory as this protocol's, and its version: "slabvm" and a number. The number
/// increases whenever an older guest would not understand the protocol: another device, another
/// form of the request.
pub const MAGIC: u64 = u64::from_le_bytes(*b"slabvm\x05\x00");

/// Offsets of the words.
pub mod word {
    /// [`super::MAGIC`], written by the host.
    pub const MAGIC: usize = 0;
    /// The guest's progress: [`super::stage`].
    pub const STAGE: usize = 8;
    /// Bytes of the request.
    pub const REQUEST_LEN: usize = 16;
    /// Bytes of the reply.
    pub const REPLY_LEN: usize = 24;
    /// Bytes of the trace, which follows the reply.
    pub const TRACE_LEN: usize = 32;
    /// Not 0: the clock counts instructions. The guest has itself paused, at a fixed time, before
    /// it reads the request.
    pub const PAUSES: usize = 40;
    /// What the request asks for: [`super::kind`].
    pub const KIND: usize = 48;
}

/// Kinds of requests.
pub mod kind {
    /// [`super::Request::Run`].
    pub const RUN: u64 = 0;
    /// [`super::Request::Verify`].
    pub const VERIFY: u64 = 1;
    /// [`super::Request::RunUnder`].
    pub const RUN_UNDER: u64 = 2;
    /// [`super::Request::RunSetUp`].
    pub const RUN_SET_UP: u64 = 3;
}

/// Stages of a guest.
pub mod stage {
    /// It has not found the memory yet.
    pub const BOOTING: u64 = 0;
    /// It is ready for a request.
    pub const READY: u64 = 1;
    /// It has read the request and executes it.
    pub const WORKING: u64 = 2;
    /// Reply and trace are complete.
    pub const DONE: u64 = 3;

    /// Describes the stage.
    pub const fn text(stage: u64) -> &'static str {
        match stage {
            BOOTING => "while it booted",
            READY => "before it read its request",
            WORKING => "during the run",
            _ => "after the run",
        }
    }
}

/// Exit code of a guest that has written its reply, as QEMU reports it (isa-debug-exit: code * 2 +
/// 1).
pub const EXIT_DONE: i32 = 0x2a * 2 + 1;
/// The value that the guest writes for [`EXIT_DONE`].
pub const DEBUG_EXIT_DONE: u32 = 0x2a;
/// I/O port of the device that ends QEMU.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// I/O port of the watchdog (ib700) that pauses the machine.
pub const PAUSE_PORT: u16 = 0x443;
/// Starts the watchdog: it expires two seconds later.
pub const PAUSE_IN_TWO_SECONDS: u8 = 0x0e;

/// What a guest is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// To run a workload.
    Run(GuestRequest),
    /// To load each program of a scheduler, with what its user program would set, and to return the
    /// verifier's log.
    Verify(ExtRequest, Option<ReadySetup>),
    /// To run a workload while a program has its scheduler loaded.
    RunUnder(GuestRequest, SchedulerCommand),
    /// To run a workload under the request's scheduler, with what its user program would set.
    RunSetUp(GuestRequest, ReadySetup),
}

/// A request as it is sent: its kind is a word of the first page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Message {
    /// One of [`kind`].
    pub kind: u64,
    /// The request.
    pub bytes: Vec<u8>,
}

impl Request {
    /// Encodes the request. Both ends are built from the same sources and check this ([`MAGIC`]),
    /// so other versions need not be read. A workload's expectations are left out, because lanes
    /// ignore them.
    pub fn encode(&self) -> Message {
        match self {
            Self::Run(request) => Message { kind: kind::RUN, bytes: bytes_of(request) },
            Self::Verify(request, setup) => {
                Message { kind: kind::VERIFY, bytes: bytes_of(&(request, setup)) }
            }
            Self::RunUnder(request, command) => {
                Message { kind: kind::RUN_UNDER, bytes: bytes_of(&(request, command)) }
            }
            Self::RunSetUp(request, setup) => {
                Message { kind: kind::RUN_SET_UP, bytes: bytes_of(&(request, setup)) }
            }
        }
    }

    /// Decodes a request of [`Self::encode`]. Fails if bytes are missing, left over or invalid. A
    /// wrong length allocates no memory.
    pub fn decode(message: &Message) -> std::io::Result<Self> {
        match message.kind {
            kind::RUN => borsh::from_slice(&message.bytes).map(Self::Run),
            kind::VERIFY => borsh::from_slice(&message.bytes)
                .map(|(request, setup)| Self::Verify(request, setup)),
            kind::RUN_UNDER => borsh::from_slice(&message.bytes)
                .map(|(request, command)| Self::RunUnder(request, command)),
            kind::RUN_SET_UP => borsh::from_slice(&message.bytes)
                .map(|(request, setup)| Self::RunSetUp(request, setup)),
            other => Err(std::io::Error::other(format!("kind {other} is not known"))),
        }
    }
}

fn bytes_of(request: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(request).expect("a sequence holds fewer than 2^32 items")
}

/// One run.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct GuestRequest {
    /// The workload.
    pub workload: Workload,
    /// The sched_ext scheduler to load; `None`: the kernel's own class.
    pub ext: Option<ExtRequest>,
    /// CPUs of the run.
    pub cpus: CpuMask,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The run ends at this time (ns) if it has not ended before.
    pub until_ns: Option<Nanos>,
    /// Time (ns) of each instruction, with a counted clock.
    pub instruction_ns: Option<Nanos>,
    /// How much longer a switch may take (ns), with a counted clock.
    pub switch_jitter_ns: Nanos,
    /// Files to write before the run: path and text (sysctl, scheduler settings).
    pub writes: Vec<(String, String)>,
    /// The workload is repeated until this much of the guest's time (ns) has passed since the first
    /// round began, while the scheduler stays loaded; `None`: it runs once.
    pub soak_ns: Option<Nanos>,
}

/// A sched_ext scheduler.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct ExtRequest {
    /// Its name or path, as the user wrote it.
    pub name: String,
    /// The BPF object.
    pub object: Vec<u8>,
    /// Its options, as text.
    pub options: Vec<(String, String)>,
}

/// A program that loads a sched_ext scheduler and stays until it is interrupted.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct SchedulerCommand {
    /// Its path in the guest, and its arguments.
    pub argv: Vec<String>,
    /// The program and the libraries that it needs.
    pub files: Vec<GuestFile>,
}

/// A program or a library in the guest.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct GuestFile {
    /// Absolute path.
    pub path: String,
    /// Bytes of the file.
    pub content: Vec<u8>,
}

/// An error of the guest's lane.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuestError {
    /// `input`, `unavailable`, `check` or `system`.
    pub kind: String,
    /// What happened.
    pub text: String,
}

impl From<LaneError> for GuestError {
    fn from(error: LaneError) -> Self {
        let kind = match error {
            LaneError::Input(_) => "input",
            LaneError::Unavailable(_) => "unavailable",
            LaneError::Check(_) => "check",
            LaneError::System(_) => "system",
        };
        Self { kind: kind.into(), text: error.text().into() }
    }
}

impl From<GuestError> for LaneError {
    fn from(error: GuestError) -> Self {
        match error.kind.as_str() {
            "input" => Self::Input(error.text),
            "unavailable" => Self::Unavailable(error.text),
            "check" => Self::Check(error.text),
            _ => Self::System(error.text),
        }
    }
}

/// The reply of a guest, without the trace.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GuestReply {
    /// The result of the host lane in the guest, without a timeline.
    pub result: Option<RunResult>,
    /// Why there is no result.
    pub error: Option<GuestError>,
    /// Lines that the kernel logged during the run.
    pub kernel_log: Vec<String>,
    /// State of sched_ext before the run; `None`: the kernel has no sched_ext.
    pub ext_before: Option<ExtState>,
    /// State of sched_ext after the run, while the scheduler is still loaded.
    pub ext_after: Option<ExtState>,
    /// The counters of the loaded scheduler.
    pub ext_counters: Vec<(String, u64)>,
    /// How often the workload was run.
    pub nr_rounds: u64,
    /// Time of all rounds (ns of the guest).
    pub rounds_ns: u64,
    /// The verifier's logs, if they were asked for.
    pub verified: Option<ObjectLog>,
}

/// The state in /sys/kernel/sched_ext.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ExtState {
    /// `enabled`, `disabled`, `disabling` ...
    pub state: String,
    /// Name of the loaded scheduler; empty if none is.
    pub ops: String,
    /// Tasks that the scheduler refused.
    pub nr_rejected: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::program::{IoDirection, MemAccess, MemPattern, SchedTunable};
    use schedlab_model::{
        Amount, CgroupId, Change, CpuMax, DeadlineParams, LoopCount, ObjectId, Op, Policy,
        SchedAttr, TimerMode,
    };
    use schedlab_run::sha::sha256;

    fn request() -> GuestRequest {
        GuestRequest {
            workload: schedlab_workload::builtin("hogs", &[("n", "3")]).unwrap(),
            ext: Some(ExtRequest {
                name: "wrr".into(),
                object: vec![0x7f, b'E'],
                options: vec![("slice_ms".into(), "5".into())],
            }),
            cpus: CpuMask::first(2),
            seed: 7,
            until_ns: Some(1_000_000_000),
            instruction_ns: Some(8),
            switch_jitter_ns: 2_000,
            writes: vec![("kernel.sched_rt_runtime_us".into(), "950000".into())],
            soak_ns: Some(60_000_000_000),
        }
    }

    /// Attributes with every policy, and everything else that can be set.
    fn attrs() -> Vec<SchedAttr> {
        use Policy::{Batch, Deadline, Ext, Fifo, Idle, Normal, Rr};
        let set = |policy| SchedAttr {
            policy,
            nice: -3,
            rt_priority: 4,
            slice_ns: Some(5),
            util_min: Some(6),
            util_max: None,
            deadline: DeadlineParams { runtime_ns: 7, deadline_ns: 8, period_ns: 9, reclaim: true },
            affinity: Some(CpuMask::first(70)),
            cgroup: CgroupId(10),
        };
        [Normal, Fifo, Rr, Batch, Idle, Deadline, Ext].map(set).into()
    }

    /// Every operation.
    fn ops() -> Vec<Op> {
        let object = ObjectId(3);
        let (condvar, mutex) = (object, ObjectId(7));
        let constant = Amount::Constant(1);
        let uniform = Amount::Uniform { low: 2, high: 3 };
        let mean = Amount::Exponential { mean: 4 };
        vec![
            Op::Run(constant),
            Op::RunWall(uniform),
            Op::Sleep(mean),
            Op::Timer { timer: 1, period: constant, mode: TimerMode::Absolute },
            Op::Io { direction: IoDirection::Write, bytes: uniform, sync: true },
            Op::Yield,
            Op::Fork { task: 5 },
            Op::JoinAll,
            Op::Join { task: 6 },
            Op::Lock { object },
            Op::Unlock { object },
            Op::Wait { condvar, mutex },
            Op::Signal { object },
            Op::Broadcast { object },
            Op::Sync { condvar, mutex },
            Op::Barrier { object },
            Op::SemWait { object },
            Op::SemPost { object },
            Op::Suspend { object },
            Op::Resume { object },
            Op::Mem { bytes: mean },
            Op::MemRun {
                access: MemAccess::Chase,
                pattern: MemPattern::Random,
                size_bytes: 8,
                stride_bytes: 9,
                count: constant,
            },
            Op::Send { channel: object, bytes: constant },
            Op::Receive { channel: object, bytes: constant },
            Op::WaitAny { set: 4 },
            Op::Exit,
            Op::SetAttr(Box::new(attrs()[5])),
            Op::LoopBegin { count: LoopCount::Times(11), end: 12 },
            Op::LoopBegin { count: LoopCount::Forever, end: 12 },
            Op::LoopEnd { begin: 13 },
            Op::Phase(14),
            Op::Progress,
        ]
    }

    /// Every change of a group.
    fn changes() -> Vec<Op> {
        let group = CgroupId(15);
        let max = CpuMax { quota_ns: 17, period_ns: 18, burst_ns: 19 };
        let changes = [
            Change::Weight { group, weight: 16 },
            Change::CpuMax { group, cpu_max: Some(max) },
            Change::CpuMax { group, cpu_max: None },
            Change::Cpus { group, cpus: Some(CpuMask::first(20)) },
        ];
        let tune = Op::Tune { tunable: SchedTunable::NrMigrate, value: 21 };
        changes.map(|change| Op::Change(Box::new(change))).into_iter().chain([tune]).collect()
    }

    /// Goldens of turns and stored runs are known by sums of these bytes: a change of the layout,
    /// even of the order of two fields, makes strangers of them.
    #[test]
    fn the_layout_of_a_request_is_fixed() {
        let builtins: Vec<u8> = schedlab_workload::BUILTINS
            .iter()
            .map(|builtin| schedlab_workload::builtin(builtin.name, &[]).unwrap())
            .flat_map(|workload| borsh::to_vec(&workload).unwrap())
            .collect();
        let sums = [
            (builtins, "69de731fc58a43f955aabd98929cee80716d83b7afd8fb4cac6dee7e76c926cd"),
            (
                borsh::to_vec(&ops()).unwrap(),
                "c5e8275dc7cf2c8594636ec48e40d33b60333636683d80dfe56fc8c6dbff3d35",
            ),
            (
                borsh::to_vec(&changes()).unwrap(),
                "1210e61d6c3e7091166850eeaa55ba367bdd7495cf9bc058fd75e437bb7dc02c",
            ),
            (
                borsh::to_vec(&attrs()).unwrap(),
                "b62c4057ca73f7a541a5bcbc9d909da2f30ba06eafa551753764e42d256cf096",
            ),
            (
                Request::Run(request()).encode().bytes,
                "aa90cadb564c51b6e319e58f83424dfec262addf5d511af74ac1ad7f312b75de",
            ),
        ];
        for (bytes, sum) in sums {
            assert_eq!(sha256(&bytes), sum, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn a_request_comes_back_as_it_went() {
        let ext = request().ext.unwrap();
        let file = GuestFile { path: "/scheduler/x".into(), content: vec![1, 2] };
        let command = SchedulerCommand { argv: vec!["x".into(), "-v".into()], files: vec![file] };
        let mut requests = vec![
            Request::Run(request()),
            Request::Verify(ext.clone(), None),
            Request::Verify(ext, Some(ReadySetup::default())),
            Request::RunUnder(request(), command),
        ];
        for builtin in schedlab_workload::BUILTINS {
            let workload = schedlab_workload::builtin(builtin.name, &[]).unwrap();
            requests.push(Request::Run(GuestRequest { workload, ext: None, ..request() }));
        }
        for sent in requests {
            assert_eq!(Request::decode(&sent.encode()).unwrap(), sent);
        }
        for ops in [ops(), changes()] {
            let read: Vec<Op> = borsh::from_slice(&borsh::to_vec(&ops).unwrap()).unwrap();
            assert_eq!(read, ops);
        }
    }

    #[test]
    fn bytes_that_are_no_request_are_refused_and_allocate_nothing() {
        let whole = Request::Run(request()).encode();
        let decode =
            |bytes: &[u8]| Request::decode(&Message { bytes: bytes.to_vec(), ..whole.clone() });
        let bytes = &whole.bytes;
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "{len}");
        }
        assert!(decode(&[bytes.as_slice(), &[0]].concat()).is_err());
        assert!(Request::decode(&Message { kind: 77, ..whole.clone() }).is_err());
        assert!(borsh::from_slice::<Vec<u64>>(&u32::MAX.to_le_bytes()).is_err());
        let cpu = borsh::to_vec(&vec![1024_u32]).unwrap();
        let error = borsh::from_slice::<CpuMask>(&cpu).unwrap_err();
        assert_eq!(error.to_string(), "CPU 1024: allowed are 0 to 1023");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x81;
            // Whatever the result is, decoding does not panic.
            let _ = decode(&damaged);
        }
    }

    #[test]
    fn an_error_keeps_its_kind() {
        for error in [
            LaneError::Input("a".into()),
            LaneError::Unavailable("b".into()),
            LaneError::Check("c".into()),
            LaneError::System("d".into()),
        ] {
            assert_eq!(LaneError::from(GuestError::from(error.clone())), error);
        }
    }
}
