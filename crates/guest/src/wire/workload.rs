// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of a workload, each with every field.

use super::{Input, Wire, WireError, wire_enum, wire_struct};
use schedlab_model::attr::DeadlineParams;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::objects::ChannelKind;
use schedlab_model::program::{IoDirection, LoopCount, MemAccess, MemPattern, TimerMode};
use schedlab_model::workload::{CgroupSpec, CpuMax, Release, SessionSpec};
use schedlab_model::{
    Amount, CgroupId, CpuId, CpuMask, MutexProtocol, ObjectId, ObjectKind, ObjectSpec, Op, Policy,
    Program, SchedAttr, TaskSpec, Workload,
};

macro_rules! wire_ids {
    ($($type:ident),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
            fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
                Ok(Self(u32::take(input)?))
            }
        }
    )*};
}
wire_ids!(ObjectId, CgroupId);

impl Wire for CpuMask {
    fn put(&self, out: &mut Vec<u8>) {
        self.weight().put(out);
        self.iter().for_each(|cpu| cpu.0.put(out));
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        let mut mask = Self::empty();
        for cpu in Vec::<u32>::take(input)? {
            if cpu as usize >= NR_CPUS_MAX {
                return Err(WireError(format!("CPU {cpu}: allowed are 0 to {}", NR_CPUS_MAX - 1)));
            }
            mask.set(CpuId(cpu));
        }
        Ok(mask)
    }
}

wire_enum!(Policy {
    0 => Normal, 1 => Fifo, 2 => Rr, 3 => Batch, 5 => Idle, 6 => Deadline, 7 => Ext,
});
wire_enum!(Amount { 0 => Constant(value), 1 => Uniform { low, high }, 2 => Exponential { mean } });
wire_enum!(LoopCount { 0 => Times(count), 1 => Forever });
wire_enum!(TimerMode { 0 => Relative, 1 => Absolute });
wire_enum!(IoDirection { 0 => Read, 1 => Write });
wire_enum!(MemAccess { 0 => Read, 1 => Write, 2 => Chase });
wire_enum!(MemPattern { 0 => Sequential, 1 => Random });
wire_enum!(Release { 0 => Fork, 1 => Wakeup });
wire_enum!(MutexProtocol { 0 => None, 1 => Inherit, 2 => Ceiling { rt_priority } });
wire_enum!(ChannelKind { 0 => Pipe, 1 => SocketPair });
wire_enum!(ObjectKind {
    0 => Mutex { protocol },
    1 => Condvar,
    2 => Barrier { parties },
    3 => Semaphore { initial },
    4 => Event,
    5 => Channel { kind, capacity_bytes },
});
wire_enum!(Op {
    0 => Run(amount),
    1 => RunWall(amount),
    2 => Sleep(amount),
    3 => Timer { timer, period, mode },
    4 => Io { direction, bytes, sync },
    5 => Yield,
    6 => Fork { task },
    7 => JoinAll,
    8 => Join { task },
    9 => Lock { object },
    10 => Unlock { object },
    11 => Wait { condvar, mutex },
    12 => Signal { object },
    13 => Broadcast { object },
    14 => Sync { condvar, mutex },
    15 => Barrier { object },
    16 => SemWait { object },
    17 => SemPost { object },
    18 => Suspend { object },
    19 => Resume { object },
    20 => Mem { bytes },
    21 => MemRun { access, pattern, size_bytes, stride_bytes, count },
    22 => Send { channel, bytes },
    23 => Receive { channel, bytes },
    24 => WaitAny { set },
    25 => Exit,
    26 => SetAttr(attr),
    27 => LoopBegin { count, end },
    28 => LoopEnd { begin },
    29 => Phase(phase),
    30 => Progress,
});
wire_struct!(DeadlineParams { runtime_ns, deadline_ns, period_ns, reclaim });
wire_struct!(SchedAttr {
    policy,
    nice,
    rt_priority,
    slice_ns,
    util_min,
    util_max,
    deadline,
    affinity,
    cgroup,
});
wire_struct!(Program { ops, nr_timers });
wire_struct!(TaskSpec {
    name,
    attr,
    instances,
    release_ns,
    interarrival_ns,
    release,
    program,
    phases,
    working_set_bytes,
    is_process,
    session,
});
wire_struct!(CpuMax { quota_ns, period_ns, burst_ns });
wire_struct!(CgroupSpec { path, parent, weight, weight_nice, cpu_max });
wire_struct!(SessionSpec { name, nice });
wire_struct!(ObjectSpec { name, kind });

impl Wire for Workload {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { name, tasks, cgroups, sessions, objects, wait_sets, duration_ns, expect: _ } =
            self;
        name.put(out);
        tasks.put(out);
        cgroups.put(out);
        sessions.put(out);
        objects.put(out);
        wait_sets.put(out);
        duration_ns.put(out);
    }
    fn take(input: &mut Input<'_>) -> Result<Self, WireError> {
        Ok(Self {
            name: Wire::take(input)?,
            tasks: Wire::take(input)?,
            cgroups: Wire::take(input)?,
            sessions: Wire::take(input)?,
            objects: Wire::take(input)?,
            wait_sets: Wire::take(input)?,
            duration_ns: Wire::take(input)?,
            expect: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{decode, encode};

    /// Every built-in workload, and every operation that they lack.
    #[test]
    fn workloads_come_back_as_they_went() {
        for builtin in schedlab_workload::BUILTINS {
            let workload = schedlab_workload::builtin(builtin.name, &[]).unwrap();
            assert_eq!(decode(&encode(&workload)), Ok(workload), "{}", builtin.name);
        }
        let object = ObjectId(3);
        let attr = SchedAttr {
            policy: Policy::Deadline,
            slice_ns: Some(5),
            affinity: Some(CpuMask::first(70)),
            ..SchedAttr::default()
        };
        let ops = vec![
            Op::SetAttr(Box::new(attr)),
            Op::Timer { timer: 1, period: Amount::Constant(7), mode: TimerMode::Absolute },
            Op::Io { direction: IoDirection::Write, bytes: Amount::Constant(1), sync: true },
            Op::Sync { condvar: object, mutex: object },
            Op::WaitAny { set: 4 },
        ];
        assert_eq!(decode(&encode(&ops)), Ok(ops));
    }

    #[test]
    fn bytes_that_are_no_workload_are_refused_and_allocate_nothing() {
        let workload = schedlab_workload::builtin("hogs", &[]).unwrap();
        let bytes = encode(&workload);
        for len in 0..bytes.len() {
            assert!(decode::<Workload>(&bytes[..len]).is_err(), "{len}");
        }
        let mut long = bytes.clone();
        long.push(0);
        assert!(decode::<Workload>(&long).unwrap_err().to_string().contains("too many"));
        assert!(decode::<Vec<u64>>(&u32::MAX.to_le_bytes()).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x81;
            // Whatever it says, it does not panic.
            let _ = decode::<Workload>(&damaged);
        }
    }
}
