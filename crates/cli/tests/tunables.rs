// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tunables by the names and in the units of the kernels' files.

mod common;
use common::{flat, ok, schedlab};

fn slices(settings: &[&str]) -> String {
    let mut args = vec!["sim", "hogs", "--scheduler", "linux-6.12", "--until", "50ms", "--slices"];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    ok(&args).stdout
}

#[test]
fn a_file_of_the_kernel_and_its_unit_mean_what_the_tunable_means() {
    let plain = slices(&[]);
    let own = slices(&["base_slice=9ms"]);
    assert_ne!(plain, own);
    for setting in [
        "linux-6.12:base_slice_ns=9000000",
        "base_slice_ns=9ms",
        "/sys/kernel/debug/sched/base_slice_ns=9000000",
        "sched_base_slice_ns=9000000",
    ] {
        assert_eq!(slices(&[setting]), own, "{setting}");
    }
}

#[test]
fn microseconds_and_minus_one_are_understood() {
    let run = |settings: &[&str]| {
        let mut args = vec!["sim", "hogs:policy=FIFO,work=3s", "--scheduler", "linux-6.1"];
        args.extend(["--watchdog", "off", "--slices"]);
        args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        ok(&args).stdout
    };
    let throttled = run(&[]);
    assert_eq!(run(&["kernel.sched_rt_runtime_us=950000"]), throttled);
    let less = run(&["sched_rt_runtime_us=500000"]);
    assert_eq!(run(&["rt_runtime=500ms"]), less);
    let never = run(&["linux-6.1:sched_rt_runtime_us=-1"]);
    assert_eq!(run(&["rt_bandwidth=off"]), never);
    assert!(throttled != less && throttled != never);
}

#[test]
fn features_are_turned_off_as_in_debugfs() {
    let run = |scheduler: &str, settings: &[&str]| {
        let mut args = vec!["sim", "interactive:n=4", "--scheduler", scheduler, "--until", "2s"];
        args.push("--slices");
        args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        ok(&args).stdout
    };
    for (scheduler, feature) in [
        ("linux-6.1", "START_DEBIT"),
        ("linux-6.1", "WAKEUP_PREEMPTION"),
        ("linux-6.12", "PLACE_LAG"),
        ("linux-6.12", "DELAY_DEQUEUE"),
        ("linux-6.18", "WAKEUP_PREEMPTION"),
    ] {
        let (off, on) = (format!("features=NO_{feature}"), format!("features={feature}"));
        let (plain, without) = (run(scheduler, &[]), run(scheduler, &[&off]));
        assert_ne!(plain, without, "{scheduler} {feature}");
        assert_eq!(run(scheduler, &[&format!("{scheduler}:{feature}=no")]), without);
        assert_eq!(run(scheduler, &[&off, &on]), plain, "the last word counts");
    }
    let wrong = schedlab(&["sim", "hogs", "--set", "features=NO_SUCH_THING", "--until", "10ms"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("PLACE_LAG"), "{}", wrong.stderr);
    for setting in ["features=NO_TTWU_QUEUE", "linux-6.12:TTWU_QUEUE=no"] {
        let args = ["sim", "hogs", "--scheduler", "linux-6.12", "--set", setting];
        let refused = schedlab(&args);
        // Text from the first line only, because the message is wrapped.
        let why = "feature TTWU_QUEUE cannot matter";
        assert!(refused.code == 2 && refused.stderr.contains(why), "{}", refused.stderr);
    }
}

#[test]
fn what_is_no_tunable_is_refused_with_a_guess_and_the_list() {
    for (setting, guess) in [
        ("linux-6.12:base_slise_ns=3000000", "did you mean `base_slice_ns`?"),
        ("linux-6.12:migration_cots=1ms", "did you mean `migration_cost`?"),
        ("linux-6.12:preempt=lazy", "--preempt"),
        ("linux-6.12:latency_ns=6000000", "allowed are base_slice (base_slice_ns)"),
    ] {
        let run = schedlab(&["sim", "hogs", "--until", "10ms", "--set", setting]);
        assert_eq!(run.code, 2, "{setting}: {}", run.stderr);
        let said = flat(&run.stderr);
        assert!(said.contains(guess) && said.contains("sched_rt_runtime_us"), "{said}");
    }
    let bare = schedlab(&["sim", "hogs", "--set", "base_slice=3000000", "--until", "10ms"]);
    assert!(bare.code == 2 && bare.stderr.contains("unit"), "{}", bare.stderr);
}

#[test]
fn the_list_tells_the_names_of_the_files() {
    let text = ok(&["list", "schedulers", "--long"]).stdout;
    assert!(text.contains("the kernel's base_slice_ns"), "{text}");
    assert!(text.contains("the kernel's sched_rt_runtime_us"), "{text}");
}
