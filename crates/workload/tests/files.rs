// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that this project ships or prints: examples, the guide's snippets, built-ins as files.
//! Each loads, prints back to itself and validates against the published schema.

use schedlab_model::Workload;
use schedlab_workload::builtin::Param;
use schedlab_workload::{BUILTINS, builtin, read_rtapp, write_rtapp};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const NR_CPUS: u32 = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn schema() -> jsonschema::Validator {
    let text = read(root().join("docs/reference/workload.schema.json"));
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).expect("the schema compiles")
}

fn load(name: &str, text: &str) -> Workload {
    let read = read_rtapp(name, text, NR_CPUS)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{text}", error.help));
    assert_eq!(read.warnings, [], "{name}");
    let printed = write_rtapp(&read.workload);
    let again = read_rtapp(name, &printed, NR_CPUS).expect("what is printed reads");
    assert_eq!(again.workload, read.workload, "{printed}");
    read.workload
}

/// The text as plain JSON: without comments and trailing commas.
fn plain(text: &str) -> Value {
    let parsed = jsonc_parser::parse_to_ast(text, &Default::default(), &Default::default());
    parsed.expect("the text is JSON with comments").value.expect("it holds a value").into()
}

fn validate(schema: &jsonschema::Validator, name: &str, value: &Value) {
    let errors: Vec<String> = schema
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
}

fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 6, "the examples are there");
    paths.iter().map(|path| (path.display().to_string(), read(path))).collect()
}

/// The fenced blocks of a document that are marked `json`.
fn snippets(document: &str) -> Vec<String> {
    let text = read(root().join(document));
    let mut snippets = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "```json" {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            snippets.push(body.join("\n"));
        }
    }
    snippets
}

#[test]
fn every_example_loads_and_validates() {
    let schema = schema();
    for (name, text) in examples() {
        let workload = load(&name, &text);
        assert!(name.ends_with(&format!("{}.json", workload.name)), "{name}");
        validate(&schema, &name, &plain(&text));
    }
}

#[test]
fn every_snippet_of_the_documents_loads_and_validates() {
    let schema = schema();
    for (document, least) in
        [("docs/guide/write-a-workload.md", 7), ("docs/reference/workload-format.md", 1)]
    {
        let snippets = snippets(document);
        assert!(snippets.len() >= least, "{document} has {} snippets", snippets.len());
        for text in snippets {
            load(document, &text);
            validate(&schema, document, &plain(&text));
        }
    }
}

#[test]
fn every_builtin_prints_as_a_file_that_validates() {
    let schema = schema();
    for entry in BUILTINS {
        let printed = write_rtapp(&builtin(entry.name, &[]).unwrap());
        // Plain JSON without repeated keys, for any tool.
        validate(&schema, entry.name, &serde_json::from_str(&printed).unwrap());
    }
}

/// What the schema refuses, the reader refuses, and the reverse for faults of form.
#[test]
fn schema_and_reader_refuse_the_same_faults_of_form() {
    let schema = schema();
    let task = |task: Value| json!({ "tasks": { "a": task } });
    let faults = [
        json!({}),
        json!({ "taks": {} }),
        json!({ "tasks": { "a": { "run": 5 } }, "global": { "druation": 2 } }),
        json!({ "tasks": { "a": { "run": 5 } }, "global": { "duration": 0 } }),
        json!({ "tasks": { "a": { "run": 5 } }, "cgroups": { "/a": { "weight": 0 } } }),
        json!({ "tasks": { "a": { "run": 5 } }, "cgroups": { "a": {} } }),
        task(json!({ "run": -5 })),
        task(json!({ "run": 1.5 })),
        task(json!({ "run": "5" })),
        task(json!({ "run": { "distribution": "normal", "mean": 5 } })),
        task(json!({ "run": { "distribution": "uniform", "low": 5 } })),
        task(json!({ "run": 5, "lock": 5 })),
        task(json!({ "run": 5, "wait": "c" })),
        task(json!({ "run": 5, "wait": { "cond": "c" } })),
        task(json!({ "run": 5, "sync": { "mutex": 5 } })),
        task(json!({ "run": 5, "barrier": "" })),
        task(json!({ "run": 5, "suspend": 5 })),
        task(json!({ "run": 5, "resume": "" })),
        task(json!({ "run": 5, "send": { "bytes": 5 } })),
        task(json!({ "run": 5, "wait_any": [] })),
        task(json!({ "run": 5, "mem": -1 })),
        task(json!({ "run": 5, "memrun": { "type": "read" } })),
        task(json!({ "run": 5, "memrun": { "type": "read", "count": 5, "stride": 0 } })),
        task(json!({ "run": 5, "util_min": 1025 })),
        task(json!({ "run": 5, "dl-reclaim": 1 })),
        task(json!({ "run": 5, "nodes_membind": 5 })),
        task(json!({ "run": 5, "process": 1 })),
        task(json!({ "run": 5, "exec": 5 })),
        json!({ "tasks": { "a": { "run": 5 } }, "objects": { "m": {} } }),
        json!({ "tasks": { "a": { "run": 5 } }, "objects": { "m": { "kind": "fifo" } } }),
        json!({ "tasks": { "a": { "run": 5 } },
                "objects": { "m": { "kind": "mutex", "protocol": "ceiling" } } }),
        json!({ "tasks": { "a": { "run": 5 } },
                "objects": { "m": { "kind": "pipe", "capacity": 0 } } }),
        json!({ "tasks": { "a": { "run": 5 } }, "resources": { "m": { "type": "lock" } } }),
        json!({ "tasks": { "a": { "run": 5 } }, "expect": [{ "measure": "jain_index" }] }),
        json!({ "tasks": { "a": { "run": 5 } }, "expect": [{ "at_most": 5 }] }),
        json!({ "tasks": { "a": { "run": 5 } }, "cgroups": { "/a": { "cpu_max": {} } } }),
        json!({ "tasks": { "a": { "run": 5 } }, "global": { "pi_enabled": 1 } }),
        task(json!({ "run": 5, "instanec": 5 })),
        task(json!({ "run": 5, "instance": -1 })),
        task(json!({ "run": 5, "policy": "FIFO" })),
        task(json!({ "run": 5, "priority": 100 })),
        task(json!({ "run": 5, "cpus": [] })),
        task(json!({ "run": 5, "cpus": [1024] })),
        task(json!({ "run": 5, "taskgroup": "/a/../b" })),
        task(json!({ "run": 5, "timer": { "period": 0 } })),
        task(json!({ "run": 5, "timer": { "ref": "a" } })),
        task(json!({ "run": 5, "iorun": { "bytes": 5 } })),
        task(json!({ "run": 5, "join": 1 })),
        task(json!({ "run": 5, "fork": 1 })),
        task(json!({ "repeat": { "run": 5 } })),
        task(json!({ "run": 5, "sched": {} })),
        task(json!({ "run": 5, "phases": { "p": { "run": 5 } } })),
        task(json!({ "phases": { "p": { "run": 5, "delay": 5 } } })),
    ];
    for fault in faults {
        assert!(read_rtapp("f.json", &fault.to_string(), NR_CPUS).is_err(), "reader: {fault}");
        assert!(!schema.is_valid(&fault), "schema: {fault}");
    }
}

/// The keys that the reader itself lists as allowed.
fn keys_of_the_reader() -> Vec<String> {
    let probes = [
        r#"{ "?": 1 }"#,
        r#"{ "tasks": {}, "global": { "?": 1 } }"#,
        r#"{ "tasks": {}, "cgroups": { "/a": { "?": 1 } } }"#,
        r#"{ "tasks": { "a": { "?": 1 } } }"#,
        r#"{ "tasks": { "a": { "timer": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "iorun": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "run": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "wait": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "send": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "memrun": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "run": 1 } }, "objects": { "m": { "kind": "?" } } }"#,
        r#"{ "tasks": {}, "objects": { "m": { "kind": "mutex", "?": 1 } } }"#,
        r#"{ "tasks": {}, "objects": { "m": { "kind": "barrier", "?": 1 } } }"#,
        r#"{ "tasks": {}, "objects": { "m": { "kind": "semaphore", "?": 1 } } }"#,
        r#"{ "tasks": {}, "objects": { "m": { "kind": "pipe", "?": 1 } } }"#,
        r#"{ "tasks": {}, "cgroups": { "/a": { "cpu_max": { "?": 1 } } } }"#,
        r#"{ "tasks": { "a": { "run": 1 } }, "expect": [{ "?": 1 }] }"#,
        r#"{ "tasks": { "a": { "run": 1, "policy": "?" } } }"#,
    ];
    let mut keys = Vec::new();
    for probe in probes {
        let help = read_rtapp("p.json", probe, 1).unwrap_err().help;
        let help = help.replace("allowed are", "").replace("the properties", "");
        let help = help.replace("and the events", ",");
        keys.extend(help.split(',').map(|key| key.trim().to_string()));
    }
    assert!(keys.len() > 50 && keys.iter().all(|key| !key.contains(' ')), "{keys:?}");
    keys
}

#[test]
fn the_reference_and_the_schema_describe_every_key() {
    let reference = read(root().join("docs/reference/workload-format.md"));
    let schema = read(root().join("docs/reference/workload.schema.json"));
    for key in keys_of_the_reader() {
        assert!(reference.contains(&format!("`{key}`")), "the reference misses `{key}`");
        let in_schema = [format!("\"{key}\""), format!("\"^{key}")];
        assert!(in_schema.iter().any(|text| schema.contains(text)), "the schema misses {key}");
    }
}

/// Whether two built-ins mean the same by a parameter; its default may differ.
fn is_same(a: &Param, b: &Param) -> bool {
    (a.name, a.kind, a.help) == (b.name, b.kind, b.help)
}

/// Parameters that more than half of the built-ins have, with the most frequent default.
fn common_params() -> Vec<&'static Param> {
    let all: Vec<&Param> = BUILTINS.iter().flat_map(|entry| entry.params).collect();
    let count = |counts: &dyn Fn(&Param) -> bool| all.iter().filter(|p| counts(p)).count();
    let mut common: Vec<&Param> = Vec::new();
    for param in &all {
        let often = 2 * count(&|other| is_same(other, param)) > BUILTINS.len();
        if often && !common.iter().any(|known| is_same(known, param)) {
            let same = all.iter().filter(|other| is_same(other, param));
            common.extend(same.max_by_key(|same| count(&|other| other == **same)));
        }
    }
    common
}

/// A table of parameters.
fn table_of(params: &[&Param]) -> String {
    let mut text = String::from("| parameter | meaning | allowed | default |\n");
    text += "| --- | --- | --- | --- |\n";
    for Param { name, kind, default, help } in params {
        text += &format!("| `{name}` | {help} | {} | `{default}` |\n", kind.allowed());
    }
    text
}

/// The built-in workloads as the reference shows them. Common parameters have one table for all.
fn builtins_as_markdown() -> String {
    let common = common_params();
    let mut text = format!("### Common parameters\n\n{}\n", table_of(&common));
    for entry in BUILTINS {
        let study =
            if entry.study.is_empty() { String::new() } else { format!(" ({})", entry.study) };
        text += &format!("### `{}`{study}\n\n{}.\n\n", entry.name, entry.summary);
        let common_of = |param: &Param| common.iter().find(|known| is_same(known, param));
        let own: Vec<&Param> = entry.params.iter().filter(|p| common_of(p).is_none()).collect();
        text += &table_of(&own);
        let shared = entry.params.iter().filter_map(|param| {
            let Param { name, default, .. } = param;
            Some(match common_of(param)? {
                known if *known == param => format!("`{name}`"),
                _ => format!("`{name}` (default `{default}`)"),
            })
        });
        let shared: Vec<String> = shared.collect();
        text += &format!("\nCommon: {}.\n\n", shared.join(", "));
    }
    text
}

#[test]
fn the_reference_lists_the_built_ins_as_they_are() {
    const BEGIN: &str = "<!-- begin of built-ins -->\n\n";
    const END: &str = "<!-- end of built-ins -->";
    let path = root().join("docs/reference/workload-format.md");
    let text = read(&path);
    let (before, rest) = text.split_once(BEGIN.trim_end()).expect("the begin mark is there");
    let (_, after) = rest.split_once(END).expect("the end mark is there");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", builtins_as_markdown());
    schedlab_testing::golden(&path, &wanted).unwrap();
}
