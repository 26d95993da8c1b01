// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers and their clients: a database (`oltp`) and a web server's threads (`schbench`).
//!
//! Source of `schbench`: the program of that name by Chris Mason, version 1.0 (message threads, one
//! think time, then work; a worker asks for the next request by posting its message thread). Left
//! out: its per-CPU spin locks (`-L`), its fixed request rate and its pipe mode. A program cannot
//! name a waiting task, so a message thread wakes the worker that has waited longest; schbench
//! wakes the one that asked.
//!
//! `oltp` is a closed system: each client thinks, sends a transaction and waits for its answer. The
//! clients are alike, and an answer goes to the one that has waited longest.

use super::args::{Args, BuiltinError};
use schedlab_model::program::{IoDirection, ProgramBuilder};
use schedlab_model::{
    Amount, LoopCount, Nanos, ObjectId, ObjectKind, ObjectSpec, Op, Program, SchedAttr, TaskSpec,
    Workload,
};

/// Message threads. Each has two semaphores: one that its workers post, and one that it posts.
pub(super) fn schbench(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = SchedAttr { nice: args.nice("nice"), ..args.attr()? };
    let work = Amount::Constant(args.number("work"));
    let think = args.number("think");
    let mut objects = Vec::new();
    let mut tasks = Vec::new();
    for index in 0..args.count("message_threads") {
        let (asked, woken) = (ObjectId(2 * index), ObjectId(2 * index + 1));
        for name in [format!("asked{index}"), format!("woken{index}")] {
            objects.push(ObjectSpec::new(name, ObjectKind::Semaphore { initial: 0 }));
        }
        let message = ProgramBuilder::new()
            .begin_loop(LoopCount::Forever)
            .op(Op::SemWait { object: asked })
            .op(Op::SemPost { object: woken })
            .end_loop()
            .build();
        let mut builder = ProgramBuilder::new();
        builder
            .begin_loop(LoopCount::Forever)
            .op(Op::SemPost { object: asked })
            .op(Op::SemWait { object: woken });
        if think > 0 {
            builder.sleep(think);
        }
        let request = builder.op(Op::Run(work)).op(Op::Progress).end_loop().build();
        let mut worker = TaskSpec::new(format!("worker{index}"), request);
        worker.instances = args.count("threads");
        worker.working_set_bytes = args.number("footprint");
        tasks.push(TaskSpec::new(format!("message{index}"), message));
        tasks.push(worker);
    }
    tasks.iter_mut().for_each(|task| task.attr = attr);
    let mut workload = Workload::new("schbench", tasks);
    workload.objects = objects;
    workload.duration_ns = Some(args.number("until"));
    Ok(workload)
}

/// The channels of `oltp`; the mutexes of the tables and of the log follow.
const REQUESTS: ObjectId = ObjectId(0);
const ANSWERS: ObjectId = ObjectId(1);
const LOG: ObjectId = ObjectId(2);
/// Number of the first table's mutex.
const TABLES: u32 = 3;

/// Size (bytes) of a transaction's text, and of its answer.
const REQUEST_BYTES: u64 = 256;
const ANSWER_BYTES: u64 = 1024;

/// Clients, and the threads of a server. A free thread serves the next client that asks.
pub(super) fn oltp(args: &Args) -> Result<Workload, BuiltinError> {
    let attr = args.attr()?;
    let (servers, tables) = (args.count("servers"), args.count("tables"));
    if args.number("reads") > args.number("statements") {
        return Err(args.conflict(format!(
            "reads ({}) is above statements ({}): a statement reads at most once",
            args.number("reads"),
            args.number("statements")
        )));
    }
    let client = ProgramBuilder::new()
        .begin_loop(LoopCount::Forever)
        .op(Op::Sleep(Amount::Exponential { mean: args.number("think") }))
        .send(REQUESTS, REQUEST_BYTES)
        .receive(ANSWERS, ANSWER_BYTES)
        .op(Op::Progress)
        .end_loop()
        .build();
    let mut client = TaskSpec::new("client", client);
    client.instances = args.count("clients");
    client.is_process = true;
    let mut tasks = vec![client];
    for server in 0..servers {
        tasks.push(TaskSpec::new(format!("server{server}"), transaction(args, server)));
    }
    for task in &mut tasks {
        task.attr = attr;
    }
    // The clients represent other machines: only the server has the nice value.
    tasks.iter_mut().skip(1).for_each(|task| task.attr.nice = args.nice("nice"));
    let mut workload = Workload::new("oltp", tasks);
    workload.objects = vec![
        ObjectSpec::new("requests", ObjectKind::PIPE),
        ObjectSpec::new("answers", ObjectKind::PIPE),
        ObjectSpec::new("log", ObjectKind::MUTEX),
    ];
    let table = |index| ObjectSpec::new(format!("table{index}"), ObjectKind::MUTEX);
    workload.objects.extend((0..tables).map(table));
    workload.duration_ns = Some(args.number("until"));
    Ok(workload)
}

/// What server thread number `server` does for each request. Its statements use the tables in turn.
/// Each server begins with another table.
fn transaction(args: &Args, server: u32) -> Program {
    let (statements, tables) = (args.count("statements"), args.count("tables"));
    // Half of a statement's work is done under its table's lock.
    let half: Nanos = args.number("work") / u64::from(statements) / 2;
    let work = Op::Run(Amount::Exponential { mean: half.max(1) });
    let io = |direction, bytes| Op::Io { direction, bytes: Amount::Constant(bytes), sync: true };
    let mut builder = ProgramBuilder::new();
    builder.begin_loop(LoopCount::Forever).receive(REQUESTS, REQUEST_BYTES);
    for statement in 0..statements {
        let table = ObjectId(TABLES + (server + statement) % tables);
        builder.op(work.clone()).lock(table).op(work.clone());
        if u64::from(statement) < args.number("reads") {
            builder.op(io(IoDirection::Read, args.number("page")));
        }
        builder.unlock(table);
    }
    if args.number("log") > 0 {
        builder.lock(LOG).op(io(IoDirection::Write, args.number("log"))).unlock(LOG);
    }
    builder.send(ANSWERS, ANSWER_BYTES).end_loop().build()
}

#[cfg(test)]
mod tests {
    use crate::builtin::builtin;
    use schedlab_model::Op;

    #[test]
    fn a_transaction_gives_back_what_it_locks() {
        let workload = builtin("oltp", &[("statements", "5"), ("tables", "3")]).unwrap();
        for server in workload.tasks.iter().skip(1) {
            let mut held = Vec::new();
            let mut reads_under_lock = 0;
            for op in &server.program.ops {
                match op {
                    Op::Lock { object } => held.push(*object),
                    Op::Unlock { object } => assert_eq!(held.pop(), Some(*object)),
                    Op::Io { .. } => reads_under_lock += held.len(),
                    _ => assert!(held.len() <= 1),
                }
            }
            assert!(held.is_empty());
            assert_eq!(reads_under_lock, 2, "one read of a table, one write of the log");
        }
        let error = builtin("oltp", &[("reads", "9")]).unwrap_err().to_string();
        assert!(error.contains("reads (9) is above statements (4)"), "{error}");
    }

    #[test]
    fn schbench_has_one_pair_of_semaphores_a_message_thread() {
        let workload = builtin("schbench", &[("message_threads", "3"), ("threads", "5")]).unwrap();
        assert_eq!(workload.objects.len(), 6);
        assert_eq!(workload.nr_released(), 3 * (1 + 5));
        let no_think = builtin("schbench", &[("think", "0us")]).unwrap();
        let sleeps = |op: &Op| matches!(op, Op::Sleep(_));
        assert!(!no_think.tasks.iter().any(|task| task.program.ops.iter().any(sleeps)));
    }
}
