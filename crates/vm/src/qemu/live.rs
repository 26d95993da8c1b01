// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that run by the host's time: with KVM where a guest really boots with it, else emulated.
//!
//! That /dev/kvm exists says little: under some hypervisors it is there and a guest hangs in its
//! first instructions. So a guest is booted with a time limit, and the verdict is kept until the
//! host's kernel changes.

use super::{Accel, Files, Guest, Qemu, Setup};
use crate::lane::warning;
use crate::shared::SharedFile;
use crate::{Cache, VmError, hash};
use schedlab_lab::Warning;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time in which a guest under KVM must have booted: it takes less than two seconds.
const PROBE_LIMIT: Duration = Duration::from_secs(12);
/// Part of the host's CPU time that others may use beside a live run without a warning.
const FOREIGN_PERCENT_MAX: u64 = 10;

/// What live guests run on.
pub fn accel(
    cache: &Cache,
    qemu: &Qemu,
    files: Files<'_>,
    kernel: &str,
    say: &dyn Fn(&str),
) -> Result<Accel, VmError> {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return Ok(Accel::Emulated);
    }
    let host = schedlab_host::machine::read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let boot = schedlab_host::machine::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let key = hash::sha256(format!("{host}\n{boot}\n{}\n{kernel}", qemu.version).as_bytes());
    let path = cache.dir("kvm")?.join(key);
    if let Ok(verdict) = fs::read_to_string(&path) {
        return Ok(if verdict == "yes" { Accel::Kvm } else { Accel::Emulated });
    }
    say("trying whether a guest boots with KVM");
    let works = boots(qemu, files);
    if !works {
        say("it does not: live guests are emulated");
    }
    cache.write(&path, if works { b"yes" } else { b"no" })?;
    Ok(if works { Accel::Kvm } else { Accel::Emulated })
}

/// Whether a guest boots and answers in time.
fn boots(qemu: &Qemu, files: Files<'_>) -> bool {
    let setup = Setup { accel: Accel::Kvm, nr_cpus: 1 };
    let Ok(shared) = SharedFile::new() else { return false };
    let Ok(mut guest) = Guest::start(qemu, &setup, files, (&[], &[]), shared) else {
        return false;
    };
    // Without a request it answers that there was none, and ends: that is all that is wanted.
    guest.wait(PROBE_LIMIT).is_ok()
}

/// CPU time of the host and of this process with its children, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    busy: u64,
    steal: u64,
    own: u64,
    all: u64,
}

/// Watches the host during a live run.
#[derive(Debug)]
pub struct HostLoad {
    start: Times,
}

impl HostLoad {
    /// Begins.
    pub fn start() -> Self {
        Self { start: times() }
    }

    /// A warning, if others took much of the host's time.
    pub fn finish(&self) -> Option<Warning> {
        let end = times();
        let since = |get: fn(&Times) -> u64| get(&end).saturating_sub(get(&self.start));
        load_warning(
            since(|times| times.busy).saturating_sub(since(|times| times.own)),
            since(|times| times.steal),
            since(|times| times.all),
        )
    }
}

fn load_warning(foreign: u64, steal: u64, all: u64) -> Option<Warning> {
    let percent = (foreign + steal) * 100 / all.max(1);
    (percent >= FOREIGN_PERCENT_MAX).then(|| {
        warning(
            "host-loaded",
            format!(
                "Others used {percent} % of the host's CPU time during the run: a live guest loses \
                 that time unseen, and its slices and latencies are too long. Stop them, or use \
                 the counted clock."
            ),
        )
    })
}

fn times() -> Times {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let at = |index: usize| fields.get(index).copied().unwrap_or(0);
    let all: u64 = fields.iter().take(8).sum();
    let idle = at(3) + at(4);
    Times {
        busy: all - idle - at(7),
        steal: at(7),
        own: own_ticks(Path::new("/proc/self/stat")),
        all,
    }
}

/// User and system time of this process and of the children that it waited for.
fn own_ticks(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The name, in parentheses, may hold spaces.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_host_is_named_and_a_quiet_one_is_not() {
        assert_eq!(load_warning(5, 0, 100), None);
        let found = load_warning(30, 5, 100).unwrap();
        assert!(found.code == "host-loaded" && found.text.contains("35 %"), "{}", found.text);
        assert!(times().all > 0);
    }
}
