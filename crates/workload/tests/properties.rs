// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of reader and writer: what is printed reads back; no text makes the reader panic.

use proptest::prelude::*;
use schedlab_model::program::{IoDirection, SchedFeature, SchedTunable};
use schedlab_model::{
    Amount, CgroupId, CgroupSpec, Change, ChannelKind, Comparison, CpuId, CpuMask, CpuMax,
    DeadlineParams, Expectation, LoopCount, MemAccess, MemPattern, MutexProtocol, ObjectId,
    ObjectKind, ObjectSpec, Op, Policy, Program, Release, SchedAttr, Subject, TaskSpec, TimerMode,
    Workload,
};
use schedlab_workload::units::{BYTES_MAX, DURATION_NS_MAX};
use schedlab_workload::{
    BUILTINS, WarningKind, builtin, read_rtapp, write_rtapp, write_rtapp_short,
};
use std::sync::LazyLock;

const NR_CPUS: u32 = 4;
const GROUPS: u32 = 3;

fn amount(max: u64) -> impl Strategy<Value = Amount> {
    let value = prop_oneof![0..max.min(10_000_000), 0..=max];
    prop_oneof![
        4 => value.clone().prop_map(Amount::Constant),
        1 => (value.clone(), value.clone())
            .prop_map(|(a, b)| Amount::Uniform { low: a.min(b), high: a.max(b) }),
        1 => value.prop_map(|mean| Amount::Exponential { mean: mean.max(1) }),
    ]
}

fn duration() -> impl Strategy<Value = Amount> {
    amount(DURATION_NS_MAX)
}

fn affinity() -> impl Strategy<Value = Option<CpuMask>> {
    prop::option::of(
        prop::collection::vec(0..NR_CPUS, 1..4)
            .prop_map(|cpus| cpus.into_iter().map(CpuId).collect::<CpuMask>()),
    )
}

fn attr() -> impl Strategy<Value = SchedAttr> {
    let policy = prop_oneof![
        Just(Policy::Normal),
        Just(Policy::Batch),
        Just(Policy::Idle),
        Just(Policy::Fifo),
        Just(Policy::Rr),
        Just(Policy::Deadline),
        Just(Policy::Ext),
    ];
    let slice = prop::option::of(100_000u64..=100_000_000);
    let util = (prop::option::of(0u16..=512), prop::option::of(512u16..=1024));
    (policy, -20i8..=19, 1u8..=99, slice, affinity(), (0..GROUPS, util), 1024u64..1_000_000)
        .prop_map(|(policy, nice, rt_priority, slice_ns, affinity, (group, util), dl)| {
            let (util_min, util_max) = util;
            let mut attr =
                SchedAttr { policy, affinity, util_min, util_max, ..SchedAttr::default() };
            match policy {
                Policy::Fifo | Policy::Rr => attr.rt_priority = rt_priority,
                Policy::Deadline => {
                    attr.deadline = DeadlineParams {
                        runtime_ns: dl,
                        deadline_ns: dl * 2,
                        period_ns: dl * 3,
                        reclaim: dl % 2 == 0,
                    }
                }
                _ => {
                    attr.nice = nice;
                    attr.cgroup = CgroupId(group);
                }
            }
            if matches!(policy, Policy::Normal | Policy::Batch) {
                attr.slice_ns = slice_ns;
            }
            attr
        })
}

/// One object of each kind that an operation needs, under these numbers; the kinds' own numbers are
/// drawn.
const MUTEX: ObjectId = ObjectId(0);
const CONDVAR: ObjectId = ObjectId(1);
const BARRIER: ObjectId = ObjectId(2);
const SEMAPHORE: ObjectId = ObjectId(3);
const EVENT: ObjectId = ObjectId(4);
const CHANNEL: ObjectId = ObjectId(5);

fn objects() -> impl Strategy<Value = Vec<ObjectSpec>> {
    let protocol = prop_oneof![
        Just(MutexProtocol::None),
        Just(MutexProtocol::Inherit),
        (1u8..=99).prop_map(|rt_priority| MutexProtocol::Ceiling { rt_priority }),
    ];
    let channel = prop_oneof![Just(ChannelKind::Pipe), Just(ChannelKind::SocketPair)];
    // A message that can be drawn must fit.
    let capacity = prop_oneof![Just(65_536u64), Just(212_992), 65_536..=1u64 << 31];
    (protocol, 1..=u32::MAX, 0..=i32::MAX as u32, channel, capacity).prop_map(
        |(protocol, parties, initial, kind, capacity_bytes)| {
            let kinds = [
                ObjectKind::Mutex { protocol },
                ObjectKind::Condvar,
                ObjectKind::Barrier { parties },
                ObjectKind::Semaphore { initial },
                ObjectKind::Event,
                ObjectKind::Channel { kind, capacity_bytes },
            ];
            let name = |index| format!("object {index} (x)");
            kinds
                .into_iter()
                .enumerate()
                .map(|(index, kind)| ObjectSpec::new(name(index), kind))
                .collect()
        },
    )
}

/// Operations that name objects; the numbers of wait sets are given later.
fn object_op() -> impl Strategy<Value = Op> {
    let message = || amount(4_096);
    prop_oneof![
        Just(Op::Lock { object: MUTEX }),
        Just(Op::Unlock { object: MUTEX }),
        Just(Op::Wait { condvar: CONDVAR, mutex: MUTEX }),
        Just(Op::Sync { condvar: CONDVAR, mutex: MUTEX }),
        Just(Op::Signal { object: CONDVAR }),
        Just(Op::Broadcast { object: CONDVAR }),
        Just(Op::Barrier { object: BARRIER }),
        Just(Op::SemWait { object: SEMAPHORE }),
        Just(Op::SemPost { object: SEMAPHORE }),
        Just(Op::Suspend { object: EVENT }),
        Just(Op::Resume { object: EVENT }),
        message().prop_map(|bytes| Op::Send { channel: CHANNEL, bytes }),
        message().prop_map(|bytes| Op::Receive { channel: CHANNEL, bytes }),
        (0u32..3).prop_map(|set| Op::WaitAny { set }),
    ]
}

/// Sets that an operation may wait for.
fn wait_set(number: u32) -> Vec<ObjectId> {
    [vec![CHANNEL], vec![SEMAPHORE, CHANNEL], vec![CHANNEL, SEMAPHORE]][number as usize].clone()
}

fn change() -> impl Strategy<Value = Change> {
    let group = || (1u32..=2).prop_map(CgroupId);
    let limit = || (1_000_000..=DURATION_NS_MAX, 1_000_000u64..=1_000_000_000, 0u64..=4);
    let cpu_max = |(quota_ns, period_ns, burst)| CpuMax {
        quota_ns,
        period_ns,
        burst_ns: quota_ns * burst / 4,
    };
    prop_oneof![
        (group(), 1u32..=10_000).prop_map(|(group, weight)| Change::Weight { group, weight }),
        (group(), prop::option::of(limit().prop_map(cpu_max)))
            .prop_map(|(group, cpu_max)| Change::CpuMax { group, cpu_max }),
        (group(), prop::option::of(1u32..1 << NR_CPUS)).prop_map(|(group, bits)| {
            let cpus = bits
                .map(|bits| (0..NR_CPUS).filter(|cpu| bits >> cpu & 1 == 1).map(CpuId).collect());
            Change::Cpus { group, cpus }
        }),
    ]
}

fn memory_op() -> impl Strategy<Value = Op> {
    let access = prop_oneof![Just(MemAccess::Read), Just(MemAccess::Write), Just(MemAccess::Chase)];
    let pattern = prop_oneof![Just(MemPattern::Sequential), Just(MemPattern::Random)];
    let size = || prop_oneof![1u64..100_000, 1..=BYTES_MAX];
    prop_oneof![
        // Above rt-app's buffer of 4 MiB a file says it with `memrun`.
        (0u64..=4 << 20).prop_map(|bytes| Op::Mem { bytes: Amount::Constant(bytes) }),
        (access, pattern, size(), size(), amount(i64::MAX as u64)).prop_map(
            |(access, pattern, size_bytes, stride_bytes, count)| Op::MemRun {
                access,
                pattern,
                size_bytes,
                stride_bytes,
                count,
            }
        ),
    ]
}

fn expectation() -> impl Strategy<Value = Expectation> {
    let subject = prop_oneof![Just(Subject::Total), Just(Subject::Task("task 0".into())),];
    let measure = prop_oneof![Just("jain_index"), Just("run_delay_ns_p99"), Just("nr_switches")];
    let comparison = prop::sample::select(Comparison::ALL.to_vec());
    let millionths = prop_oneof![
        -5_000_000i128..5_000_000,
        (0u64..=u64::MAX).prop_map(|whole| i128::from(whole) * 1_000_000),
    ];
    (subject, measure, comparison, millionths).prop_map(
        |(subject, measure, comparison, value_millionths)| Expectation {
            subject,
            measure: measure.into(),
            comparison,
            value_millionths,
        },
    )
}

/// A program as a tree: numbers of timers and phases are given later, in order of appearance.
#[derive(Clone, Debug)]
enum Node {
    Op(Op),
    Timer(u8, Amount, TimerMode),
    Phase(u8),
    Loop(LoopCount, Vec<Node>),
}

fn node() -> impl Strategy<Value = Node> {
    let direction = prop_oneof![Just(IoDirection::Read), Just(IoDirection::Write)];
    let leaf = prop_oneof![
        duration().prop_map(|a| Node::Op(Op::Run(a))),
        duration().prop_map(|a| Node::Op(Op::RunWall(a))),
        duration().prop_map(|a| Node::Op(Op::Sleep(a))),
        (0u8..3, 1u64..=DURATION_NS_MAX, any::<bool>()).prop_map(|(timer, period, relative)| {
            let mode = if relative { TimerMode::Relative } else { TimerMode::Absolute };
            Node::Timer(timer, Amount::Constant(period), mode)
        }),
        (direction, amount(BYTES_MAX), any::<bool>())
            .prop_map(|(direction, bytes, sync)| Node::Op(Op::Io { direction, bytes, sync })),
        Just(Node::Op(Op::Yield)),
        Just(Node::Op(Op::JoinAll)),
        Just(Node::Op(Op::Exit)),
        Just(Node::Op(Op::Progress)),
        (0u8..3).prop_map(Node::Phase),
        (0u32..4).prop_map(|task| Node::Op(Op::Fork { task })),
        (0u32..4).prop_map(|task| Node::Op(Op::Join { task })),
        object_op().prop_map(Node::Op),
        memory_op().prop_map(Node::Op),
        attr().prop_map(|attr| Node::Op(Op::SetAttr(Box::new(attr)))),
        change().prop_map(|change| Node::Op(Op::Change(Box::new(change)))),
        (0usize..9, 100u64..=1_000_000).prop_map(|(index, value)| {
            let tunable = SchedTunable::ALL[index];
            Node::Op(Op::Tune { tunable, value: (value * 1_000).min(tunable.range().1) })
        }),
        (0usize..SchedFeature::ALL.len(), 0u64..=1).prop_map(|(index, value)| {
            let tunable = SchedTunable::Feature(SchedFeature::ALL[index]);
            Node::Op(Op::Tune { tunable, value })
        }),
        Just(Node::Op(Op::Tune {
            tunable: SchedTunable::RtRuntime,
            value: SchedTunable::NO_LIMIT
        })),
    ];
    let count = prop_oneof![
        (0u64..4).prop_map(LoopCount::Times),
        Just(LoopCount::Forever),
        (0u64..=i64::MAX as u64).prop_map(LoopCount::Times),
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        (count.clone(), prop::collection::vec(inner, 0..5))
            .prop_map(|(count, body)| Node::Loop(count, body))
    })
}

#[derive(Default)]
struct Assembler {
    ops: Vec<Op>,
    timers: Vec<u8>,
    phases: Vec<u8>,
}

fn number(known: &mut Vec<u8>, id: u8) -> u32 {
    let found = known.iter().position(|k| *k == id);
    found.unwrap_or_else(|| {
        known.push(id);
        known.len() - 1
    }) as u32
}

impl Assembler {
    fn add(&mut self, node: Node) {
        match node {
            Node::Op(op) => self.ops.push(op),
            Node::Phase(id) => {
                let phase = number(&mut self.phases, id);
                self.ops.push(Op::Phase(phase));
            }
            Node::Timer(id, period, mode) => {
                let timer = number(&mut self.timers, id);
                self.ops.push(Op::Timer { timer, period, mode });
            }
            Node::Loop(count, body) => {
                let begin = self.ops.len();
                self.ops.push(Op::LoopBegin { count, end: 0 });
                body.into_iter().for_each(|node| self.add(node));
                // Time passes in every loop, or the program is refused.
                self.ops.push(Op::Run(Amount::Constant(1)));
                let end = self.ops.len() as u32;
                self.ops[begin] = Op::LoopBegin { count, end };
                self.ops.push(Op::LoopEnd { begin: begin as u32 });
            }
        }
    }
}

fn task() -> impl Strategy<Value = TaskSpec> {
    (
        attr(),
        0u32..4,
        duration(),
        prop::option::of(duration()),
        any::<bool>(),
        prop::collection::vec(node(), 0..8),
        any::<bool>(),
        (any::<bool>(), prop_oneof![Just(0), 0..=BYTES_MAX]),
    )
        .prop_map(
            |(attr, instances, release_ns, interarrival_ns, wakeup, body, wrap, process)| {
                let mut assembler = Assembler::default();
                if wrap {
                    assembler.add(Node::Loop(LoopCount::Forever, body));
                } else {
                    body.into_iter().for_each(|node| assembler.add(node));
                }
                let nr_timers = assembler.timers.len() as u32;
                TaskSpec {
                    attr,
                    instances,
                    release_ns: if instances == 0 { Amount::Constant(0) } else { release_ns },
                    interarrival_ns,
                    release: if wakeup { Release::Wakeup } else { Release::Fork },
                    phases: assembler.phases.iter().map(|id| format!("phase {id}")).collect(),
                    is_process: process.0,
                    working_set_bytes: process.1,
                    ..TaskSpec::new("", Program { ops: assembler.ops, nr_timers })
                }
            },
        )
}

fn workload() -> impl Strategy<Value = Workload> {
    let end = prop::option::of(1u64..=DURATION_NS_MAX);
    let limit = prop::option::of((1_000_000..=DURATION_NS_MAX, 1_000_000u64..=1_000_000_000));
    let groups = prop::collection::vec((1u32..=10_000, limit), 2);
    let expect = prop::collection::vec(expectation(), 0..3);
    (prop::collection::vec(task(), 1..4), end, groups, objects(), expect)
        .prop_map(|(tasks, duration_ns, groups, objects, expect)| {
            let mut workload = Workload::new("any (1)", tasks);
            name_and_number(&mut workload);
            workload.duration_ns = duration_ns;
            workload.objects = objects;
            workload.expect = expect;
            for ((path, parent), (weight, limit)) in
                [("/a", 0), ("/a/b.slice", 1)].into_iter().zip(groups)
            {
                let mut group = CgroupSpec::new(path, CgroupId(parent), weight);
                group.cpu_max = limit.map(|(quota_ns, period_ns)| CpuMax {
                    quota_ns,
                    period_ns,
                    // Some have a burst.
                    burst_ns: quota_ns * (period_ns % 3) / 4,
                });
                // Some have CPUs of their own; tasks may have an affinity outside of them.
                group.cpus = (weight % 5 == 0).then(|| CpuMask::first(1 + weight % NR_CPUS));
                workload.cgroups.push(group);
            }
            workload
        })
        .prop_filter("passes the model's check", |workload| workload.check(NR_CPUS).is_ok())
}

/// Names the tasks, points forks at later tasks only, so that there is no cycle, and numbers the
/// wait sets in the order in which the programs name them.
fn name_and_number(workload: &mut Workload) {
    let nr_tasks = workload.tasks.len() as u32;
    let mut sets: Vec<Vec<ObjectId>> = Vec::new();
    for (index, task) in workload.tasks.iter_mut().enumerate() {
        task.name = format!("task {index}");
        let later = nr_tasks - index as u32 - 1;
        for op in &mut task.program.ops {
            match op {
                Op::Fork { task } | Op::Join { task } if later > 0 => {
                    *task = index as u32 + 1 + *task % later;
                }
                Op::Fork { .. } | Op::Join { .. } => *op = Op::Yield,
                Op::WaitAny { set } => {
                    let wanted = wait_set(*set);
                    let known = sets.iter().position(|set| *set == wanted);
                    *set = known.unwrap_or(sets.len()) as u32;
                    if known.is_none() {
                        sets.push(wanted);
                    }
                }
                _ => {}
            }
        }
    }
    workload.wait_sets = sets;
}

/// Text that looks like a workload file: tokens of the format in any order.
fn tokens() -> impl Strategy<Value = String> {
    let words = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"tasks\"",
        "\"global\"",
        "\"a\"",
        "\"run\"",
        "\"loop\"",
        "\"phases\"",
        "\"cpus\"",
        "-1",
        "1",
        "0.5",
        "99999999999999999999",
        "\"5ms\"",
        "null",
        "\"timer\"",
        "\"period\"",
        "\"ref\"",
        "\"fork\"",
        "\"repeat\"",
        "\"sched\"",
        "\"policy\"",
        "\"SCHED_FIFO\"",
        "\"objects\"",
        "\"kind\"",
        "\"pipe\"",
        "\"lock\"",
        "\"suspend\"",
        "\"wait\"",
        "\"barrier\"",
        "\"wait_any\"",
        "\"send\"",
        "\"expect\"",
        "\"measure\"",
        "\"priority\"",
        "/*",
        "*/",
        "//x\n",
        "\"\\ud800\"",
        "\u{feff}",
        "\u{0}",
    ];
    prop::collection::vec(prop::sample::select(words), 0..40).prop_map(|words| words.concat())
}

/// Reads, and if that works, checks that the workload is sound and prints to itself.
fn read_and_check(text: &str) {
    match read_rtapp("fuzz.json", text, NR_CPUS) {
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1 && !error.help.is_empty());
            let mut rendered = String::new();
            let theme = miette::GraphicalTheme::unicode_nocolor();
            miette::GraphicalReportHandler::new_themed(theme)
                .render_report(&mut rendered, &*error)
                .unwrap();
            assert!(rendered.contains("fuzz.json"), "{rendered}");
        }
        Ok(read) => {
            read.workload.check(NR_CPUS).unwrap();
            let printed = write_rtapp(&read.workload);
            let again = read_rtapp("fuzz.json", &printed, NR_CPUS)
                .unwrap_or_else(|error| panic!("{error}\n{}\n{printed}", error.help));
            assert_eq!(again.workload, read.workload, "{printed}");
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() }
}

/// The published schema.
static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let text = include_str!("../../../docs/reference/workload.schema.json");
    let schema = serde_json::from_str(text).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema compiles")
});

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back(workload in workload()) {
        let printed = write_rtapp(&workload);
        let read = read_rtapp("w.json", &printed, NR_CPUS)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{printed}", error.help));
        prop_assert_eq!(&read.workload, &workload, "{}", printed);
        let odd: Vec<_> = read
            .warnings
            .iter()
            .filter(|warning| warning.kind != WarningKind::ForkIgnoresDelay)
            .collect();
        prop_assert!(odd.is_empty(), "{:?}", odd);
        prop_assert_eq!(write_rtapp(&read.workload), printed.clone());
        let json = serde_json::from_str(&printed).expect("what is printed is plain JSON");
        let faults: Vec<_> = SCHEMA.iter_errors(&json).map(|fault| fault.to_string()).collect();
        prop_assert!(faults.is_empty(), "{:?}\n{}", faults, printed);
    }

    #[test]
    fn the_short_form_reads_back_and_has_a_line_for_each_task(workload in workload()) {
        let printed = write_rtapp_short(&workload);
        let read = read_rtapp("w.json", &printed, NR_CPUS)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{printed}", error.help));
        prop_assert_eq!(&read.workload, &workload, "{}", printed);
        if workload.expect.is_empty() {
            prop_assert!(printed.lines().count() <= 4 + workload.tasks.len(), "{}", printed);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        read_and_check(&text);
    }

    #[test]
    fn no_sequence_of_tokens_panics(text in tokens()) {
        read_and_check(&text);
    }

    /// Files that are nearly right: a good file with a part cut out, doubled or replaced.
    #[test]
    fn no_damaged_file_panics(
        workload in workload(),
        from in any::<prop::sample::Index>(),
        length in 0usize..40,
        patch in prop_oneof![tokens(), Just(String::new()), "[0-9a-z\"{}:,]{0,4}"],
    ) {
        let printed = write_rtapp(&workload);
        let boundary = |mut at: usize| {
            while !printed.is_char_boundary(at) { at -= 1; }
            at
        };
        let from = boundary(from.index(printed.len() + 1));
        let to = boundary((from + length).min(printed.len())).max(from);
        read_and_check(&format!("{}{patch}{}", &printed[..from], &printed[to..]));
        read_and_check(&printed[..from]);
    }
}

#[test]
fn every_builtin_prints_and_reads_back() {
    for entry in BUILTINS {
        let workload = builtin(entry.name, &[]).unwrap();
        let printed = write_rtapp(&workload);
        let read = read_rtapp("w.json", &printed, 1).unwrap_or_else(|e| panic!("{e}\n{printed}"));
        assert_eq!(read.workload, workload, "{printed}");
        assert_eq!(read.warnings, []);
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for depth in [100, 1_000, 100_000] {
        read_and_check(&"[".repeat(depth));
        read_and_check(&"{\"a\":".repeat(depth));
        let repeats = "\"repeat\":{\"loop\":2,".repeat(depth);
        let text = format!(
            "{{\"tasks\":{{\"a\":{{\"loop\":1,{repeats}\"run\":1{}}}}}}}",
            "}".repeat(depth)
        );
        read_and_check(&text);
    }
}

#[test]
fn a_large_file_is_read_in_a_moment() {
    // Sixty thousand tasks that fork each other in a chain, each with timers and phases of its own.
    let mut text = String::from("{\"tasks\":{");
    for task in 0..60_000 {
        text.push_str(&format!(
            "\"t{task}\":{{\"instance\":{},\"loop\":1,\"run\":5,\"phase\":\"p{task}\",\
             \"timer\":{{\"ref\":\"r{task}\",\"period\":9}},\"fork\":\"t{}\"}},",
            u32::from(task == 0),
            task + 1
        ));
    }
    text.push_str("\"t60000\":{\"instance\":0,\"loop\":1,\"run\":5}}}");
    let start = std::time::Instant::now();
    let error = read_rtapp("large.json", &text, 1).unwrap_err();
    assert!(error.message.contains("shared by several tasks"), "{error}");
    // Events without a value: the text is copied once, not once for each.
    let text = text.replace("\"ref\":\"r", "\"ref\":\"unique");
    let text = text.replace("\"run\":5,", "\"run\":5,\"suspend\",\"sem_post\":\"s\",");
    assert_eq!(read_rtapp("large.json", &text, 1).unwrap().workload.nr_tasks_least(), 60_001);
    // A quadratic reader takes minutes.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
