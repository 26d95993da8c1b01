// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks of message passing: `hackbench` and a ring of processes.
//!
//! Sources: hackbench of rt-tests (its options and defaults; the parameters have the long names of
//! its options) and `lat_ctx` of lmbench. Left out: hackbench's `--inet` and the time for setting
//! up sockets.

use super::args::{Args, BuiltinError};
use schedlab_model::objects::{PIPE_BYTES, SOCKET_SNDBUF_BYTES, socket_payload_bytes};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::{
    Amount, ChannelKind, LoopCount, MemAccess, MemPattern, ObjectId, ObjectKind, ObjectSpec, Op,
    Program, SchedAttr, TaskSpec, Workload,
};

/// Most receivers. Each has its own channel and description.
const RECEIVERS_MAX: u64 = 50_000;

/// A channel that carries messages of `message` bytes.
fn channel(name: String, pipe: bool, message: u64) -> ObjectSpec {
    let kind = match pipe {
        true => ObjectKind::Channel { kind: ChannelKind::Pipe, capacity_bytes: PIPE_BYTES },
        false => ObjectKind::Channel {
            kind: ChannelKind::SocketPair,
            capacity_bytes: socket_payload_bytes(SOCKET_SNDBUF_BYTES, message),
        },
    };
    ObjectSpec::new(name, kind)
}

/// The worker posts this when it is ready, and waits for the start.
const READY: ObjectId = ObjectId(0);
const WAKE: ObjectId = ObjectId(1);

/// A worker: reports that it is ready, waits for the start, then executes `body` `loops` times.
fn worker(loops: u64, body: &[Op]) -> Program {
    let mut builder = ProgramBuilder::new();
    builder.send(READY, 1).op(Op::WaitAny { set: 0 }).begin_loop(LoopCount::Times(loops));
    for op in body {
        builder.op(op.clone());
    }
    builder.end_loop().build()
}

/// `hackbench --groups G --fds F --loops L --datasize S`: in each group F senders write L messages
/// to each of F receivers.
pub(super) fn hackbench(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let (groups, fds) = (args.number("groups"), args.number("fds"));
    let (loops, datasize) = (args.number("loops"), args.number("datasize"));
    let (pipe, is_process) = (args.word("ipc") == "pipe", args.word("mode") == "process");
    if groups * fds > RECEIVERS_MAX {
        return Err(args.conflict(format!(
            "groups ({groups}) times fds ({fds}) is above {RECEIVERS_MAX}: lower one of them"
        )));
    }
    let mut objects = vec![channel("ready".into(), pipe, 1), channel("wake".into(), pipe, 1)];
    let mut tasks = Vec::new();
    let mut parent = ProgramBuilder::new();
    parent.op(Op::Phase(0));
    for group in 0..groups {
        let mut to_all = Vec::new();
        for fd in 0..fds {
            let id = ObjectId(objects.len() as u32);
            objects.push(channel(format!("group{group}.{fd}"), pipe, datasize));
            let bytes = Amount::Constant(datasize);
            to_all.push(Op::Send { channel: id, bytes });
            let program = worker(loops * fds, &[Op::Receive { channel: id, bytes }]);
            parent.op(Op::Fork { task: tasks.len() as u32 + 1 });
            tasks.push(TaskSpec::new(format!("receiver{group}.{fd}"), program));
        }
        let task = tasks.len() as u32 + 1;
        parent.begin_loop(LoopCount::Times(fds)).op(Op::Fork { task }).end_loop();
        tasks.push(TaskSpec::new(format!("sender{group}"), worker(loops, &to_all)));
    }
    // The workers are all there; now the clock would start.
    parent.begin_loop(LoopCount::Times(2 * groups * fds)).receive(READY, 1).end_loop();
    let parent = parent.op(Op::Phase(1)).send(WAKE, 1).op(Op::JoinAll).build();
    let mut parent = TaskSpec::new("hackbench", parent);
    parent.phases = vec!["set up".into(), "run".into()];
    parent.is_process = true;
    for task in &mut tasks {
        task.instances = 0;
        task.is_process = is_process;
    }
    tasks.insert(0, parent);
    tasks.iter_mut().for_each(|task| task.attr = attr);
    let mut workload = Workload::new("hackbench", tasks);
    workload.objects = objects;
    workload.wait_sets = vec![vec![WAKE]];
    Ok(workload)
}

/// Size (bytes) of the token: an `int`, as in lat_ctx.
const TOKEN_BYTES: u64 = 4;

/// `lat_ctx -s SIZE N`: processes in a ring of pipes pass on a token. The process that receives it
/// reads its working set. One round is one unit of progress.
pub(super) fn token_ring(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let (n, size, rounds) = (args.count("n"), args.number("size"), args.number("rounds"));
    let is_process = args.word("mode") == "process";
    let read = Op::MemRun {
        access: MemAccess::Read,
        pattern: MemPattern::Sequential,
        size_bytes: size.max(8),
        stride_bytes: 8,
        count: Amount::Constant(size / 8),
    };
    let tasks = (0..n).map(|index| {
        let (own, next) = (ObjectId(index), ObjectId((index + 1) % n));
        let mut builder = ProgramBuilder::new();
        builder.begin_loop(LoopCount::Times(rounds));
        // The first one brings the token in and takes it out again.
        if index == 0 {
            builder.send(next, TOKEN_BYTES);
        }
        builder.receive(own, TOKEN_BYTES);
        if size >= 8 {
            builder.op(read.clone());
        }
        builder.op(if index == 0 {
            Op::Progress
        } else {
            Op::Send { channel: next, bytes: Amount::Constant(TOKEN_BYTES) }
        });
        let mut task = TaskSpec::new(format!("ring{index}"), builder.end_loop().build());
        task.attr = attr;
        task.is_process = is_process;
        task.working_set_bytes = size;
        task
    });
    let mut workload = Workload::new("token_ring", tasks.collect());
    let pipe = |index| ObjectSpec::new(format!("pipe{index}"), ObjectKind::PIPE);
    workload.objects = (0..n).map(pipe).collect();
    Ok(workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::builtin;

    #[test]
    fn hackbench_has_rt_tests_defaults() {
        let workload = builtin("hackbench", &[]).unwrap();
        assert_eq!(workload.nr_tasks_least(), 1 + 10 * 40);
        // A channel for each receiver, and those for the start.
        assert_eq!(workload.objects.len(), 10 * 20 + 2);
        let sender = workload.tasks.iter().find(|task| task.name == "sender0").unwrap();
        assert!(sender.is_process && sender.instances == 0);
        let sends = |op: &Op| matches!(op, Op::Send { bytes: Amount::Constant(100), .. });
        assert_eq!(sender.program.ops.iter().filter(|op| sends(op)).count(), 20);
        assert!(sender.program.ops.contains(&Op::LoopBegin {
            count: LoopCount::Times(100),
            end: sender.program.ops.len() as u32 - 1
        }));
        let receiver = &workload.tasks[1].program;
        assert_eq!(receiver.ops[2], Op::LoopBegin { count: LoopCount::Times(2_000), end: 4 });
    }

    #[test]
    fn a_socket_holds_as_many_messages_as_its_send_buffer_pays_for() {
        // 100 bytes take 512 + 256 bytes of memory: 278 of them fill 212,992 bytes. 4,000 bytes
        // take a page, 256 bytes and a slab of 512.
        for (datasize, capacity) in [("100", 27_800), ("4000", 44 * 4_000)] {
            let sockets = builtin("hackbench", &[("datasize", datasize)]).unwrap();
            let kind = ChannelKind::SocketPair;
            let wanted = ObjectKind::Channel { kind, capacity_bytes: capacity };
            assert_eq!(sockets.objects[2].kind, wanted, "{datasize}");
            let start = ObjectKind::Channel { kind, capacity_bytes: 278 };
            assert_eq!(sockets.objects[0].kind, start);
        }
        let pipes = builtin("hackbench", &[("ipc", "pipe"), ("groups", "1")]).unwrap();
        assert!(pipes.objects.iter().all(|object| object.kind == ObjectKind::PIPE));
    }

    #[test]
    fn everyone_in_the_ring_hands_on_what_it_gets() {
        let workload = builtin("token_ring", &[("n", "3"), ("size", "64KiB")]).unwrap();
        for (index, task) in workload.tasks.iter().enumerate() {
            let index = index as u32;
            let channels: Vec<_> = task
                .program
                .ops
                .iter()
                .filter_map(|op| match op {
                    Op::Receive { channel, .. } | Op::Send { channel, .. } => Some(channel.0),
                    _ => None,
                })
                .collect();
            let (own, next) = (index, (index + 1) % 3);
            assert_eq!(channels, if index == 0 { [next, own] } else { [own, next] });
            assert_eq!(task.working_set_bytes, 64 << 10);
        }
    }
}
