// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs as data: what the parser refuses, which values it inserts, and which it reads.

use schedlab_lab::Study;
use schedlab_model::Policy;
use schedlab_run::StudyError;
use schedlab_run::program::{Pick, ProgramRun, Surroundings};

const SERVER: &str = "
argv = ['client', '--threads={threads}', '--socket={dir}/s', '{{{cpus}}}']
packages = ['server', 'client']
environment = { DISPLAY = ':{number}' }
directories = ['data/test']
teardown = [['bye', '{seed}']]
limit = '10s'
[[setup]]
argv = ['server', '--data={dir}/data']
stays = true
has_policy = true
ready_output = 'ready'
[[setup]]
argv = ['hog']
stays = true
count = '{hogs}'
[[figure]]
name = 'pass_ns'
pattern = 'pass: ([0-9.]+) us'
unit = 'us'
";

fn server() -> ProgramRun {
    let values = [("threads", "4"), ("cpus", "2"), ("hogs", "3")];
    let values = values.map(|(name, value)| (name.to_string(), value.to_string()));
    ProgramRun {
        spec: toml::from_str(SERVER).unwrap(),
        values: values.into(),
        policy: Policy::Fifo,
    }
}

fn study(program: &str, rest: &str) -> Result<Study, StudyError> {
    let runs = "[[experiment.runs]]\nlane='host'\nschedulers=['OTHER']\n";
    let indented = program.replace("\n[[", "\n[[experiment.program.");
    Study::parse(&format!(
        "name='x'\n[[experiment]]\nname='a'\naxes={{threads=[4], hogs=[3]}}\n{rest}\n{runs}\
         [experiment.program]\n{indented}"
    ))
}

#[test]
fn words_get_the_values_of_the_run() {
    let at = Surroundings { dir: "/d", number: 77, seed: 5 };
    let ready = server().ready(at).unwrap();
    assert_eq!(ready.argv, ["client", "--threads=4", "--socket=/d/s", "{2}"]);
    assert_eq!(ready.environment["DISPLAY"], ":77");
    assert_eq!(ready.teardown, [["bye", "5"]]);
    assert_eq!((ready.limit_ns, ready.setup_limit_ns), (10_000_000_000, 60_000_000_000));
    let counts: Vec<u32> = ready.setup.iter().map(|step| step.count).collect();
    assert_eq!(counts, [1, 3]);
    assert!(ready.setup[0].has_policy && !ready.setup[1].has_policy);
}

#[test]
fn a_value_is_one_word_whatever_stands_in_it() {
    let mut run = server();
    run.values.insert("threads".into(), "4; rm -rf {dir} $(x)".into());
    let ready = run.ready(Surroundings::ANYWHERE).unwrap();
    assert_eq!(ready.argv[1], "--threads=4; rm -rf {dir} $(x)", "filled once, split never");
}

#[test]
fn figures_are_read_in_their_unit() {
    let read = |output: &str| server().figures(output).map(|figures| figures["pass_ns"]);
    assert_eq!(read("pass: 1 us\nx\npass: 2.5 us\n"), Ok(2_500.0));
    assert!(read("no pass").unwrap_err().contains("nothing printed matches"));
    let mut run = server();
    for (pick, wanted) in [
        (Pick::First, 1.0),
        (Pick::Last, 2.0),
        (Pick::Min, 1.0),
        (Pick::Max, 6.0),
        (Pick::Mean, 3.0),
        (Pick::Sum, 9.0),
    ] {
        run.spec.figures[0].pick = pick;
        let figures = run.figures("pass: 1 us pass: 6 us pass: 2 us").unwrap();
        assert_eq!(figures["pass_ns"], wanted * 1e3, "{pick:?}");
    }
    run.spec.figures[0].pattern = "pass: (.*)".into();
    assert!(run.figures("pass: many").unwrap_err().contains("is no number"));
}

#[test]
fn a_study_with_a_program_is_read() {
    let study = study(SERVER, "measure=['pass_ns', 'nr_switches']").unwrap();
    let spec = &study.experiments[0];
    assert_eq!(spec.workloads(), ["client"]);
    assert_eq!(spec.figure_names(), ["pass_ns"]);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    for (from, to, wanted) in [
        ("{threads}", "{thraeds}", "did you mean {threads}?"),
        ("{dir}/s'", "{dir/s'", "without its pair"),
        ("'{{{cpus}}}'", "'{cpus}}'", "without its pair"),
        ("'data/test'", "'../data'", "does not lie in the private one"),
        ("'data/test'", "'/data'", "does not lie in the private one"),
        ("limit = '10s'", "limit = '4000s'", "up to 3600s"),
        ("ready_output = 'ready'", "ready_output = '('", "no regular expression"),
        ("count = '{hogs}'", "count = 'many'", "no number of processes"),
        ("pass_ns", "pass", "cannot be the name of a figure"),
        ("pass_ns", "makespan_ns", "is a measure of every run"),
        ("pass_ns", "passes_per_s", "which is no time"),
        ("unit = 'us'", "", "not in which unit"),
        ("unit = 'us'", "unit = 'min'", "no unit of time"),
        ("([0-9.]+)", "[0-9.]+", "has 0 groups"),
        ("argv = ['hog']", "argv = []", "a command of 0 words"),
        ("stays = true\ncount", "count", "does not stay"),
        ("DISPLAY", "'A=B'", "name of a variable"),
        ("packages", "package", "did you mean `packages`?"),
    ] {
        let text = SERVER.replacen(from, to, 1);
        assert_ne!(text, SERVER, "{from}");
        let error = study(&text, "").unwrap_err().to_string();
        assert!(error.contains(wanted), "{from} -> {to}: {error}");
    }
    for (rest, wanted) in [
        ("workload='hogs'", "`workload` stands beside a program"),
        ("until='1s'", "`until` stands beside a program"),
        ("machine='host'", "`machine` stands beside a program"),
        ("measure=['pass_us']", "did you mean `pass_ns`?"),
    ] {
        let error = study(SERVER, rest).unwrap_err().to_string();
        assert!(error.contains(wanted), "{rest}: {error}");
    }
    let sim = study(SERVER, "[[experiment.runs]]\nlane='sim'\nschedulers=['fcfs']").unwrap_err();
    assert!(sim.to_string().contains("only this machine has programs"), "{sim}");
}

/// A hostile pattern or output costs time in proportion to its length, not exponentially.
#[test]
fn patterns_that_explode_elsewhere_do_not_here() {
    let mut run = server();
    run.spec.figures[0].pattern = "pass: ((a*)*)*b([0-9])".replace("((a*)*)*", "(?:(?:a*)*)*");
    let output = format!("pass: {}", "a".repeat(100_000));
    assert!(run.figures(&output).is_err());
    run.spec.figures[0].pattern = "(x{1000}{1000})".into();
    assert!(run.figures("x").unwrap_err().contains("no regular expression"));
}
