// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab doctor`: lists what this machine can do, what is missing, and how to get it.

use crate::args::DoctorArgs;
use crate::error::CliResult;
use crate::output::Out;
use crate::table;

use schedlab_host::attr::Abilities;
use schedlab_host::doctor::Check;
use schedlab_model::KernelVersion;
use schedlab_sched::bugs::KnownBug;
use schedlab_vm::Cache;
use schedlab_vm::qemu::build;
use serde_json::{Value, json};

/// Whether the QEMU for several CPUs with a counted clock is built.
fn parallel_qemu() -> Check {
    let found = Cache::of_user().map_err(|error| error.to_string());
    let found = found.and_then(|cache| build::describe(&cache));
    let is_ok = found.is_ok();
    Check {
        name: "QEMU for several CPUs",
        is_ok,
        found: found.unwrap_or_else(|why| why),
        meaning: "guests whose CPUs run at the same counted time; without it they take turns",
        remedy: if is_ok { "" } else { "schedlab qemu build" },
    }
}

/// Bugs of the table (`schedlab check --bugs`) that the running kernel has or may have.
fn known_bugs(version: Option<KernelVersion>) -> Check {
    let bugs: Vec<&str> = version.into_iter().flat_map(KnownBug::of).map(|bug| bug.id).collect();
    let is_ok = bugs.is_empty();
    Check {
        name: "scheduler bugs",
        is_ok,
        found: match (is_ok, version) {
            (false, _) => format!("this release has or may have {}", bugs.join(", ")),
            (true, Some(_)) => "none of the table in this release".into(),
            (true, None) => "unknown: the kernel's release is no version".into(),
        },
        meaning: "knowing which decisions of this kernel are wrong",
        remedy: if is_ok { "" } else { "`schedlab check --bugs` describes them" },
    }
}

/// Runs the command. A missing feature is an answer, not an error, so the exit code is 0.
pub fn doctor(args: &DoctorArgs, out: &mut Out) -> CliResult<()> {
    let mut checks = schedlab_host::doctor::doctor();
    checks.push(parallel_qemu());
    checks.push(known_bugs(Abilities::detect().kernel));
    if args.json {
        let entries: Vec<Value> = checks
            .iter()
            .map(|check| {
                json!({
                    "name": check.name,
                    "is_ok": check.is_ok,
                    "found": check.found,
                    "meaning": check.meaning,
                    "remedy": check.remedy,
                })
            })
            .collect();
        return out.json(&entries);
    }
    let mut rows = table::table(&["", "check", "found", "good for"]);
    for check in &checks {
        rows.add_row([
            if check.is_ok { "ok" } else { "-" },
            check.name,
            &check.found,
            check.meaning,
        ]);
    }
    out.line(table::render(&rows))?;
    let missing: Vec<_> = checks.iter().filter(|check| !check.is_ok).collect();
    if missing.is_empty() {
        return out.line("\nNothing is missing.");
    }
    out.line("\nHow to get what is missing; without it the rest works:")?;
    for check in missing {
        out.line(format!("  {}: {}", check.name, check.remedy))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_with_bugs_is_named() {
        let check = known_bugs(Some(KernelVersion::release(6, 18, 44)));
        assert!(!check.is_ok && check.found.ends_with("P01, P14, P15"), "{check:?}");
        assert!(check.remedy.contains("--bugs"));
        let check = known_bugs(Some(KernelVersion::release(7, 3, 0)));
        assert!(check.is_ok && check.found.contains("none"), "{check:?}");
        assert!(known_bugs(None).found.contains("unknown"));
    }
}
