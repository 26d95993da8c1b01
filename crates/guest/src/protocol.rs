// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes between the lab and its guest: one block of shared memory (ivshmem), written by one
//! side at a time.
//!
//! The lab writes the request before the guest starts, or while it is paused; the guest writes its
//! reply and the trace over it and ends. A serial line would take a second for a megabyte of trace;
//! this takes some milliseconds, and needs no driver in the guest's kernel.
//!
//! Layout: a page of words (u64, little-endian, see [`word`]), then the request, or the reply
//! (JSON) followed by the trace (the lab's own log).

use crate::wire::wire_struct;
use schedlab_model::{CpuMask, Nanos, Workload};
use schedlab_run::{LaneError, RunResult};
use serde::{Deserialize, Serialize};

/// Bytes of the shared memory. A trace of some twelve million events fits.
pub const SHARED_BYTES: usize = 64 << 20;
/// First byte of the request and of the reply.
pub const BODY: usize = 4096;
/// Marks the memory as this protocol's, in this version: "slabvm" and a number. It goes up whenever
/// a guest of before would not understand: another device, another shape of the request.
pub const MAGIC: u64 = u64::from_le_bytes(*b"slabvm\x03\x00");

/// Offsets of the words.
pub mod word {
    /// [`super::MAGIC`], by the lab.
    pub const MAGIC: usize = 0;
    /// How far the guest has come: [`super::stage`].
    pub const STAGE: usize = 8;
    /// Bytes of the request.
    pub const REQUEST_LEN: usize = 16;
    /// Bytes of the reply.
    pub const REPLY_LEN: usize = 24;
    /// Bytes of the trace, which follows the reply.
    pub const TRACE_LEN: usize = 32;
    /// Not 0: the clock counts instructions, and the guest arranges to be paused, at a fixed time,
    /// before it reads the request.
    pub const PAUSES: usize = 40;
}

/// How far a guest has come.
pub mod stage {
    /// It has not found the memory yet.
    pub const BOOTING: u64 = 0;
    /// It is ready for a request.
    pub const READY: u64 = 1;
    /// It has read the request and works on it.
    pub const WORKING: u64 = 2;
    /// Reply and trace are complete.
    pub const DONE: u64 = 3;

    /// The stage in words.
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
/// What the guest writes for [`EXIT_DONE`].
pub const DEBUG_EXIT_DONE: u32 = 0x2a;
/// I/O port of the device that ends QEMU.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;
/// I/O port of the watchdog (ib700) that pauses the machine.
pub const PAUSE_PORT: u16 = 0x443;
/// Starts the watchdog: it expires two seconds later.
pub const PAUSE_IN_TWO_SECONDS: u8 = 0x0e;

/// One run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestRequest {
    /// What to run.
    pub workload: Workload,
    /// The sched_ext scheduler to load; `None`: the kernel's own class.
    pub ext: Option<ExtRequest>,
    /// CPUs of the run.
    pub cpus: CpuMask,
    /// Seed of every draw.
    pub seed: u64,
    /// The run ends here if it has not ended before.
    pub until_ns: Option<Nanos>,
    /// Time that every instruction takes, ns, with a counted clock.
    pub instruction_ns: Option<Nanos>,
    /// Files to write before the run: path and text (sysctl, scheduler settings).
    pub writes: Vec<(String, String)>,
    /// The workload is played again and again until this much of the guest's time has passed since
    /// the first round began, under one loading of the scheduler; `None`: once.
    pub soak_ns: Option<Nanos>,
}

/// A sched_ext scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtRequest {
    /// Its name or path, as the user wrote it.
    pub name: String,
    /// The BPF object.
    pub object: Vec<u8>,
    /// Its options, as text.
    pub options: Vec<(String, String)>,
}

wire_struct!(ExtRequest { name, object, options });
wire_struct!(GuestRequest { workload, ext, cpus, seed, until_ns, instruction_ns, writes, soak_ns });

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

/// What a guest gives back beside the trace.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GuestReply {
    /// The result of the host lane in the guest, without a timeline.
    pub result: Option<RunResult>,
    /// Why there is none.
    pub error: Option<GuestError>,
    /// What the kernel logged during the run, a line each.
    pub kernel_log: Vec<String>,
    /// State of sched_ext before the run; `None`: the kernel has none.
    pub ext_before: Option<ExtState>,
    /// The same after it, while the scheduler is still loaded.
    pub ext_after: Option<ExtState>,
    /// What the loaded scheduler counted.
    pub ext_counters: Vec<(String, u64)>,
    /// How often the workload was played.
    pub nr_rounds: u64,
    /// Time that all rounds took, ns of the guest.
    pub rounds_ns: u64,
}

/// What /sys/kernel/sched_ext says.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ExtState {
    /// `enabled`, `disabled`, `disabling` ...
    pub state: String,
    /// Name of the loaded scheduler; empty if none is.
    pub ops: String,
    /// Tasks that the scheduler has refused.
    pub nr_rejected: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{decode, encode};

    #[test]
    fn a_request_comes_back_as_it_went() {
        let request = GuestRequest {
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
            writes: vec![("kernel.sched_rt_runtime_us".into(), "950000".into())],
            soak_ns: Some(60_000_000_000),
        };
        assert_eq!(decode(&encode(&request)), Ok(request));
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
