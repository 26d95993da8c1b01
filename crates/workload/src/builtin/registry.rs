// SPDX-License-Identifier: MIT OR Apache-2.0
//! The list of built-in workloads. To add one: a builder function and one entry in [`BUILTINS`].

use super::args::{Args, BuiltinError, Kind, Param};
use super::{
    blocks, crowds, desktop, hackbench, s0_timeline, s1_turnaround, s2_benchmark, s4_processes,
    services,
};
use crate::units::BYTES_MAX;
use schedlab_model::Workload;
use schedlab_model::suggest::{did_you_mean, list};
use schedlab_model::time::NSEC_PER_USEC;

/// A built-in workload.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Name.
    pub name: &'static str,
    /// Study from which the program is, such as `S0`; empty for a building block.
    pub study: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    build: fn(&Args) -> Result<Workload, BuiltinError>,
}

const fn param(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Param {
    Param { name, kind, default, help }
}

/// An amount of bytes without a limit of its own.
const fn bytes(min: u64) -> Kind {
    Kind::Bytes { min, max: BYTES_MAX }
}

/// Most tasks of one kind.
const N_MAX: u64 = 100_000;
const COUNT: Kind = Kind::Count { min: 1, max: N_MAX };
const WORK: Kind = Kind::Duration { min_ns: NSEC_PER_USEC };
const UNTIL_HELP: &str = "end of the run; `auto`: none, or 10s when the tasks never end";
const UNTIL: Param =
    param("until", Kind::DurationOr { min_ns: NSEC_PER_USEC, word: "auto" }, "auto", UNTIL_HELP);
const POLICY: Param = param("policy", Kind::Policy, "OTHER", "scheduling policy");
const NICE: Param = param("nice", Kind::Nice, "0", "nice value");
const CPUS: Param = param("cpus", Kind::Cpus, "all", "CPUs the tasks may use");
/// Rounds of a loop.
const MANY: Kind = Kind::Count { min: 1, max: 1_000_000_000 };
/// A message.
const MESSAGE: Kind = Kind::Bytes { min: 1, max: 1 << 20 };
const MODE: Param =
    param("mode", Kind::Word { words: &["process", "thread"] }, "process", "what the tasks are");
/// rt-app's default.
const PRIORITY: Param = param("priority", Kind::Priority, "10", "priority under FIFO and RR");
/// The priority that the programs of studies S2 and S4 set.
const PRIORITY_MAX: Param = param("priority", Kind::Priority, "99", "priority under FIFO and RR");

/// Every built-in workload: building blocks first, then the studies in their order.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "hogs",
        study: "",
        summary: "n tasks that only use the CPU, for a given time or without end",
        params: &[
            param("n", COUNT, "2", "number of hogs"),
            param(
                "work",
                Kind::DurationOr { min_ns: NSEC_PER_USEC, word: "endless" },
                "1s",
                "CPU time of each",
            ),
            param("nice", Kind::NiceList, "0", "nice values, taken in turn"),
            POLICY,
            PRIORITY,
            CPUS,
            UNTIL,
        ],
        build: blocks::hogs,
    },
    Builtin {
        name: "periodic",
        study: "",
        summary: "n tasks that run for a while once in each period",
        params: &[
            param("n", COUNT, "1", "number of tasks"),
            param("run", WORK, "2ms", "CPU time in each period"),
            param("period", WORK, "10ms", "period"),
            param(
                "cycles",
                Kind::CountOr { min: 1, max: 1_000_000_000, word: "endless" },
                "100",
                "number of periods",
            ),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
            UNTIL,
        ],
        build: blocks::periodic,
    },
    Builtin {
        name: "interactive",
        study: "",
        summary: "endless hogs, and sleepers that wake at random and work for a moment",
        params: &[
            param("n", Kind::Count { min: 0, max: N_MAX }, "2", "number of hogs"),
            param("sleepers", COUNT, "1", "number of interactive tasks"),
            param("think", WORK, "20ms", "mean sleep of a sleeper (exponential)"),
            param("burst", WORK, "1ms", "CPU time after each sleep"),
            param("nice", Kind::Nice, "0", "nice value of the hogs"),
            POLICY,
            PRIORITY,
            CPUS,
            param("until", WORK, "10s", "end of the run"),
        ],
        build: blocks::interactive,
    },
    Builtin {
        name: "queue",
        study: "",
        summary: "n jobs that arrive at random: an open queue with a given load",
        params: &[
            param("n", COUNT, "1000", "number of jobs"),
            param("work", WORK, "10ms", "mean CPU time of a job"),
            param(
                "service",
                Kind::Word { words: &["exponential", "constant", "uniform"] },
                "exponential",
                "distribution of the CPU times",
            ),
            param(
                "load",
                Kind::Count { min: 0, max: 1_000 },
                "50",
                "CPU time that arrives, in percent of what the servers have; 0: all jobs at once",
            ),
            param("servers", Kind::Count { min: 1, max: 1_024 }, "1", "CPUs that load is of"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: crowds::queue,
    },
    Builtin {
        name: "two_groups",
        study: "S4",
        summary: "a hogs in one control group and b hogs in another",
        params: &[
            param("a", COUNT, "1", "hogs of the first group"),
            param("b", COUNT, "1", "hogs of the second group"),
            param(
                "groups",
                Kind::Word { words: &["yes", "no"] },
                "yes",
                "whether they are in groups at all",
            ),
            param(
                "b_group",
                Kind::Word { words: &["foreground", "background"] },
                "foreground",
                "what the second group is to study S4's schedulers",
            ),
            param(
                "work",
                Kind::DurationOr { min_ns: NSEC_PER_USEC, word: "endless" },
                "endless",
                "CPU time of each",
            ),
            POLICY,
            PRIORITY,
            CPUS,
            param("until", WORK, "10s", "end of the run"),
        ],
        build: crowds::two_groups,
    },
    Builtin {
        name: "hackbench",
        study: "",
        summary: "groups of senders that write messages to receivers (rt-tests' hackbench)",
        params: &[
            param("groups", Kind::Count { min: 1, max: 10_000 }, "10", "number of groups"),
            param(
                "fds",
                Kind::Count { min: 1, max: 1_000 },
                "20",
                "senders, and receivers, of a group",
            ),
            param("loops", MANY, "100", "messages of each sender to each receiver"),
            param("datasize", MESSAGE, "100", "bytes of a message"),
            param("ipc", Kind::Word { words: &["socket", "pipe"] }, "socket", "what carries them"),
            MODE,
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: hackbench::hackbench,
    },
    Builtin {
        name: "token_ring",
        study: "",
        summary: "n processes in a ring pass on a token and read memory (lmbench's lat_ctx)",
        params: &[
            param("n", Kind::Count { min: 2, max: 10_000 }, "2", "number of processes"),
            param("size", bytes(0), "0", "working set of each, read when it has the token"),
            param("rounds", MANY, "1000", "times that the token goes round"),
            MODE,
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: hackbench::token_ring,
    },
    Builtin {
        name: "oltp",
        study: "",
        summary: "clients that think, and server threads that do transactions under locks",
        params: &[
            param("clients", COUNT, "16", "number of clients"),
            param("servers", Kind::Count { min: 1, max: 10_000 }, "4", "threads of the server"),
            param("think", WORK, "10ms", "mean time of a client between two transactions"),
            param("work", WORK, "1ms", "mean CPU time of a transaction"),
            param(
                "statements",
                Kind::Count { min: 1, max: 1_000 },
                "4",
                "statements of a transaction",
            ),
            param("tables", Kind::Count { min: 1, max: 10_000 }, "8", "tables, each with a lock"),
            param(
                "reads",
                Kind::Count { min: 0, max: 1_000 },
                "1",
                "statements that read the device",
            ),
            param("page", bytes(1), "8KiB", "bytes of such a read"),
            param("log", bytes(0), "4KiB", "bytes written synchronously at the end"),
            param("nice", Kind::Nice, "0", "nice value of the server"),
            POLICY,
            PRIORITY,
            CPUS,
            param("until", WORK, "2s", "end of the run"),
        ],
        build: services::oltp,
    },
    Builtin {
        name: "frame_loop",
        study: "",
        summary: "a program that draws frames, and hogs; its progress gives the frame rate",
        params: &[
            param("fps", Kind::Count { min: 1, max: 10_000 }, "60", "frames a second"),
            param("work", WORK, "4ms", "CPU time of a frame"),
            param("hogs", Kind::Count { min: 0, max: N_MAX }, "2", "number of hogs"),
            param("nice", Kind::Nice, "0", "nice value of the program"),
            param("hog_nice", Kind::Nice, "0", "nice value of the hogs, which are OTHER"),
            param("policy", Kind::Policy, "OTHER", "scheduling policy of the program"),
            PRIORITY,
            CPUS,
            param("until", WORK, "2s", "end of the run"),
        ],
        build: desktop::frame_loop,
    },
    Builtin {
        name: "schbench",
        study: "",
        summary: "message threads that wake workers for requests (Chris Mason's schbench)",
        params: &[
            param(
                "message_threads",
                Kind::Count { min: 1, max: 1_000 },
                "1",
                "message threads (-m)",
            ),
            param("threads", COUNT, "4", "workers of each (-t; schbench takes the CPUs)"),
            param("think", Kind::Duration { min_ns: 0 }, "100us", "sleep of a request (-s)"),
            param("work", WORK, "5600us", "CPU time of a request (about 5 operations, -n 5)"),
            param("footprint", bytes(0), "256KiB", "working set of a worker (-F)"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
            param("until", WORK, "2s", "end of the run (-r)"),
        ],
        build: services::schbench,
    },
    Builtin {
        name: "compile",
        study: "",
        summary: "make -jN: a tree of short processes that compute, read and write",
        params: &[
            param("files", COUNT, "40", "files to compile"),
            param("jobs", Kind::Count { min: 1, max: 10_000 }, "4", "job slots (-j)"),
            param("work", WORK, "50ms", "mean CPU time of the compiler for a file"),
            param("source", bytes(1), "64KiB", "mean bytes read from the device for a file"),
            param("object", bytes(1), "32KiB", "mean bytes of an object file"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: desktop::compile,
    },
    Builtin {
        name: "sched",
        study: "S0",
        summary: "a parent forks n children that each do total CPU time in records of resol",
        params: &[
            param("n", COUNT, "1", "number of children"),
            param("total", WORK, "100ms", "CPU time of each child"),
            param("resol", WORK, "1ms", "CPU time of one record"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: s0_timeline::sched,
    },
    Builtin {
        name: "sched_nice",
        study: "S0",
        summary: "as sched with two children, of which the second lowers its own priority",
        params: &[
            param("total", WORK, "100ms", "CPU time of each child"),
            param("resol", WORK, "1ms", "CPU time of one record"),
            param("nice", Kind::Nice, "5", "nice value of the second child; the first has 0"),
            CPUS,
        ],
        build: s0_timeline::sched_nice,
    },
    Builtin {
        name: "load",
        study: "S1",
        summary: "one job of CPU work",
        params: &[param("work", WORK, "1s", "CPU time"), NICE, POLICY, PRIORITY, CPUS],
        build: s1_turnaround::load,
    },
    Builtin {
        name: "multiload",
        study: "S1",
        summary: "a shell starts n jobs of CPU work at once and waits for all",
        params: &[
            param("n", COUNT, "1", "number of jobs"),
            param("work", WORK, "1s", "CPU time of each job"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: s1_turnaround::multiload,
    },
    Builtin {
        name: "cpuperf",
        study: "S1",
        summary: "a shell starts 1 job of CPU work and waits for it, then 2 at once, up to max",
        params: &[
            param("max", Kind::Count { min: 1, max: 1000 }, "4", "greatest number of jobs at once"),
            param("work", WORK, "1s", "CPU time of each job"),
            NICE,
            POLICY,
            PRIORITY,
            CPUS,
        ],
        build: s1_turnaround::cpuperf,
    },
    Builtin {
        name: "prime",
        study: "S2",
        summary: "n copies of a CPU-bound program (the first 10,000 primes)",
        params: &[
            param("n", COUNT, "10", "number of copies (the study: 10, 100, 1000)"),
            param("work", WORK, "83ms", PRIME_WORK_HELP),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s2_benchmark::prime,
    },
    Builtin {
        name: "rw",
        study: "S2",
        summary: "n copies of a program that reads blocks and writes them synchronously",
        params: &[
            param("n", COUNT, "10", "number of copies (the study: 10, 100, 1000)"),
            param("transfer", bytes(1), "100KiB", "bytes each copy writes"),
            param("block", bytes(1), "1KiB", "bytes of one read and one write"),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s2_benchmark::rw,
    },
    Builtin {
        name: "mixed",
        study: "S2",
        summary: "n copies of prime that write what they find, 512 bytes at a time, synchronously",
        params: &[
            param("n", COUNT, "10", "number of copies (the study: 10, 100, 1000)"),
            param("work", WORK, "83ms", PRIME_WORK_HELP),
            param("primes", Kind::Count { min: 2, max: 1_000_000 }, "10000", "primes to find"),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s2_benchmark::mixed,
    },
    Builtin {
        name: "cpu_bound",
        study: "S4",
        summary: "a parent forks n children that only use the CPU",
        params: &[
            param("n", COUNT, "20", "number of children (the study: 20 to 100)"),
            param("work", WORK, "200ms", "CPU time of each child"),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s4_processes::cpu_bound,
    },
    Builtin {
        name: "io_bound",
        study: "S4",
        summary: "a parent forks n children that copy a file block by block",
        params: &[
            param("n", COUNT, "20", "number of children (the study: 20 to 100)"),
            param("block", bytes(1), "2000", "bytes of one read and one write"),
            param("bytes", bytes(1), "5000000", "bytes each child copies"),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s4_processes::io_bound,
    },
    Builtin {
        name: "cpu_io_bound",
        study: "S4",
        summary: "a parent forks n children that compute and copy in turn (the study's `mixed`)",
        params: &[
            param("n", COUNT, "20", "number of children (the study: 20 to 100)"),
            param("work", WORK, "200ms", "CPU time of each child, over all rounds"),
            param("rounds", Kind::Count { min: 1, max: 1_000_000 }, "100", "number of rounds"),
            param("block", bytes(1), "2000", "bytes of one read and one write"),
            param("bytes", bytes(1), "5000000", "bytes each child copies in all"),
            NICE,
            POLICY,
            PRIORITY_MAX,
            CPUS,
        ],
        build: s4_processes::cpu_io_bound,
    },
    Builtin {
        name: "cpu_latency",
        study: "S4",
        summary: "a parent forks n CPU-bound children of random priorities; look at response",
        params: &[
            param("n", COUNT, "20", "number of children (the study: 20, 50, 100)"),
            param("work", WORK, "200ms", "CPU time of each child"),
            param("policy", Kind::RtPolicy, "RR", "scheduling policy"),
            param("seed", Kind::Count { min: 0, max: u64::MAX }, "1", "seed of the priorities"),
            CPUS,
        ],
        build: s4_processes::cpu_latency,
    },
];

/// 50,328,485 modulo operations take this long on an AMD EPYC, compiled by gcc 12 without -O as the
/// study did.
const PRIME_WORK_HELP: &str = "CPU time of one copy (83 ms on an AMD EPYC core)";

/// Makes the built-in called `name`. `params` are pairs of name and value; other parameters have
/// their defaults.
///
/// ```
/// let workload = schedlab_workload::builtin("hogs", &[("n", "4"), ("work", "100ms")]).unwrap();
/// assert_eq!(workload.nr_released(), 4);
/// ```
pub fn builtin(name: &str, params: &[(&str, &str)]) -> Result<Workload, BuiltinError> {
    let names = || BUILTINS.iter().map(|builtin| builtin.name);
    let found = BUILTINS.iter().find(|builtin| builtin.name == name).ok_or_else(|| {
        BuiltinError::UnknownBuiltin {
            found: name.chars().take(60).collect(),
            hint: did_you_mean(name, names()),
            allowed: list(names()),
        }
    })?;
    (found.build)(&Args::parse(found.name, found.params, params)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wrap;
    use schedlab_model::{CpuId, CpuMask, LoopCount, Op, Policy};

    #[test]
    fn lists_take_commas_and_slashes() {
        let with = |cpus| builtin("load", &[("cpus", cpus)]).unwrap();
        assert_eq!(with("0-2,5"), with("0-2/5"));
        assert_eq!(with("0-2,5").tasks[0].attr.affinity.map(|mask| mask.weight()), Some(4));
    }

    fn error(name: &str, params: &[(&str, &str)]) -> String {
        wrap(&builtin(name, params).unwrap_err().to_string())
    }

    #[test]
    fn every_builtin_passes_the_check_with_its_defaults() {
        for entry in BUILTINS {
            let workload = builtin(entry.name, &[]).unwrap();
            workload.check(1).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert_eq!(workload.name, entry.name);
            assert!(entry.summary.len() <= 80, "{}: summary does not fit a line", entry.name);
        }
        let mut names: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), BUILTINS.len());
    }

    #[test]
    fn every_builtin_takes_the_common_parameters_it_lists() {
        for entry in BUILTINS {
            let has = |name| entry.params.iter().any(|param| param.name == name);
            let mut params = vec![("cpus", "0")];
            if has("policy") {
                params.push(("policy", "FIFO"));
            }
            let workload = builtin(entry.name, &params).unwrap();
            let policy = if has("policy") { Policy::Fifo } else { Policy::Normal };
            // The hogs beside the frames are always OTHER.
            let other = |name: &str| entry.name == "frame_loop" && name == "hog";
            for task in &workload.tasks {
                assert_eq!(task.attr.affinity, Some(CpuMask::only(CpuId(0))), "{}", entry.name);
                let policy = if other(&task.name) { Policy::Normal } else { policy };
                assert_eq!(task.attr.policy, policy, "{}", entry.name);
            }
        }
    }

    #[test]
    fn hogs_take_their_nice_values_in_turn() {
        let workload = builtin("hogs", &[("n", "5"), ("nice", "0/5"), ("work", "3ms")]).unwrap();
        let kinds: Vec<_> =
            workload.tasks.iter().map(|t| (t.name.as_str(), t.attr.nice, t.instances)).collect();
        assert_eq!(kinds, [("hog_nice0", 0, 3), ("hog_nice5", 5, 2)]);
        assert_eq!(workload.duration_ns, None);
        let endless = builtin("hogs", &[("work", "endless")]).unwrap();
        assert_eq!(endless.duration_ns, Some(10_000_000_000));
        let until = builtin("hogs", &[("work", "endless"), ("until", "3s")]).unwrap();
        assert_eq!(until.duration_ns, Some(3_000_000_000));
    }

    #[test]
    fn sched_does_a_hundred_records_and_marks_each() {
        let workload = builtin("sched", &[("n", "4")]).unwrap();
        let [parent, child] = &workload.tasks[..] else { panic!("{workload:?}") };
        assert_eq!((parent.instances, child.instances), (1, 0));
        assert_eq!(parent.program.ops[0], Op::LoopBegin { count: LoopCount::Times(4), end: 2 });
        assert_eq!(child.program.ops[0], Op::LoopBegin { count: LoopCount::Times(100), end: 3 });
        assert_eq!(child.program.ops[2], Op::Progress);
        assert_eq!(workload.nr_tasks_least(), 5);
    }

    #[test]
    fn sched_nice_changes_only_the_second_child() {
        let workload = builtin("sched_nice", &[]).unwrap();
        let niced: Vec<_> = workload
            .tasks
            .iter()
            .map(|task| match task.program.ops.first() {
                Some(Op::SetAttr(attr)) => attr.nice,
                _ => 0,
            })
            .collect();
        assert_eq!(niced, [0, 0, 5]);
    }

    #[test]
    fn cpu_latency_repeats_with_its_seed() {
        let with = |seed| builtin("cpu_latency", &[("n", "50"), ("seed", seed)]).unwrap();
        assert_eq!(with("1"), with("1"));
        assert_ne!(with("1"), with("2"));
        assert_eq!(with("1").nr_tasks_least(), 51);
    }

    #[test]
    fn errors_say_what_is_allowed() {
        insta::assert_snapshot!(error("hog", &[]), @r#"
        no built-in workload is called "hog": did you mean `hogs`? allowed: hogs,
        periodic, interactive, queue, two_groups, hackbench, token_ring, oltp, frame_loop,
        schbench, compile, sched, sched_nice, load, multiload, cpuperf, prime, rw, mixed,
        cpu_bound, io_bound, cpu_io_bound, cpu_latency
        "#);
        insta::assert_snapshot!(error("hogs", &[("wrok", "1s")]), @r#"
        hogs has no parameter "wrok": did you mean `work`? allowed: n, work, nice, policy,
        priority, cpus, until
        "#);
        insta::assert_snapshot!(error("hogs", &[("work", "100")]), @r#"
        hogs: work=100: "100" has no unit: write 100ms, 100us, 100s or another unit (ns,
        min, h); allowed: a duration of 1us or more, or `endless`
        "#);
        let n = [error("hogs", &[("n", "0")]), error("hogs", &[("n", "1"), ("n", "2")])];
        insta::assert_snapshot!(n.join("\n"), @r#"
        hogs: n=0: too small; allowed: a whole number, 1 to 100000
        hogs: parameter "n" is given twice: give it once
        "#);
        insta::assert_snapshot!(error("hackbench", &[("datasize", "2MiB")]), @"
        hackbench: datasize=2MiB: too large; allowed: bytes, 1 to 1MiB
        ");
        insta::assert_snapshot!(error("hogs", &[("nice", "0,25")]), @r#"
        hogs: nice=0,25: "25" is no nice value; allowed: nice values, -20 to 19, separated
        by commas or slashes
        "#);
        insta::assert_snapshot!(error("hogs", &[("priority", "5")]), @"
        hogs: priority has no effect under OTHER: leave it out, or set policy=FIFO or
        policy=RR
        ");
        insta::assert_snapshot!(error("hogs", &[("policy", "deadline")]), @"
        hogs: policy=deadline: DEADLINE needs a runtime and a period: write a file;
        allowed: OTHER, BATCH, IDLE, FIFO, RR or EXT
        ");
        insta::assert_snapshot!(error("sched", &[("resol", "3ms")]), @"
        sched: total (100000000 ns) is no multiple of resol (3000000 ns): choose one that
        is
        ");
        insta::assert_snapshot!(error("multiload", &[("cpus", "3-1")]), @"
        multiload: cpus=3-1: 3-1 runs backwards: write 1-3; allowed: CPUs such as `0-3,8`,
        or `all`
        ");
        insta::assert_snapshot!(error("cpu_latency", &[("policy", "OTHER")]), @"
        cpu_latency: policy=OTHER: the priorities of this workload need a real-time
        policy; allowed: FIFO or RR
        ");
    }
}
