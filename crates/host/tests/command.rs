// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of a command under a policy.

mod common;

use schedlab_host::{Output, PolicyOverride, RunCommand, run_command};
use schedlab_model::Policy;
use schedlab_model::trace::{MemorySink, NullSink};
use schedlab_run::Code;
use std::ffi::OsString;

fn command(argv: &[&str], copies: u32) -> RunCommand {
    let argv = argv.iter().map(OsString::from).collect();
    RunCommand { copies, output: Output::Null, ..RunCommand::new(argv) }
}

const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exit 7";

#[test]
fn every_copy_is_measured_and_its_exit_status_kept() {
    let outcome = run_command(&command(&["sh", "-c", BUSY], 3), &mut NullSink).unwrap();
    assert_eq!(outcome.copies.len(), 3);
    for copy in &outcome.copies {
        assert_eq!(copy.exit_code, Some(7));
        assert!(copy.cpu_time_ns > 1_000_000 && copy.user_us + copy.system_us > 1_000, "{copy:?}");
    }
}

#[test]
fn a_trace_knows_the_wall_time_and_the_children_of_a_command() {
    if !common::has_bpf() {
        return;
    }
    let mut sink = MemorySink::default();
    let script = "sleep 0.05; sh -c 'sleep 0.01'; sleep 0.01";
    let outcome = run_command(&command(&["sh", "-c", script], 2), &mut sink).unwrap();
    for copy in &outcome.copies {
        assert!(copy.wall_ns.unwrap() >= 70_000_000, "{copy:?}");
    }
    assert!(sink.tasks.len() >= 2 + 2 * 3, "children are tasks too: {}", sink.tasks.len());
    assert!(sink.tasks.iter().skip(2).all(|task| task.spec.is_none() && task.pid != 0));
}

#[test]
fn policies_go_the_same_way_and_rights_are_dropped() {
    if !common::has_nice() {
        return;
    }
    let script = "test $(id -u) -ne 0 && chrt -p $$ | grep -q SCHED_FIFO";
    if std::process::Command::new("chrt").arg("-h").output().is_err() {
        return schedlab_testing::skip("chrt is not installed");
    }
    let mut fifo = command(&["sh", "-c", script], 2);
    fifo.policy = Some(PolicyOverride { policy: Policy::Fifo, rt_priority: 5 });
    let outcome = run_command(&fifo, &mut NullSink).unwrap();
    assert!(outcome.copies.iter().all(|copy| copy.exit_code == Some(0)), "{:?}", outcome.copies);
    let other = run_command(&command(&["sh", "-c", script], 1), &mut NullSink).unwrap();
    assert_eq!(other.copies[0].exit_code, Some(1));
}

#[test]
fn an_exec_that_fails_is_reported() {
    let dir = std::env::temp_dir().join(format!("schedlab-test-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("broken");
    std::fs::write(&path, b"\x7fELF this is no program").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let error = run_command(&command(&[path.to_str().unwrap()], 2), &mut NullSink);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(error.unwrap_err().to_string().contains("executing the command"));
}

#[test]
fn what_a_command_leaves_running_is_ended_and_named() {
    let script = "sleep 1000 & exit 0";
    let outcome = run_command(&command(&["sh", "-c", script], 1), &mut NullSink).unwrap();
    assert_eq!(outcome.host.nr_leftover, 1);
    assert!(outcome.host.warnings.iter().any(|warning| warning.code == Code::LeftoverProcesses));
}
