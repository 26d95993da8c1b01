// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipes, socket pairs and waiting for several.

use super::*;
use schedlab_model::machine::Device;
use schedlab_model::{ChannelKind, Costs, LoopCount, Machine, Op};

fn channel(kind: ChannelKind, capacity_bytes: u64) -> ObjectKind {
    ObjectKind::Channel { kind, capacity_bytes }
}

/// Runs where copying is free too.
fn run_free(workload: &Workload, nr_cpus: u32, costs: Costs) -> Run {
    run_free_under("linux-6.12", workload, nr_cpus, costs)
}

fn run_free_under(scheduler: &str, workload: &Workload, nr_cpus: u32, costs: Costs) -> Run {
    let mut case = Case::new(workload, find(scheduler).expect("registered"), nr_cpus);
    let device = Device { copy_kib_ns: 0, ..Device::default() };
    case.machine = Machine { device, costs, ..case.machine };
    common::checks::check_case(&case).unwrap_or_else(|broken| panic!("{}", broken.text))
}

fn looped(times: u64, fill: impl FnOnce(&mut ProgramBuilder)) -> Program {
    build(|b| {
        b.begin_loop(LoopCount::Times(times));
        fill(b);
        b.end_loop();
    })
}

/// A fast producer fills the channel and then goes at the consumer's pace.
#[test]
fn a_full_pipe_holds_the_writer_back() {
    let tasks = vec![
        task(
            "producer",
            0,
            0,
            looped(50, |b| {
                b.run(MS).send(A, 100);
            }),
        ),
        task(
            "consumer",
            1,
            0,
            looped(50, |b| {
                b.receive(A, 100).run(3 * MS);
            }),
        ),
    ];
    let done = run_free(&workload(&[channel(ChannelKind::Pipe, 300)], tasks), 2, Costs::ZERO);
    assert_eq!(exit_ms(&done, "consumer"), 1 + 50 * 3);
    // The message that is being worked on and three in the pipe are ahead of the last one.
    assert_eq!(exit_ms(&done, "producer"), 1 + 46 * 3);
    assert_eq!(blocks(&done, "consumer"), [(0, "pipe a".into())]);
    assert!(blocks(&done, "producer").len() > 40);
}

/// A fast consumer waits for each message and is woken by the producer.
#[test]
fn an_empty_pipe_holds_the_reader_back() {
    let tasks = vec![
        task(
            "producer",
            0,
            0,
            looped(20, |b| {
                b.run(3 * MS).send(A, 100);
            }),
        ),
        task(
            "consumer",
            1,
            0,
            looped(20, |b| {
                b.receive(A, 100).run(MS);
            }),
        ),
    ];
    for kind in [ChannelKind::Pipe, ChannelKind::SocketPair] {
        let made = workload(&[channel(kind, 300)], tasks.clone());
        let done = run_free(&made, 2, Costs::ZERO);
        assert_eq!((exit_ms(&done, "producer"), exit_ms(&done, "consumer")), (60, 61));
        assert_eq!(wakers(&done, "consumer").len(), 20);
        assert!(wakers(&done, "consumer").iter().all(|(_, by)| by.as_deref() == Some("producer")));
    }
}

/// A message longer than the pipe goes through in parts.
#[test]
fn a_long_message_goes_through_in_parts() {
    for (kind, capacity) in [(ChannelKind::Pipe, 65_536), (ChannelKind::SocketPair, 1_000)] {
        let tasks = vec![
            task(
                "producer",
                0,
                0,
                build(|b| {
                    b.send(A, 1_000_000).run(MS);
                }),
            ),
            task(
                "consumer",
                1,
                5,
                build(|b| {
                    b.receive(A, 1_000_000);
                }),
            ),
        ];
        let done = run_free(&workload(&[channel(kind, capacity)], tasks), 2, Costs::ZERO);
        assert_eq!((exit_ms(&done, "producer"), exit_ms(&done, "consumer")), (6, 5));
    }
}

/// One round trip costs what its parts cost: each side two transfers, the
/// wake-up of the other and a switch in.
#[test]
fn a_round_trip_pays_for_calls_wakeups_and_switches() {
    const ROUNDS: u64 = 100;
    let tasks = vec![
        task(
            "ping",
            0,
            0,
            looped(ROUNDS, |b| {
                b.send(A, 1).receive(B, 1);
            }),
        ),
        task(
            "pong",
            0,
            0,
            looped(ROUNDS, |b| {
                b.receive(A, 1).send(B, 1);
            }),
        ),
    ];
    let costs = Costs {
        // What else the programs call is once a run.
        syscall_ns: 1,
        pipe_ns: 300,
        socket_ns: 900,
        wakeup_ns: 700,
        context_switch_ns: 1_000,
        ..Costs::ZERO
    };
    for (kind, transfer_ns) in [(ChannelKind::Pipe, 300), (ChannelKind::SocketPair, 900)] {
        // Nobody is preempted by whom it wakes.
        let workload = workload(&[channel(kind, 65_536); 2], tasks.clone());
        let done = run_free_under("rr", &workload, 1, costs);
        let round = 4 * transfer_ns + 2 * 700 + 2 * 1_000;
        let found = done.outcome.end_ns;
        assert!(found.abs_diff(ROUNDS * round) <= 2 * round, "{found} ns, {ROUNDS} of {round} ns");
    }
}

#[test]
fn waiting_for_any_ends_with_the_first_and_takes_nothing() {
    let server = build(|b| {
        b.op(Op::WaitAny { set: 0 }).op(Op::SemWait { object: B }).run(MS);
        b.op(Op::WaitAny { set: 0 }).receive(A, 10).run(MS);
    });
    let client = build(|b| {
        b.sleep(5 * MS).op(Op::SemPost { object: B }).sleep(5 * MS).send(A, 10);
    });
    let tasks = vec![task("server", 0, 0, server), task("client", 1, 0, client)];
    let objects = [channel(ChannelKind::SocketPair, 100), ObjectKind::Semaphore { initial: 0 }];
    let mut made = workload(&objects, tasks);
    made.wait_sets.push(vec![A, B]);
    let done = run_free(&made, 2, Costs::ZERO);
    let set = |ms| (ms * MS, "set a|b".to_string());
    assert_eq!(blocks(&done, "server"), [set(0), set(6)]);
    assert_eq!(exit_ms(&done, "server"), 11);
}

/// Four writers, three readers, one pipe: nothing is lost, and nobody sleeps on what is there.
#[test]
fn many_on_one_pipe_all_get_their_share() {
    let mut tasks: Vec<TaskSpec> = (0..4)
        .map(|n| {
            task(
                &format!("w{n}"),
                n % 2,
                0,
                looped(30, |b| {
                    b.run(100_000).send(A, 700);
                }),
            )
        })
        .collect();
    tasks.extend((0..3).map(|n| {
        let reader = looped(40, |b| {
            b.receive(A, 700).run(50_000);
        });
        task(&format!("r{n}"), n % 2, 0, reader)
    }));
    for kind in [ChannelKind::Pipe, ChannelKind::SocketPair] {
        run_free(&workload(&[channel(kind, 2_000)], tasks.clone()), 2, Costs::DEFAULT);
    }
}

/// A task whose transfer has nobody at the other end any more exits: a reader when the writer has
/// exited and all is read, a writer at once.
#[test]
fn a_task_ends_with_the_other_end_of_its_channel() {
    for kind in [ChannelKind::Pipe, ChannelKind::SocketPair] {
        let objects = [channel(kind, 1_000)];
        let ends = |first: Program, second: Program| {
            let tasks = vec![task("first", 0, 0, first), task("second", 1, 0, second)];
            run_free(&workload(&objects, tasks), 2, Costs::ZERO)
        };
        let reads = build(|b| {
            b.begin_loop(LoopCount::Forever).receive(A, 100).run(3 * MS).end_loop();
        });
        let done = ends(
            looped(2, |b| {
                b.run(MS).send(A, 100);
            }),
            reads,
        );
        assert_eq!((exit_ms(&done, "first"), exit_ms(&done, "second")), (2, 7));
        let waits = build(|b| {
            b.receive(A, 200).run(MS);
        });
        let done = ends(
            build(|b| {
                b.run(MS).send(A, 100).run(4 * MS);
            }),
            waits,
        );
        assert_eq!((exit_ms(&done, "first"), exit_ms(&done, "second")), (5, 5));
        let writes = build(|b| {
            b.begin_loop(LoopCount::Forever).run(MS).send(A, 100).end_loop();
        });
        let done = ends(
            build(|b| {
                b.receive(A, 100).run(2_500_000).run(500_000);
            }),
            writes,
        );
        assert_eq!((exit_ms(&done, "first"), exit_ms(&done, "second")), (4, 4));
        let cut_off: Vec<&str> = done.outcome.cut_off.iter().map(|one| one.act).collect();
        assert_eq!(cut_off, ["writes to"]);
    }
}
