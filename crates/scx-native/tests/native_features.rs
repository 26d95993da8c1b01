// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single features of BPF and of the kernel that published schedulers need, each in a scheduler of
//! a few lines that checks what it gets.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../../scx/tests/scx/support/mod.rs"]
mod support;

use schedlab_model::machine::{Shape, Topology};
use schedlab_model::{CgroupId, CgroupSpec, CpuId, CpuMask, SchedAttr};
use schedlab_scx::CORES;
use schedlab_scx_native::{CompileOptions, NativeError, NativeScheduler, find_clang};
use schedlab_scx_source::SourceOptions;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Case, Ran, hog, nice};

/// What every case begins with: a queue for all, and `CHECK`.
const HEAD: &str = r#"
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define CHECK(condition)                                        \
	do {                                                    \
		if (!(condition))                               \
			scx_bpf_error("not so: " #condition);   \
	} while (0)

void check(struct task_struct *p);

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	check(p);
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = "x");
"#;

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        for (name, text) in files {
            let path = this.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, source: SourceOptions) -> Result<NativeScheduler, NativeError> {
        let options = CompileOptions { source, ..CompileOptions::default() };
        NativeScheduler::compile(&self.path("src/bpf/main.bpf.c"), &options)
    }
}

fn run(scheduler: &NativeScheduler) {
    let tasks = (0..3).map(|_| hog("hog", nice(0))).collect();
    let case = Case::new(2, 100, tasks);
    let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
    case.run_boxed(ops, Default::default()).outcome();
}

/// Compiles and runs `HEAD` and `text`, which has the function `check`.
fn checks(text: &str) {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{HEAD}{text}"))]);
    run(&files.compile(SourceOptions::default()).unwrap());
}

#[test]
fn every_error_number_has_its_name() {
    checks(
        "void check(struct task_struct *p)
        {
            CHECK(ENOTSUP == EOPNOTSUPP && EOPNOTSUPP == 95);
            CHECK(ENOTSUPP == 524 && EDOM == 33 && ENODATA == 61 && EBADF == 9);
        }",
    );
}

#[test]
fn sources_with_assembly_for_old_compilers_are_given_c() {
    checks(
        "static u32 load(const volatile u32 *from)
        {
        #if defined(__clang__) && __clang_major__ >= 21
            return __atomic_load_n(from, __ATOMIC_RELAXED);
        #else
            u32 value;
            asm volatile(\"%0 = *(u32 *)(%1 + 0)\" : \"=r\"(value) : \"r\"(from));
            return value;
        #endif
        }
        static u32 seven = 7;
        void check(struct task_struct *p) { CHECK(load(&seven) == 7); }",
    );
}

#[test]
fn programs_at_tracepoints_of_the_scheduler_compile() {
    checks(
        "SEC(\"tp/sched/sched_switch\")
        int at_switch(struct trace_event_raw_sched_switch *args)
        {
            return args->prev_pid && args->next_pid && args->prev_state;
        }
        SEC(\"tp/sched/sched_wakeup\")
        int at_wakeup(struct trace_event_raw_sched_wakeup_template *args)
        {
            return args->pid && args->target_cpu;
        }
        void check(struct task_struct *p) {}",
    );
}

/// A group with cpuset.cpus has a `struct cpuset`, the group below it has none.
#[test]
fn a_cpuset_is_shown_with_its_group() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let text = "void check(struct task_struct *p)
        {
            struct cgroup *below = scx_bpf_task_cgroup(p), *group = below->ancestors[1];
            struct cpuset *set;

            CHECK(group && below != group && !below->subsys[cpuset_cgrp_id]);
            CHECK(group->subsys[cpuset_cgrp_id] && below->subsys[cpu_cgrp_id]);
            set = container_of(group->subsys[cpuset_cgrp_id], struct cpuset, css);
            CHECK(set->cpus_allowed[0].bits[0] == 2 && set->css.cgroup == group);
        }";
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{HEAD}{text}"))]);
    let scheduler = files.compile(SourceOptions::default()).unwrap();
    let attr = SchedAttr { cgroup: CgroupId(2), ..nice(0) };
    let mut case = Case::new(2, 100, vec![hog("hog", attr)]);
    let with_set = CgroupSpec {
        cpus: Some(CpuMask::only(CpuId(1))),
        ..CgroupSpec::new("/a", CgroupId(0), 100)
    };
    case.workload.cgroups =
        vec![CgroupSpec::root(), with_set, CgroupSpec::new("/a/b", CgroupId(1), 100)];
    let ops = scheduler.ops(2, case.machine.hz).unwrap();
    case.run_boxed(ops, Default::default()).outcome();
}

#[test]
fn words_of_the_configuration_are_those_of_the_model() {
    checks(
        "extern unsigned long CONFIG_HZ __kconfig;
        extern unsigned long CONFIG_NR_CPUS __kconfig;
        extern bool CONFIG_X86_64 __kconfig __weak;
        extern bool CONFIG_NOBODY_KNOWS __kconfig __weak;
        extern const char CONFIG_LOCALVERSION[64] __kconfig __weak;
        void check(struct task_struct *p)
        {
            CHECK(CONFIG_HZ == 250);
            CHECK(CONFIG_NR_CPUS == 1024);
            CHECK(CONFIG_X86_64 && !CONFIG_NOBODY_KNOWS);
            CHECK(CONFIG_LOCALVERSION[0]);
            CHECK(LINUX_KERNEL_VERSION == KERNEL_VERSION(6, 18, 0));
        }",
    );
}

#[test]
fn an_unknown_word_of_the_configuration_is_no_function() {
    if find_clang().is_err() {
        return schedlab_testing::skip("no clang in PATH");
    }
    let text = "extern int CONFIG_NOBODY_KNOWS __kconfig;
        void check(struct task_struct *p) { CHECK(CONFIG_NOBODY_KNOWS); }";
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{HEAD}{text}"))]);
    let refused = files.compile(SourceOptions::default()).unwrap_err().to_string();
    assert!(
        refused.contains("reads words of the kernel's configuration that the model does not know"),
        "{refused}"
    );
    assert!(refused.contains("CONFIG_NOBODY_KNOWS") && !refused.contains("calls"), "{refused}");
}

#[test]
fn core_reads_have_values_of_any_type() {
    checks(
        "void check(struct task_struct *p)
        {
            struct task_struct *none = NULL;
            struct sched_ext_entity scx = BPF_CORE_READ(p, scx);
            const char *comm = BPF_CORE_READ(p, comm);
            const unsigned long *nodes;
            char name[16];
            u64 bits;
            int pid = -1;

            CHECK(scx.weight == p->scx.weight && scx.weight);
            CHECK(comm[0] == p->comm[0] && comm[0]);
            CHECK(BPF_CORE_READ(p, group_leader, pid) == p->group_leader->pid);
            CHECK(BPF_CORE_READ(none, group_leader, pid) == 0);
            nodes = BPF_CORE_READ(p, mempolicy, nodes.bits);
            CHECK(!bpf_core_read(&bits, sizeof(bits), nodes) && !bits);
            CHECK(!BPF_CORE_READ_INTO(&pid, p, pid) && pid == p->pid);
            CHECK(BPF_CORE_READ_INTO(&pid, none, pid) < 0 && !pid);
            CHECK(BPF_CORE_READ_STR_INTO(&name, p, comm) > 1 && name[0] == comm[0]);
        }",
    );
}

#[test]
fn rq_is_read_through_the_schedulers_own_copy_of_the_struct() {
    checks(
        "struct rq___local { u64 clock_task, clock_pelt; unsigned long lost_idle_time; };
        extern struct rq runqueues __ksym;
        void check(struct task_struct *p)
        {
            u32 cpu = bpf_get_smp_processor_id();
            struct rq___local *rq = (void *)bpf_per_cpu_ptr(&runqueues, cpu);

            CHECK(rq && rq->clock_task == scx_bpf_now() && rq->clock_pelt == rq->clock_task);
            CHECK(!rq->lost_idle_time);
        }",
    );
}

#[test]
fn hardware_counters_are_absent_and_frequencies_have_no_driver() {
    checks(
        "struct {
            __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
            __uint(key_size, sizeof(u32));
            __uint(value_size, sizeof(u32));
        } events SEC(\".maps\");
        extern struct cpufreq_policy *cpufreq_cpu_data __ksym;
        void check(struct task_struct *p)
        {
            struct bpf_perf_event_value value = { .counter = 7 };
            struct cpufreq_policy **policy = bpf_per_cpu_ptr(&cpufreq_cpu_data, 1);

            CHECK(bpf_perf_event_read_value(&events, 0, &value, sizeof(value)) == -ENOENT);
            CHECK(!value.counter);
            CHECK(policy && !*policy && BPF_CORE_READ(*policy, cpuinfo.max_freq) == 0);
        }",
    );
}

#[test]
fn dynptrs_check_their_bounds() {
    checks(
        "struct {
            __uint(type, BPF_MAP_TYPE_RINGBUF);
            __uint(max_entries, 4096);
        } ring SEC(\".maps\");
        void check(struct task_struct *p)
        {
            char memory[8] = \"abcdefg\", part[4] = {};
            struct bpf_dynptr ptr;

            CHECK(!bpf_dynptr_from_mem(memory, sizeof(memory), 0, &ptr));
            CHECK(bpf_dynptr_data(&ptr, 4, 4) == memory + 4 && !bpf_dynptr_data(&ptr, 5, 4));
            CHECK(!bpf_dynptr_read(part, 3, &ptr, 1, 0) && part[2] == 'd');
            CHECK(bpf_dynptr_read(part, 3, &ptr, 6, 0) == -E2BIG);
            CHECK(!bpf_dynptr_write(&ptr, 0, part, 3, 0) && memory[0] == 'b');
            CHECK(!bpf_ringbuf_reserve_dynptr(&ring, 16, 0, &ptr));
            CHECK(bpf_dynptr_data(&ptr, 0, 16));
            bpf_ringbuf_submit_dynptr(&ptr, 0);
            CHECK(!bpf_dynptr_data(&ptr, 0, 1));
            CHECK(!bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA));
        }",
    );
}

#[test]
fn programs_that_nothing_enters_may_call_what_is_missing() {
    checks(
        "void bpf_teleport(struct task_struct *p) __ksym;
        static void deeper(struct task_struct *p) { bpf_teleport(p); }
        SEC(\"?fexit/futex_wait\") int BPF_PROG(at_futex_wait)
        {
            u64 answer = 0;

            bpf_get_func_ret(ctx, &answer);
            deeper(bpf_get_current_task_btf());
            return answer;
        }
        SEC(\"tp_btf/cgroup_attach_task\")
        int BPF_PROG(at_attach, struct cgroup *cgrp, const char *path, struct task_struct *leader)
        {
            return leader->signal->thread_head.next == &leader->thread_node;
        }
        void check(struct task_struct *p) { }",
    );
}

#[test]
fn kernel_types_of_published_schedulers_compile() {
    checks(
        "extern const struct tick_device tick_cpu_device __ksym __weak;
        static void leave(class_rcu_t *rcu) { if (rcu->lock) bpf_rcu_read_unlock(); }
        void check(struct task_struct *p)
        {
            class_rcu_t rcu __attribute__((cleanup(leave))) = { .lock = (void *)1 };
            struct pid *pid = BPF_CORE_READ(p, thread_pid);
            loff_t offset = 0;

            bpf_rcu_read_lock();
            CHECK(!BPF_CORE_READ(pid, numbers[0].ns) && !offset && !p->mempolicy);
            CHECK(!bpf_ksym_exists(&tick_cpu_device));
        }",
    );
}

#[test]
fn member_pointers_work_in_headers_and_have_bounds() {
    checks(
        "static int fourth(int index)
        {
            int table[4] = { 1, 2, 3, 4 };
            int *place = MEMBER_VPTR(table, [index]);

            return place ? *place : -1;
        }
        void check(struct task_struct *p)
        {
            volatile int three = 3, four = 4;

            CHECK(fourth(three) == 4 && fourth(four) == -1 && fourth(-three) == -1);
        }",
    );
}

#[test]
fn an_update_of_a_map_leaves_locks_and_kernel_pointers_alone() {
    checks(
        "struct inner { u64 before; struct bpf_cpumask __kptr *mask; u64 after; };
        struct value { struct inner inner[2]; struct bpf_spin_lock lock; u32 number; };
        struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4); __type(key, u32);
        __type(value, struct value); } map SEC(\".maps\");
        void check(struct task_struct *p)
        {
            struct value next, *value;
            struct bpf_cpumask *mask;
            u32 key = p->pid;

            __builtin_memset(&next, 0x5a, sizeof(next));
            next.number = 3;
            bpf_map_delete_elem(&map, &key);
            CHECK(!bpf_map_update_elem(&map, &key, &next, BPF_ANY));
            value = bpf_map_lookup_elem(&map, &key);
            CHECK(value && value->number == 3 && value->inner[1].after == next.inner[1].after);
            CHECK(!value->inner[0].mask && !value->inner[1].mask);
            bpf_spin_lock(&value->lock);
            bpf_spin_unlock(&value->lock);
            mask = bpf_kptr_xchg(&value->inner[1].mask, bpf_cpumask_create());
            CHECK(!mask && !bpf_map_update_elem(&map, &key, &next, BPF_EXIST));
            CHECK(value->inner[1].mask);
            bpf_cpumask_release(bpf_kptr_xchg(&value->inner[1].mask, NULL));
        }",
    );
}

/// In a kernel a CPU that its scheduler kicks at every dispatch spins, and time goes by.
#[test]
fn an_idle_cpu_that_is_kicked_at_every_dispatch_spins() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let head = HEAD.replace(".enqueue", ".dispatch = (void *)x_dispatch, .enqueue");
    let (before, after) = head.split_once("SCX_OPS_DEFINE").unwrap();
    let text = format!(
        "{before}
        void BPF_STRUCT_OPS(x_dispatch, s32 cpu, struct task_struct *prev)
        {{
            scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
        }}
        SCX_OPS_DEFINE{after}
        void check(struct task_struct *p) {{ }}"
    );
    let files = Files::new(&[("src/bpf/main.bpf.c", &text)]);
    let scheduler = files.compile(SourceOptions::default()).unwrap();
    let case = Case::new(2, 20, vec![hog("hog", nice(0))]);
    let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
    case.run_boxed(ops, Default::default()).outcome();
}

/// What a user program would set comes from a file next to the scheduler.
#[test]
fn a_setup_sets_variables_and_maps_and_runs_programs() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let text = format!(
        "{HEAD}
        const volatile struct {{ u32 nr_cpus; bool smt; }} machine = {{ .nr_cpus = 99 }};
        const volatile u32 untouched = 5;
        struct {{ u8 id; u64 mask[2]; }} domains[4];
        u64 sum, after;
        struct {{ __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, u32);
        __type(value, u64); }} nodes SEC(\".maps\");
        struct argument {{ u8 kind; s32 cpu; }};
        SEC(\"syscall\") int add(struct argument *argument)
        {{
            if (argument->kind != 7)
                return -EINVAL;
            sum += argument->cpu + 1;
            return 0;
        }}
        SEC(\"syscall\") int late(void *none) {{ after = sum; return 0; }}
        void check(struct task_struct *p)
        {{
            u32 one = 1;
            u64 *node = bpf_map_lookup_elem(&nodes, &one);

            CHECK(machine.nr_cpus == 2 && !machine.smt && untouched == 5);
            CHECK(domains[0].id == 9 && domains[3].id == 9 && domains[0].mask[0] == 3);
            CHECK(sum == 3 && after == 3 && node && *node == 40);
        }}"
    );
    let setup = "[variables]\n\"machine.nr_cpus\" = \"cpus\"\n\"machine.smt\" = \"smt\"\n\
        \"domains[all].id\" = 9\n\"domains[*].mask\" = \"mask of llc\"\n\
        [[elements]]\nmap = \"nodes\"\neach = \"cpu\"\nkey = [[\"u32\", \"id\"]]\n\
        value = [[\"u64\", 40]]\n\
        [[runs]]\nprogram = \"add\"\neach = \"cpu\"\n\
        context = [[\"u8\", 7], [\"i32\", \"id\"]]\n\
        [[runs]]\nprogram = \"late\"\nattached = true\n";
    let files = Files::new(&[("src/bpf/main.bpf.c", &text), ("src/bpf/main.setup.toml", setup)]);
    run(&files.compile(SourceOptions::default()).unwrap());
    for (from, to, error) in [
        ("machine.smt", "machine.sms", "variable machine.sms: there is no member sms"),
        ("\"cpus\"", "\"cpux\"", "variable machine.nr_cpus: no word \"cpux\": cpus, cores"),
        ("\"u8\", 7", "\"u8\", 8", "program add returned -22"),
        ("\"add\"", "\"sub\"", "there is no program sub"),
        ("\"u64\", 40", "\"u32\", 40", "a key of 4 bytes and a value of 4, it has 4 and 8"),
    ] {
        fs::write(files.path("src/bpf/main.setup.toml"), setup.replace(from, to)).unwrap();
        let scheduler = files.compile(SourceOptions::default()).unwrap();
        let case = Case::new(2, 10, vec![hog("hog", nice(0))]);
        let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
        let text = case.run_boxed(ops, Default::default()).error();
        assert!(text.contains("the setup fails: ") && text.contains(error), "{from}: {text}");
    }
}

/// A user program pins itself before it runs a program, and gives each CPU its own copy.
#[test]
fn runs_and_copies_of_a_setup_belong_to_the_chosen_cpu() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let text = format!(
        "{HEAD}
        struct {{ __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1);
        __type(key, u32); __type(value, u32); }} levels SEC(\".maps\");
        u32 own, other, level;
        SEC(\"syscall\") int look(u32 *place)
        {{
            u32 zero = 0, *found = bpf_map_lookup_elem(&levels, &zero);

            if (*place != bpf_get_smp_processor_id() || !found)
                return -EINVAL;
            if (*place)
                level = *found, other = *place;
            else
                own++;
            return 0;
        }}
        void check(struct task_struct *p) {{ CHECK(own == 1 && other == 1 && level == 6); }}"
    );
    let setup = "[[elements]]\nmap = \"levels\"\nkey = [[\"i32\", 0]]\nvalue = [[\"i32\", 6]]\n\
        cpu = 1\n[[runs]]\nprogram = \"look\"\ncontext = [[\"i32\", 1]]\ncpu = \"last_cpu\"\n\
        [[runs]]\nprogram = \"look\"\ncontext = [[\"i32\", 0]]\nattached = true\n";
    let files = Files::new(&[("src/bpf/main.bpf.c", &text), ("src/bpf/main.setup.toml", setup)]);
    run(&files.compile(SourceOptions::default()).unwrap());
    let recorded = "[recorded]\ncommand = \"./scx_x -v\"\nkernel = \"6.18\"\n\
        core = [0, 1, 2]\nllc = [0, 0, 0]\nnode = [0, 0, 0]\n";
    for (changed, error) in [
        (setup.replace("\"last_cpu\"", "2"), "program look: cpu = 2: the machine has CPUs 0 to 1"),
        (setup.replace("cpu = 1", "cpu = -1"), "map levels: cpu = -1: the machine has CPUs 0 to 1"),
        (setup.replace("\"last_cpu\"", "0"), "program look returned -22"),
        (recorded.into(), "was recorded for a machine of 3 CPUs, 3 cores"),
        (
            format!(
                "[variables]\nabsent = 1\n{}",
                recorded.replace(", 2]", "]").replace("0, 0]", "0]")
            ),
            "recorded from ./scx_x -v: use a program that was built from this version",
        ),
    ] {
        fs::write(files.path("src/bpf/main.setup.toml"), changed).unwrap();
        let scheduler = files.compile(SourceOptions::default()).unwrap();
        let case = Case::new(2, 10, vec![hog("hog", nice(0))]);
        let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
        let text = case.run_boxed(ops, Default::default()).error();
        assert!(text.contains(error), "{error}: {text}");
    }
}

/// The user program of scx_tickless 1.0 attaches it from the CPU on which ops.init starts a timer.
/// Inner maps that the source does not name exist only if the user program makes them.
#[test]
fn a_setup_makes_inner_maps() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let text = "struct inner { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 4);
            __type(value, u32); };
        struct { __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS); __uint(max_entries, 3); __type(key, u32);
            __array(values, struct inner); } outer SEC(\".maps\");
        void check(struct task_struct *p)
        {
            u32 index = 2, value = 7;
            void *map = bpf_map_lookup_elem(&outer, &index);

            if (!map)
                scx_bpf_error(\"no queue\");
            else
                CHECK(!bpf_map_push_elem(map, &value, 0) && !bpf_map_pop_elem(map, &value));
        }";
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{HEAD}{text}"))]);
    let done = |setup: &str| {
        fs::write(files.path("src/bpf/main.setup.toml"), setup).unwrap();
        let scheduler = files.compile(SourceOptions::default()).unwrap();
        let case = Case::new(1, 10, vec![hog("a", nice(0)), hog("b", nice(0))]);
        let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
        case.run_boxed(ops, Default::default())
    };
    let error = done("").error();
    assert!(error.contains("no queue"), "{error}");
    done("inner_maps = [\"outer\"]").outcome();
    let error = done("inner_maps = [\"other\"]").error();
    assert!(error.contains("the setup fails: map other: the scheduler has none"), "{error}");
}

#[test]
fn ops_init_runs_on_the_chosen_cpu() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let init = "s32 BPF_STRUCT_OPS_SLEEPABLE(x_init)
        { return bpf_get_smp_processor_id() == 1 ? 0 : -EINVAL; }
        SEC(\"syscall\") int look(void *none)
        { return bpf_get_smp_processor_id() == 1 ? 0 : -EINVAL; }
        void check(struct task_struct *p) {}
        SCX_OPS_DEFINE(x_ops, .init = (void *)x_init,";
    let text = HEAD.replace("SCX_OPS_DEFINE(x_ops,", init);
    let files = Files::new(&[("src/bpf/main.bpf.c", &text)]);
    let run = "[[runs]]\nprogram = \"look\"\nattached = true\n";
    for (cpu, error) in [
        ("\"last_cpu\"", None),
        ("0", Some("ops.init() failed (-22)")),
        ("2", Some("the setup fails: init_cpu = 2: the machine has CPUs 0 to 1")),
    ] {
        fs::write(files.path("src/bpf/main.setup.toml"), format!("init_cpu = {cpu}\n{run}"))
            .unwrap();
        let scheduler = files.compile(SourceOptions::default()).unwrap();
        let case = Case::new(2, 10, vec![hog("hog", nice(0))]);
        let ops = scheduler.ops(case.machine.nr_cpus(), case.machine.hz).unwrap();
        let done = case.run_boxed(ops, Default::default());
        match error {
            None => drop(done.outcome()),
            Some(error) => {
                let text = done.error();
                assert!(text.contains(error), "{error}: {text}");
            }
        }
    }
}

/// As in the scx packages: headers above the source, and a build.rs that names further sources.
#[test]
fn sources_of_one_scheduler_are_found_and_linked() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let other = "#include <scx/common.bpf.h>\n#include <own.h>\n\
        char _license[] SEC(\"license\") = \"GPL\";\n\
        struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32);\n\
        __type(value, u32); } shared __weak SEC(\".maps\");\n\
        const volatile u32 level __weak = 1;\n\
        u32 *place(void) { u32 zero = 0; return bpf_map_lookup_elem(&shared, &zero); }\n";
    let main = format!(
        "{HEAD}
        #include <own.h>
        struct {{ __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32);
        __type(value, u32); }} shared __weak SEC(\".maps\");
        const volatile u32 level __weak = 1;
        void check(struct task_struct *p)
        {{
            u32 zero = 0, *mine = bpf_map_lookup_elem(&shared, &zero), *yours = place();

            CHECK(mine && mine == yours && level == 1 && OWN == 3 && GIVEN == 4 && EPERM == 77);
        }}"
    );
    let own = "#pragma once\n#include <errno.h>\n#define OWN 3\nu32 *place(void);\n";
    let files = Files::new(&[
        ("src/bpf/main.bpf.c", &main),
        ("src/bpf/other.bpf.c", other),
        ("build.rs", "b.enable_skel(\"src/bpf/main.bpf.c\").add_source(\"src/bpf/other.bpf.c\")"),
        ("given/own.h", own),
        ("given/errno.h", "#define EPERM 77\n"),
    ]);
    let source = SourceOptions {
        include: vec![files.path("given")],
        defines: vec!["GIVEN=4".into()],
        ..SourceOptions::default()
    };
    run(&files.compile(source).unwrap());
    fs::remove_file(files.path("build.rs")).unwrap();
    let source = SourceOptions {
        include: vec![files.path("given")],
        defines: vec!["GIVEN=4".into()],
        ..SourceOptions::default()
    };
    let refused = files.compile(source).unwrap_err().to_string();
    assert!(refused.contains("calls what the simulator does not have:\n  place\n"), "{refused}");
    assert!(Path::new(&files.path("src/bpf/other.bpf.c")).is_file());
}

/// A scheduler with cids: task n goes to cid n, in the order of the machine's topology.
const CID_HEAD: &str = r#"
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define CHECK(condition)                                        \
	do {                                                    \
		if (!(condition))                               \
			scx_bpf_error("not so: " #condition);   \
	} while (0)

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
} arena SEC(".maps");
"#;

const CID_BODY: &str = r#"
static u64 idle, allowed;

s32 BPF_STRUCT_OPS(x_select_cid, struct task_struct *p, s32 prev_cid, u64 wake_flags)
{
	CHECK(prev_cid == scx_bpf_cpu_to_cid(p->thread_info.cpu));
	return prev_cid;
}

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cid = (p->scx.tid - 1) % scx_bpf_nr_cids();

	CHECK(scx_bpf_tid_to_task(p->scx.tid) == p);
	CHECK(!scx_bpf_tid_to_task(1000000));
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cid, SCX_SLICE_DFL, enq_flags);
	scx_bpf_kick_cid(cid, SCX_KICK_IDLE);
}

void BPF_STRUCT_OPS(x_dispatch, s32 cid, struct task_struct *prev)
{
	CHECK(cid == scx_bpf_this_cid());
	CHECK(!prev || scx_bpf_task_cid(prev) == cid);
	CHECK(!scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cid));
}

void BPF_STRUCT_OPS(x_update_idle, s32 cid, bool is_idle)
{
	CHECK(cid == scx_bpf_this_cid());
	idle = is_idle ? idle | 1ULL << cid : idle & ~(1ULL << cid);
}

void BPF_STRUCT_OPS(x_set_cmask, struct task_struct *p, const struct scx_cmask *cmask)
{
	CHECK(cmask->base == 0 && cmask->nr_cids == 8 && cmask->alloc_words == 2);
	allowed |= cmask->bits[0];
}

s32 BPF_STRUCT_OPS_SLEEPABLE(x_init)
{
	struct scx_cid_topo at = {};

	CHECK(scx_bpf_nr_cids() == 8 && scx_bpf_nr_online_cids() == 8);
	/* CPU 4 is the sibling of CPU 0; CPU 2 begins the second node. */
	CHECK(scx_bpf_cpu_to_cid(4) == 1 && scx_bpf_cid_to_cpu(1) == 4);
	CHECK(scx_bpf_cpu_to_cid(2) == 4);
	scx_bpf_cid_topo(5, &at, sizeof(at));
	CHECK(at.core_cid == 4 && at.core_idx == 2 && at.llc_cid == 4 && at.llc_idx == 1);
	CHECK(at.node_cid == 4 && at.node_idx == 1 && at.shard_cid == -1);
	return 0;
}

SCX_OPS_CID_DEFINE(x_ops, .select_cid = (void *)x_select_cid, .enqueue = (void *)x_enqueue,
		   .dispatch = (void *)x_dispatch, .update_idle = (void *)x_update_idle,
		   .set_cmask = (void *)x_set_cmask, .init = (void *)x_init,
		   .flags = SCX_OPS_TID_TO_TASK, .name = "x");
"#;

/// Compiles a scheduler with cids for the third core, 7.2.
fn with_cids(text: &str) -> Result<NativeScheduler, NativeError> {
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{CID_HEAD}{text}"))]);
    let options = CompileOptions { kernel: CORES[2].version, ..CompileOptions::default() };
    NativeScheduler::compile(&files.path("src/bpf/main.bpf.c"), &options)
}

/// The case: eight tasks on two nodes of two cores with two threads each, siblings apart.
fn two_nodes() -> Case {
    let tasks = (0..8).map(|n| hog(&format!("hog{n}"), nice(0))).collect();
    let mut case = Case::new(8, 50, tasks).with("scx_core", 2);
    case.machine.topology = Topology::regular(Shape {
        nodes: 2,
        llcs_per_node: 1,
        cores_per_llc: 2,
        threads_per_core: 2,
        siblings_apart: true,
    });
    case
}

#[test]
fn schedulers_that_count_cpus_by_topology() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let scheduler = with_cids(CID_BODY).unwrap();
    let case = two_nodes();
    let ops = scheduler.ops(8, case.machine.hz).unwrap();
    let run = case.run_boxed(ops, Default::default());
    run.outcome();
    assert_eq!(run.timeline_by_cpu(), "0:0A 1:0C 2:0E 3:0G 4:0B 5:0D 6:0F 7:0H");
}

#[test]
fn what_no_kernel_would_load_with_cids_is_refused() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let kicks = CID_BODY.replace("scx_bpf_kick_cid(cid", "scx_bpf_kick_cpu(cid");
    let error = with_cids(&kicks).unwrap_err().to_string();
    assert!(error.contains("scx_bpf_kick_cpu takes CPUs by number"), "{error}");
    assert!(error.contains("use scx_bpf_kick_cid"), "{error}");
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{CID_HEAD}{CID_BODY}"))]);
    let error = files.compile(SourceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("which kernels know from 7.2 on"), "{error}");
    assert!(error.contains("--set scx_core=7.2"), "{error}");
    let bare = CID_HEAD.split("struct {").next().unwrap();
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{bare}{CID_BODY}"))]);
    let options = CompileOptions { kernel: CORES[2].version, ..CompileOptions::default() };
    let error = NativeScheduler::compile(&files.path("src/bpf/main.bpf.c"), &options);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("must have an arena map"), "{error}");
}

/// A scheduler for sub-schedulers, of 7.3: none attaches, and it has every capability. It gives the
/// CPUs numbers from the last to the first, in shards of three.
const ROOT_BODY: &str = r#"
static s32 own[8] = { 7, 6, 5, 4, 3, 2, 1, 0 }, starts[3] = { 0, 3, 6 };
static struct { struct scx_cmask head; u64 more[2]; } out = { { 2, 4, 3 } };
static u32 nr_told;
static u64 first_told;

s32 BPF_STRUCT_OPS_SLEEPABLE(x_init_cids)
{
	if (scx_bpf_online_cmask())
		return -1;
	scx_bpf_cid_override(own, 8, starts, 3);
	return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(x_init)
{
	const struct scx_cmask *online = scx_bpf_online_cmask();
	struct scx_cid_topo at = {};

	if (scx_bpf_cid_to_cpu(0) != 7 || !online || online->bits[0] != 0xff)
		return -2;
	scx_bpf_cid_topo(4, &at, sizeof(at));
	if (at.shard_cid != 3 || at.shard_idx != 1 || at.core_cid != -1 || at.cluster_cid != -1)
		return -3;
	if (scx_bpf_sub_caps(0, SCX_CAP_ENQ, &out.head) || out.head.bits[0] != 0x3c)
		return -4;
	if (scx_bpf_sub_caps(5, SCX_CAP_ENQ, &out.head) != -19 || scx_bpf_sub_dispatch(5) ||
	    scx_bpf_sub_grant(5, SCX_CAP_ENQ, &out.head, NULL) != -19)
		return -5;
	return 0;
}

void BPF_STRUCT_OPS(x_enable, struct task_struct *p, struct scx_enable_args *args)
{
	const struct scx_cmask *mask = (void *)args->cmask_arena_addr;

	first_told = mask->bits[0];
}

void BPF_STRUCT_OPS(x_set_cmask, struct task_struct *p, const struct scx_cmask *mask)
{
	nr_told++;
	if (mask->bits[0] != first_told)
		scx_bpf_error("ops.set_cmask has another mask");
}

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (nr_told < 8 || first_told != 0xff)
		scx_bpf_error("nobody was told about CPUs");
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(x_cpuctl_init, struct cgroup *cgrp,
			     struct scx_cgroup_init_args *args)
{
	return 0;
}

s32 BPF_STRUCT_OPS(x_sub_attach, struct scx_sub_attach_args *args)
{
	scx_bpf_error("nobody can attach");
	return 0;
}

SCX_OPS_CID_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .enable = (void *)x_enable,
		   .set_cmask = (void *)x_set_cmask, .init_cids = (void *)x_init_cids,
		   .init = (void *)x_init, .cpuctl_init = (void *)x_cpuctl_init,
		   .sub_attach = (void *)x_sub_attach, .name = "x");
"#;

/// Runs a scheduler with cids of 7.3.
fn run_7_3(text: &str) -> Result<Ran, NativeError> {
    let files = Files::new(&[("src/bpf/main.bpf.c", &format!("{CID_HEAD}{text}"))]);
    let options = CompileOptions { kernel: CORES[3].version, ..CompileOptions::default() };
    let scheduler = NativeScheduler::compile(&files.path("src/bpf/main.bpf.c"), &options)?;
    let case = two_nodes().with("scx_core", 3);
    Ok(case.run_boxed(scheduler.ops(8, case.machine.hz)?, Default::default()))
}

#[test]
fn a_scheduler_for_sub_schedulers_runs_as_the_only_one() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    run_7_3(ROOT_BODY).unwrap().outcome();
    let late = ROOT_BODY.replace("scx_bpf_cid_override(own, 8, starts, 3);", "");
    let late = late.replace(
        "if (scx_bpf_cid_to_cpu(0)",
        "scx_bpf_cid_override(own, 8, starts, 3);
	if (scx_bpf_cid_to_cpu(0)",
    );
    let error = run_7_3(&late).unwrap().error();
    assert!(error.contains("scx_bpf_cid_override: only ops.init_cids may call it"), "{error}");
    let error = run_7_3(&ROOT_BODY.replace("{ 0, 3, 6 }", "{ 0, 3, 3 }")).unwrap().error();
    assert!(error.contains("shard_start not increasing at [2]"), "{error}");
    let error = run_7_3(
        &ROOT_BODY
            .replace("return -1;", "return 0;")
            .replace("starts, 3);\n\treturn 0;", "starts, 3);\n\treturn -22;"),
    );
    let error = error.unwrap().error();
    assert!(error.contains("ops.init_cids() failed (-22)"), "{error}");
}

#[test]
fn what_is_no_root_scheduler_of_its_kernel_is_refused() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let below = ROOT_BODY.replace(".name =", ".sub_cgroup_id = 77, .name =");
    let error = run_7_3(&below).err().unwrap().to_string();
    assert!(
        error.contains("scheduler x attaches below another one (sub_cgroup_id = 77)"),
        "{error}"
    );
    let error = with_cids(ROOT_BODY).unwrap_err().to_string();
    assert!(error.contains("--set scx_core=7.3 gives the new names"), "{error}");
    let old = ROOT_BODY.replace(".cpuctl_init = (void *)x_cpuctl_init,", "");
    let old = old.replace(".enable = (void *)x_enable,", "");
    // The function has other arguments there.
    let old = old.replace("scx_bpf_cid_override(own, 8, starts, 3);", "");
    let scheduler = with_cids(&old).unwrap();
    let error = scheduler.ops(8, 250).err().unwrap().to_string();
    assert!(error.contains("ops.init_cids exists in Linux 7.3 and later"), "{error}");
}

/// Errors of cids in a run: a number that is none, and a task looked up without the flag.
#[test]
fn wrong_cids_end_the_scheduler() {
    if let Err(missing) = find_clang() {
        return schedlab_testing::skip(missing);
    }
    let error = |text: &str| {
        let scheduler = with_cids(text).unwrap();
        let case = two_nodes();
        let ops = scheduler.ops(8, case.machine.hz).unwrap();
        case.run_boxed(ops, Default::default()).error()
    };
    let far = CID_BODY.replace("% scx_bpf_nr_cids()", "+ 8");
    assert!(error(&far).contains("invalid cid 8"), "{}", error(&far));
    let plain = CID_BODY.replace(".flags = SCX_OPS_TID_TO_TASK, ", "");
    assert!(error(&plain).contains("called without SCX_OPS_TID_TO_TASK"), "{}", error(&plain));
    let twice = CID_BODY.replace(
        "struct scx_cid_topo at = {};",
        "s32 own[8] = { 0, 1, 2, 3, 4, 5, 6, 6 };
         scx_bpf_cid_override(own, sizeof(own));
         return 0;
         struct scx_cid_topo at = {};",
    );
    assert!(error(&twice).contains("cid 6 assigned to multiple cpus"), "{}", error(&twice));
}
