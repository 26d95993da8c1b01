// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sched_ext scheduler of a run: none, an object that init loads, or a program that loads one.

use crate::command::Running;
use schedlab_guest::protocol::ExtRequest;
use schedlab_host::ext::{self, Build, Loaded, Source};
use schedlab_host::sys;
use schedlab_run::LaneError;
use schedlab_scx_source::ReadySetup;
use std::fs;

/// A scheduler that the kernel has enabled.
pub enum Scheduler {
    /// The kernel's own classes.
    Kernel,
    /// An object.
    Object(Box<Loaded>),
    /// A program.
    Program(Running),
}

impl Scheduler {
    /// Checks that it is still enabled. If the kernel ejected it during the run, the kernel's own
    /// class did the rest, and the run describes neither.
    pub fn check(&mut self) -> Result<(), LaneError> {
        match self {
            Self::Kernel => Ok(()),
            Self::Program(running) => running.check(),
            Self::Object(loaded) => match loaded.exit().map_err(LaneError::from)? {
                None => Ok(()),
                Some(end) => Err(LaneError::Check(format!(
                    "the kernel ejected scheduler {} during the run: {end}",
                    loaded.name()
                ))),
            },
        }
    }

    /// Its counters, which only an object has.
    pub fn counters(&self) -> Result<Vec<(String, u64)>, LaneError> {
        let Self::Object(loaded) = self else { return Ok(Vec::new()) };
        let counters = loaded.stats().map_err(LaneError::from)?;
        Ok(counters.into_iter().map(|found| (found.name, found.value)).collect())
    }

    /// Unloads it.
    pub fn stop(self) -> Result<(), LaneError> {
        match self {
            Self::Kernel => Ok(()),
            Self::Object(loaded) => loaded.detach().map(drop).map_err(LaneError::from),
            Self::Program(running) => running.stop(),
        }
    }
}

/// Writes what is known of the kernel's configuration where libbpf reads it: a guest has no file
/// of its distribution, and without one an object with `extern ... __kconfig` is refused.
pub fn write_configuration() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let path = format!("/boot/config-{}", release.trim());
    if fs::metadata(&path).is_ok() || fs::metadata("/proc/config.gz").is_ok() {
        return;
    }
    let version = read("/proc/sys/kernel/version");
    let cpus_max = read("/sys/devices/system/cpu/kernel_max").trim().parse().unwrap_or(0_u64);
    let local = release.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let mut text = format!(
        "CONFIG_64BIT=y\nCONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_HZ={}\nCONFIG_NR_CPUS={}\n\
         CONFIG_LOCALVERSION=\"{local}\"\n",
        1_000_000_000 / sys::tick_ns(),
        cpus_max + 1
    );
    for (word, names) in [
        ("PREEMPT_DYNAMIC", ["CONFIG_PREEMPT_DYNAMIC", "CONFIG_PREEMPT_RCU"]),
        ("PREEMPT_RT", ["CONFIG_PREEMPT_RT", "CONFIG_PREEMPT_RCU"]),
    ] {
        if version.split_whitespace().any(|own| own == word) {
            names.iter().for_each(|name| text.push_str(&format!("{name}=y\n")));
        }
    }
    // Without it libbpf says that the file is missing.
    let _ = fs::create_dir_all("/boot").and_then(|()| fs::write(path, text));
}

/// Writes the object of a scheduler to a file, and what libbpf needs to open it.
pub fn keep(request: &ExtRequest) -> Result<Source, LaneError> {
    write_configuration();
    const PATH: &str = "/tmp/scheduler.bpf.o";
    fs::write(PATH, &request.object)
        .map_err(|error| LaneError::System(format!("writing the scheduler's object: {error}")))?;
    Ok(Source::File(PATH.into()))
}

/// Loads an object, with what its user program would set; `None`: the kernel's own classes.
pub fn load(
    request: Option<&ExtRequest>,
    setup: Option<&ReadySetup>,
) -> Result<Scheduler, LaneError> {
    let Some(request) = request else { return Ok(Scheduler::Kernel) };
    let source = keep(request)?;
    let loaded = ext::load(&source, &Build::default(), &request.options, setup);
    Ok(Scheduler::Object(Box::new(loaded.map_err(LaneError::from)?)))
}
