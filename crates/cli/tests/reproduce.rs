// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab reproduce`: verdicts on a study's claims with their numbers, resuming after a stop,
//! unmeasured claims, and invalid study files.

mod common;
use common::{command, done, ok, schedlab};
use serde_json::Value;
use std::path::Path;

/// Two hogs on one CPU take twice as long as one. Some claims state this, others the opposite.
const STUDY: &str = r#"
name = "T"
[[experiment]]
name = "T-{n}"
workload = "hogs"
split = ["n"]
parameters = { work = "40ms" }
axes = { n = [1, 2], cpus = [1] }
keep_slices = true
quick = { parameters = { work = "20ms" } }
[[experiment.runs]]
lane = "sim"
schedulers = ["linux-6.12", "fcfs"]
[[experiment]]
name = "long"
workload = "hogs:n=3,work=200ms"
axes = { cpus = [1] }
quick = { skip = true }
[[experiment.runs]]
lane = "sim"
schedulers = ["rr"]

[[claim]]
id = "T-1"
text = "Twice the work takes twice as long."
numbers = "2.1"
[[claim.check]]
what = "makespan, two by one"
experiment = "T-{n}"
on = ["sim linux-6.12", "sim fcfs"]
value = "makespan_ns[n=2] / makespan_ns[n=1]"
published = 2.1
holds = "1.99 .. 2.02"
why = "2 and what switching costs"

[[claim]]
id = "T-2"
text = "Both always end together."
[[claim.check]]
what = "last exit by the first, less 1"
experiment = "T-{n}"
on = ["sim linux-6.12", "sim fcfs"]
value = "finish_spread[n=2]"
holds = "<= 0.3"
why = "one slice"

[[claim]]
id = "T-3"
text = "First come, first served shares the CPU."
[[claim.check]]
what = "share of the first while both run"
experiment = "T-{n}"
on = ["sim fcfs"]
value = "cpu_share_contended[n=2, task=hog-0]"
holds = "0.4 .. 0.6"
why = "half"

[[claim]]
id = "T-4"
text = "It is so on a real machine, and with more."
[[claim.check]]
what = "makespan"
experiment = "T-{n}"
on = ["host OTHER"]
value = "makespan_ns[n=2]"
holds = "> 0"
why = "any"

[[claim]]
id = "T-5"
text = "Three jobs end within 600 ms."
[[claim.check]]
what = "makespan"
experiment = "long"
on = ["sim rr"]
value = "makespan_ns"
holds = "< 610ms"
why = "three times 200 ms, and 10 for switching"

[[claim]]
id = "T-6"
text = "The code is short."
not_measured = "nothing runs"
"#;

/// Figures and tables of that study, with values from an original publication.
const FIGURES: &str = r#"
[[figure]]
id = "T-F1"
title = "Time against the number of hogs"
text = "Twice as long."
form = "points"
claims = ["T-1"]
experiment = "T-{n}"
on = ["sim linux-6.12", "sim fcfs"]
x = "n"
x_label = "hogs"
y_label = "makespan (ms)"
series = [{ label = "makespan", value = "makespan_ns / 1ms" }]
[figure.published]
source = "nobody"
at = [1, 2]
row = [{ where = { series = "makespan" }, values = [41, 86] }]

[[figure]]
id = "T-F2"
title = "Switches"
form = "bars"
experiment = "T-{n}"
on = ["sim fcfs", "host OTHER"]
y_label = "switches"
series = [{ label = "all", value = "nr_switches" }]
groups = [{ label = "one", where = { n = 1 } }, { label = "two", where = { n = 2 } }]

[[table]]
id = "T-T1"
title = "CPU time and makespan"
experiment = "T-{n}"
on = ["sim fcfs"]
raw = true
columns = [
    { label = "makespan (ms)", value = "makespan_ns / 1ms" },
    { label = "user (ms)", value = "user_time_ns / 1ms" },
    { label = "idle capacity (ms)", value = "idle_capacity_ns / 1ms" },
]
rows = [{ label = "two hogs", where = { n = 2 } }]

[[table.reference]]
source = "nobody"
columns = ["makespan (ms)"]
row = [{ row = "two hogs", values = [87.5] }]
"#;

fn study(folder: &Path, text: &str) -> String {
    let path = folder.join("t.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn verdicts(claims: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let claims = claims.as_array().unwrap();
    claims.iter().map(|claim| (text(&claim["id"]), text(&claim["verdict"]))).collect()
}

#[test]
fn each_claim_gets_its_verdict_and_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = study(folder.path(), STUDY);
    let output = folder.path().join("out");
    let output = output.to_str().unwrap();
    let args = ["reproduce", path.as_str(), "--output", output, "--json"];
    let claims: Value = serde_json::from_str(&ok(&args).stdout).unwrap();
    let found = verdicts(&claims);
    let wanted = ["holds", "partly-holds", "fails", "inconclusive", "holds"];
    let expected: Vec<(String, String)> = wanted
        .iter()
        .chain(&["inconclusive"])
        .enumerate()
        .map(|(index, verdict)| (format!("T-{}", index + 1), (*verdict).to_string()))
        .collect();
    assert_eq!(found, expected);
    let first = &claims[0]["checks"][0];
    assert_eq!((first["published"].as_f64(), &first["is_exact"]), (Some(2.1), &true.into()));
    assert!((first["found"].as_f64().unwrap() - 2.0).abs() < 0.01, "{first}");
    // Under fcfs the second one begins when the first ends.
    let spread = &claims[1]["checks"][1];
    assert!((spread["found"].as_f64().unwrap() - 1.0).abs() < 0.01, "{spread}");
    assert_eq!(claims[2]["checks"][0]["found"], 1.0);
    assert_eq!(claims[5]["reason"], "nothing runs");
    let read = |name: &str| std::fs::read_to_string(Path::new(output).join(name)).unwrap();
    let counts = "2 hold, 1 is mixed, 1 fails, 2 are inconclusive.";
    for (page, part) in [
        ("report.html", "<a href=\"report-t.html\">T</a>"),
        ("report.html", "href=\"report-t.html#claim-T-2\""),
        ("report.html", counts),
        ("report-t.html", "id=\"claim-T-2\""),
        ("report-t.html", "PARTLY HOLDS"),
        ("report-t.html", "what switching costs"),
        ("report-t.html", "<a href=\"report.html\">All studies</a>"),
    ] {
        assert!(read(page).contains(part), "{page}: {part}");
    }
    let stored = std::fs::read_to_string(Path::new(output).join("claims.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), claims);
}

#[test]
fn figures_and_tables_of_a_study_stand_beside_the_originals_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = study(folder.path(), &format!("{STUDY}{FIGURES}"));
    let output = folder.path().join("out");
    let args = ["reproduce", path.as_str(), "--output", output.to_str().unwrap(), "--plots"];
    ok(&[&args[..], &["--costs", "zero"]].concat());
    let report = std::fs::read_to_string(output.join("report-t.html")).unwrap();
    for part in [
        // The figure with its original, and the claim that uses it.
        "id=\"figure-t-f1\"",
        "Tinted: nobody.",
        "<a href=\"#figure-t-f1\">T-F1</a>",
        // 40 ms twice; all of it is user time; no CPU idles; the published value is 87.5.
        "<th>two hogs</th><td>fcfs</td><td class=\"num\">80</td><td class=\"num\">80</td>\
         <td class=\"num\">0</td><td class=\"num other\">87.5</td>",
        "<pre>0.08 0.08 0.00 100% 0 2</pre>",
        "Nothing was run here under OTHER, this machine.",
    ] {
        assert!(report.contains(part), "{part}");
    }
    for name in ["study-t-f1.svg", "study-t-f2.svg"] {
        assert!(output.join("plots").join(name).exists(), "{name}");
    }
}

#[test]
fn a_figure_that_cannot_be_drawn_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (old, new, wanted) in [
        ("form = \"points\"", "form = \"pie\"", "unknown variant `pie`"),
        ("values = [41, 86]", "values = [41]", "`published` does not fit"),
        ("x = \"n\"", "x = \"m\"", "no dimension is called \"m\""),
        ("id = \"T-F2\"", "id = \"T-F1\"", "two figures or tables are called"),
        ("nr_switches\" }]\ngroups", "switches\" }]\ngroups", "has no value here"),
        ("user_time_ns /", "user_time_ms[n=2] /", "no measure is called \"user_time_ms\""),
        ("values = [87.5]", "values = [87.5, 1]", "has 2 values"),
        ("on = [\"sim fcfs\"]\nraw", "on = [\"sim\"]\nraw", "is no place of runs"),
    ] {
        assert!(FIGURES.contains(old), "{old}");
        let text = format!("{STUDY}{}", FIGURES.replacen(old, new, 1));
        let path = study(folder.path(), &text);
        let output = folder.path().join("out");
        let refused = schedlab(&["reproduce", path.as_str(), "--output", output.to_str().unwrap()]);
        assert_eq!(refused.code, 2, "{new}: {}", refused.stderr);
        let text = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted) && text.contains("t.toml"), "{new}: {text}");
    }
}

#[test]
fn the_same_command_goes_on_and_a_quick_one_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = study(folder.path(), STUDY);
    let output = folder.path().join("out");
    let args = ["reproduce", path.as_str(), "--output", output.to_str().unwrap()];
    let first = ok(&args);
    let again = ok(&args);
    assert!(again.stderr.contains("5 are stored in"), "{}", again.stderr);
    assert_eq!(first.stdout, again.stdout);
    let refused = schedlab(&[&args[..], &["--quick"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("another experiment"), "{}", refused.stderr);
    let quick = ok(&[&args[..], &["--quick", "--fresh", "--details"]].concat());
    assert!(quick.stdout.contains("a quick reproduction leaves it out"), "{}", quick.stdout);
    assert!(quick.stdout.contains("6 claims: 1 HOLDS, 1 PARTLY HOLDS"), "{}", quick.stdout);
}

/// The first run of each point is analysed. Results without an analysis have another identity.
#[test]
fn runs_can_be_analysed() {
    let folder = tempfile::tempdir().unwrap();
    let path = study(folder.path(), STUDY);
    let output = folder.path().join("out");
    let args = ["reproduce", path.as_str(), "--output", output.to_str().unwrap()];
    ok(&[&args[..], &["--analysis", "--plots"]].concat());
    for name in ["depth", "progress", "states"] {
        assert!(output.join(format!("plots/t-1-analysis-{name}.svg")).exists(), "{name}");
    }
    let refused = schedlab(&args);
    assert!(refused.code == 2 && refused.stderr.contains("other settings"), "{}", refused.stderr);
}

#[test]
fn what_is_left_out_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = study(folder.path(), STUDY);
    let output = folder.path().join("out");
    let base = ["reproduce", path.as_str(), "--output", output.to_str().unwrap(), "--details"];
    let shown = ok(&[&base[..], &["--lane", "sim"]].concat()).stdout;
    assert!(shown.contains("lane host was not asked for"), "{shown}");
}

#[test]
fn a_study_that_makes_no_sense_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    let cases = [
        ("makespan_ns[n=2] / makespan_ns[n=1]", "makespan[n=2]", "did you mean `makespan_ns`"),
        ("finish_spread[n=2]", "finish_spread[m=2]", "no dimension is called \"m\""),
        ("finish_spread[n=2]", "finish_spread[n=2] +", "found its end"),
        ("finish_spread[n=2]", "n * 2", "\"n\" has no value here"),
        ("\"<= 0.3\"", "\"about 0.3\"", "allowed are A .. B, >= A"),
        ("\"sim rr\"", "\"moon rr\"", "is no place of runs"),
        ("experiment = \"long\"", "experiment = \"lang\"", "did you mean `long`"),
        ("id = \"T-2\"", "id = \"T-1\"", "two claims are called"),
        ("not_measured = \"nothing runs\"", "", "either checks or `not_measured`"),
    ];
    for (old, new, wanted) in cases {
        assert!(STUDY.contains(old), "{old}");
        let path = study(folder.path(), &STUDY.replacen(old, new, 1));
        let refused = schedlab(&["reproduce", path.as_str(), "--output", output.to_str().unwrap()]);
        assert_eq!(refused.code, 2, "{new}: {}", refused.stderr);
        let text = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted) && text.contains("t.toml"), "{new}: {text}");
        assert!(!output.exists(), "nothing is written");
    }
    let unknown = schedlab(&["reproduce", "S9", "--output", output.to_str().unwrap()]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("allowed are"), "{}", unknown.stderr);
    let twice = schedlab(&["reproduce", "S4", "s4", "--output", output.to_str().unwrap()]);
    assert_eq!(twice.code, 2);
    assert!(twice.stderr.contains("\"s4\" is named twice"), "{}", twice.stderr);
}

#[test]
fn without_guests_their_checks_cannot_be_told_and_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("g.toml");
    let guest = "[[experiment.runs]]\nlane = \"vm\"\nschedulers = [\"6.18:RR\", \"6.18:wrr\"]\n\
                 set = { rt_runtime = \"1s\" }\n";
    let text = "name = \"G\"\n[[experiment]]\nname = \"G\"\nworkload = \"hogs:n=1,work=5ms\"\n\
                axes = { cpus = [1] }\n[[experiment.runs]]\nlane = \"sim\"\n\
                schedulers = [\"rr\"]\n";
    let claim = "[[claim]]\nid = \"G-1\"\ntext = \"t\"\n[[claim.check]]\nwhat = \"w\"\n\
                 experiment = \"G\"\non = [\"sim rr\", \"vm 6.18:wrr\"]\n\
                 value = \"nr_exited\"\nholds = \"= 1\"\nwhy = \"one\"\n";
    std::fs::write(&study, format!("{text}{guest}{claim}")).unwrap();
    let output = folder.path().join("out");
    let args = ["reproduce", study.to_str().unwrap(), "--json", "--output"];
    let qemu = folder.path().join("no-qemu");
    let run = command().env("SCHEDLAB_QEMU", &qemu).args(args).arg(&output).output().unwrap();
    let run = done(&run);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let claims: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(claims[0]["verdict"], "partly-holds");
    let checks = claims[0]["checks"].as_array().unwrap();
    assert_eq!(
        (&checks[0]["answer"], &checks[1]["answer"]),
        (&"holds".into(), &"inconclusive".into())
    );
    let reason = checks[1]["reason"].as_str().unwrap();
    assert!(reason.contains("no-qemu") && reason.contains("left out"), "{reason}");
}
