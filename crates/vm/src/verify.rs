// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verifier's verdict on a scheduler, by a kernel in a guest, and the store of verdicts.
//!
//! A verdict depends on the object's bytes (so on its source, headers and compiler), on the options
//! that are set, and on the kernel. The cache keeps it under the hash of these. The simulator runs
//! another object, compiled for this machine; a second entry, under that object's digest, lets it
//! find out whether a kernel has accepted the scheduler.

use crate::cache::Cache;
use crate::kernel::{Kernel, Store};
use crate::lane::{VmLane, scheduler};
use crate::qemu::command::MEMORY_VERIFY_MIB;
use crate::qemu::{Accel, Setup};
use crate::{VmError, identity};
use schedlab_guest::protocol::{ExtRequest, Request};
use schedlab_host::ext::Build;
use schedlab_host::ext::verdict::{ObjectLog, ProgramVerdict};
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use schedlab_scx_source::ReadySetup;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// Directory of the cache.
const DIR: &str = "verdicts";

/// The machine. Its clock counts, so that times repeat.
const SETUP: Setup = Setup::new(Accel::Counted, 1, MEMORY_VERIFY_MIB);

/// What a kernel's verifier says of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The scheduler, as the user named it.
    pub file: String,
    /// Its own name (`sched_ext_ops.name`).
    pub scheduler: String,
    /// Release of the kernel.
    pub kernel: String,
    /// SHA-256 of the object.
    pub object_sha256: String,
    /// The setup that took the place of its user program: a file, or `built-in: NAME`.
    pub setup: Option<String>,
    /// Its programs, in the order of the object.
    pub programs: Vec<ProgramVerdict>,
    /// Why the rest of its programs never reached the verifier, such as a function that the kernel
    /// lacks.
    pub error: Option<String>,
}

impl Verdict {
    /// Whether the kernel accepts every program.
    pub fn is_accepted(&self) -> bool {
        self.error.is_none() && self.programs.iter().all(|program| program.refusal.is_none())
    }

    /// The first refusal in one line; `None`: the scheduler was accepted.
    pub fn first_refusal(&self) -> Option<String> {
        let refused = self.programs.iter().find_map(|program| {
            let refusal = program.refusal.as_ref()?;
            let at = refusal.at.as_ref().map(|at| format!(" at {}", at.place));
            Some(format!("{}{}: {}", program.program, at.unwrap_or_default(), refusal.reason))
        });
        refused.or_else(|| self.error.clone())
    }

    fn of(file: &str, kernel: &Kernel, object_sha256: String, log: &ObjectLog) -> Self {
        Self {
            file: file.into(),
            scheduler: log.scheduler.clone(),
            kernel: kernel.release.clone(),
            object_sha256,
            setup: None,
            programs: log.programs.iter().map(ProgramVerdict::of).collect(),
            error: log.error.clone(),
        }
    }
}

impl VmLane {
    /// Loads each program of the scheduler `file` in a guest of the kernel called `kernel`, with
    /// `options` set, and what its user program would set on one CPU. A verdict that is stored is
    /// not asked for again, unless `again`.
    pub fn verify(
        &self,
        file: &str,
        kernel: &str,
        options: &[(String, String)],
        again: bool,
    ) -> Result<Verdict, VmError> {
        let name = kernel;
        let kernel = self.kernel(name)?;
        kernel.check_ext()?;
        let types = Store::new(self.cache().clone()).boot_file(&kernel)?;
        let build = Build { source: self.options.source.clone(), types };
        let request = scheduler(file, &build, options)?;
        let object_sha256 = sha256(&request.object);
        let (setup, _) = self.scheduler_setup(&request, SETUP.nr_cpus, name, true)?;
        let setup_origin = setup.as_ref().map(|setup| setup.origin.clone());
        let path = self.verdict_file(&kernel, &request, setup.clone())?;
        if !again && let Some(known) = read::<Verdict>(&path) {
            return Ok(Verdict { file: file.into(), setup: setup_origin, ..known });
        }
        self.say(&format!("{}: verifying {file}", kernel.release));
        let reply = self.ask(&kernel, &SETUP, &Request::Verify(request, setup).encode())?.reply;
        if let Some(error) = reply.error {
            return Err(match error.kind.as_str() {
                "input" => VmError::Input(error.text),
                _ => VmError::System(format!("kernel {}: {}", kernel.release, error.text)),
            });
        }
        let log = reply
            .verified
            .ok_or_else(|| VmError::System("the guest gave neither a log nor an error".into()))?;
        let mut verdict = Verdict::of(file, &kernel, object_sha256, &log);
        verdict.setup = setup_origin;
        write_whole(&path, &serde_json::to_vec_pretty(&verdict).unwrap_or_default())?;
        Ok(verdict)
    }

    fn verdict_file(
        &self,
        kernel: &Kernel,
        request: &ExtRequest,
        setup: Option<ReadySetup>,
    ) -> Result<PathBuf, VmError> {
        let nameless = ExtRequest { name: String::new(), ..request.clone() };
        let setup = setup.map(|setup| ReadySetup { origin: String::new(), ..setup });
        let machine = identity::of_machine(self.qemu(&SETUP), &SETUP, kernel, self.initramfs());
        let identity = machine.with_run(&Request::Verify(nameless, setup).encode().bytes, "");
        Ok(self.cache().dir(DIR)?.join(format!("{}.json", identity.sha256())))
    }
}

/// What is known of a scheduler that was compiled for this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownVerdict {
    /// Release of the kernel.
    pub kernel: String,
    /// Its first refusal; `None`: it accepted the scheduler.
    pub refusal: Option<String>,
}

/// The verdicts on the scheduler whose object for this machine has this digest, by kernel.
pub fn known(cache: &Cache, digest: &str) -> Vec<KnownVerdict> {
    cache.dir(DIR).ok().and_then(|dir| read(&digest_file(dir, digest))).unwrap_or_default()
}

/// Keeps a verdict under the digest of the scheduler's object for this machine. It replaces an
/// earlier one of the same kernel.
pub fn remember(cache: &Cache, digest: &str, verdict: &Verdict) -> Result<(), VmError> {
    let mut all = known(cache, digest);
    all.retain(|known| known.kernel != verdict.kernel);
    let refusal = verdict.first_refusal();
    all.push(KnownVerdict { kernel: verdict.kernel.clone(), refusal });
    all.sort_by(|a, b| a.kernel.cmp(&b.kernel));
    let path = digest_file(cache.dir(DIR)?, digest);
    Ok(write_whole(&path, &serde_json::to_vec_pretty(&all).unwrap_or_default())?)
}

fn digest_file(dir: PathBuf, digest: &str) -> PathBuf {
    dir.join(format!("native-{digest}.json"))
}

fn read<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_host::ext::verdict::ProgramLog;

    fn kernel(release: &str) -> Kernel {
        Kernel {
            series: "6.18".into(),
            release: release.into(),
            package: None,
            package_sha256: None,
            sha256: "k".into(),
            boot_sha256: "b".into(),
            is_elf: true,
            note: None,
            ext: crate::kernel::btf::ExtSupport::Yes,
        }
    }

    fn verdict(release: &str, error: Option<&str>) -> Verdict {
        let program = |name: &str, error: Option<&str>| ProgramLog {
            program: name.into(),
            section: "struct_ops".into(),
            error: error.map(Into::into),
            log: "; *p = 1; @ x.bpf.c:9\nprocessed 4 insns\n".into(),
        };
        let log = ObjectLog {
            scheduler: "x".into(),
            programs: vec![program("x_init", None), program("x_enqueue", error)],
            error: None,
        };
        Verdict::of("./x.bpf.c", &kernel(release), "sum".into(), &log)
    }

    #[test]
    fn one_refused_program_refuses_the_scheduler() {
        let good = verdict("6.18.1", None);
        assert!(good.is_accepted() && good.first_refusal().is_none());
        let bad = verdict("6.18.1", Some("Permission denied"));
        assert!(!bad.is_accepted());
        assert_eq!(bad.first_refusal().unwrap(), "x_enqueue at x.bpf.c:9: Permission denied");
        let lacking = Verdict { error: Some("not found in kernel".into()), ..good };
        assert!(!lacking.is_accepted() && lacking.first_refusal().is_some());
    }

    #[test]
    fn verdicts_are_kept_by_digest_and_the_last_of_a_kernel_counts() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        assert_eq!(known(&cache, "d"), []);
        remember(&cache, "d", &verdict("7.0.1", Some("e"))).unwrap();
        remember(&cache, "d", &verdict("6.18.1", None)).unwrap();
        remember(&cache, "d", &verdict("7.0.1", None)).unwrap();
        let found = known(&cache, "d");
        let kernels: Vec<&str> = found.iter().map(|known| known.kernel.as_str()).collect();
        assert_eq!(kernels, ["6.18.1", "7.0.1"]);
        assert!(found.iter().all(|known| known.refusal.is_none()));
        assert_eq!(known(&cache, "other"), []);
        // A damaged entry is no entry.
        fs::write(digest_file(cache.dir(DIR).unwrap(), "d"), "{").unwrap();
        assert_eq!(known(&cache, "d"), []);
    }
}
