// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiling and loading schedulers: what is refused, and in which words.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use schedlab_scx_native::{CompileOptions, NativeError, NativeScheduler, find_clang};
use std::fs;
use std::path::{Path, PathBuf};

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native").join(name)
}

/// Whether there is a compiler; the test is skipped if not.
fn has_clang() -> bool {
    find_clang().map_err(schedlab_testing::skip).is_ok()
}

fn compile_text(text: &str) -> Result<NativeScheduler, NativeError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.bpf.c");
    fs::write(&path, format!("#include <scx/common.bpf.h>\n{text}")).unwrap();
    NativeScheduler::compile(&path, &CompileOptions::default())
}

const OPS: &str = "SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = \"x\");";

fn refusal(text: &str) -> String {
    match compile_text(text) {
        Err(NativeError::Refused(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_are_found_with_their_types_and_defaults() {
    if !has_clang() {
        return;
    }
    let scheduler =
        NativeScheduler::compile(&own("weighted.bpf.c"), &CompileOptions::default()).unwrap();
    let text: Vec<String> = scheduler
        .options()
        .iter()
        .map(|option| format!("{}: {} = {:?}", option.name, option.kind, option.default))
        .collect();
    assert_eq!(
        text,
        [
            "fifo: true or false = \"false\"",
            "mode: one of PLAIN, FANCY = \"PLAIN\"",
            "nr_cpu_ids: number of 32 bits = \"1\"",
            "slice_ns: number of 64 bits = \"5000000\"",
            "table: 4 times: number of 32 bits = \"\"",
        ]
    );
    let set =
        |name: &str, value: &str| scheduler.with_options(&[(name.into(), value.into())]).map(drop);
    assert_eq!(set("slice_ns", "20_000_000"), Ok(()));
    assert_eq!(set("mode", "FANCY"), Ok(()));
    let Err(NativeError::Option(unknown)) = set("slice", "1") else { panic!("accepted") };
    assert!(unknown.contains("has no option \"slice\"; it has:"), "{unknown}");
    assert!(unknown.contains("slice_ns: number of 64 bits, 5000000 by default"), "{unknown}");
    let Err(NativeError::Option(bad)) = set("nr_cpu_ids", "-1") else { panic!("accepted") };
    assert!(bad.contains("a whole number from 0 to 4294967295 is wanted"), "{bad}");
}

#[test]
fn a_missing_function_is_named_with_what_exists() {
    if !has_clang() {
        return;
    }
    let text = refusal(&format!(
        "void scx_bpf_teleport(struct task_struct *p) __ksym;\n\
         void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f) {{ scx_bpf_teleport(p); }}\n\
         {OPS}"
    ));
    assert!(
        text.contains("calls what the simulator does not have:\n  scx_bpf_teleport\n"),
        "{text}"
    );
    assert!(text.contains(" scx_bpf_dsq_insert "), "{text}");
}

#[test]
fn a_function_of_a_later_kernel_is_named_with_its_release() {
    if !has_clang() {
        return;
    }
    let text = refusal(&format!(
        "bool scx_bpf_task_set_slice___x(struct task_struct *p, u64 slice) __ksym;\n\
         void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f)\n\
         {{ scx_bpf_task_set_slice___x(p, 1); }}\n{OPS}"
    ));
    assert!(text.contains("scx_bpf_task_set_slice___x (of Linux 6.19 and later)"), "{text}");
}

#[test]
fn a_weak_function_may_be_missing() {
    if !has_clang() {
        return;
    }
    compile_text(&format!(
        "void scx_bpf_teleport(struct task_struct *p) __ksym __weak;\n\
         void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f)\n\
         {{ if (bpf_ksym_exists(scx_bpf_teleport)) scx_bpf_teleport(p); }}\n{OPS}"
    ))
    .unwrap();
}

#[test]
fn what_is_no_scheduler_is_refused() {
    if !has_clang() {
        return;
    }
    let text = refusal("int x;");
    assert!(text.contains("is no scheduler: it has no struct sched_ext_ops"), "{text}");
    let twice = OPS.replace("x_ops", "y_ops");
    let text = refusal(&format!(
        "void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f) {{ }}\n{OPS}\n{twice}"
    ));
    assert!(text.contains("2 schedulers where one is expected: x_ops, y_ops"), "{text}");
    let absent =
        NativeScheduler::compile(Path::new("/nowhere/x.bpf.c"), &CompileOptions::default());
    assert!(absent.unwrap_err().to_string().starts_with("cannot read the scheduler /nowhere/"));
}

#[test]
fn the_compilers_errors_are_shown() {
    if !has_clang() {
        return;
    }
    let error = compile_text("void f(struct task_struct *p) { p->shoe_size = 1; g(); }");
    let Err(NativeError::Compile(text)) = error else { panic!("{error:?}") };
    assert!(text.contains("x.bpf.c:2:36: error: no member named 'shoe_size'"), "{text}");
    assert!(text.contains("'g'"), "{text}");
    assert!(!text.contains("generated"), "{text}");
}

#[test]
fn a_map_of_an_unknown_type_is_refused_when_a_run_begins() {
    if !has_clang() {
        return;
    }
    let scheduler = compile_text(&format!(
        "struct {{ __uint(type, BPF_MAP_TYPE_LPM_TRIE); __uint(max_entries, 1); }} m\n\
         SEC(\".maps\");\n\
         void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f) {{ }}\n{OPS}"
    ))
    .unwrap();
    let text = scheduler.ops(1, 250).err().unwrap().to_string();
    assert!(text.contains("map m is of BPF_MAP_TYPE_LPM_TRIE"), "{text}");
}

#[test]
fn instructions_come_from_the_compiler_alone() {
    if !has_clang() {
        return;
    }
    let body = |code: &str| {
        format!("void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 f) {{ {code} }}\n{OPS}")
    };
    let error = compile_text(&body("asm volatile(\"syscall\" : : \"a\"(60));"));
    let Err(NativeError::Compile(text)) = error else { panic!("{error:?}") };
    assert!(text.contains("Assembly cannot be simulated"), "{text}");
    compile_text(&body("asm volatile(\"\" ::: \"memory\");")).unwrap();
    let bytes = "const unsigned char exit_group[]\n\
                 __attribute__((section(\"struct_ops/x_enqueue\"))) =\n\
                 { 0xb8, 231, 0, 0, 0, 0x0f, 0x05 };\n";
    let error = compile_text(&format!("{bytes}{}", body("((void (*)(void))exit_group)();")));
    let Err(NativeError::Compile(text)) = error else { panic!("accepted") };
    assert!(text.contains("section type conflict"), "{text}");
}
