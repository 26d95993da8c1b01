// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with the host's time: with KVM if a guest really boots with it, otherwise emulated.
//!
//! The existence of /dev/kvm is not enough: under some hypervisors it exists, but a guest hangs in
//! its first instructions. So a guest is booted with a time limit, and the result is stored until
//! the host's kernel changes.

use super::command::MEMORY_MIB;
use super::{Accel, Files, Guest, Qemu, Setup};
use crate::shared::SharedFile;
use crate::{Cache, VmError};
use schedlab_run::Warning;
use schedlab_run::file::write_whole;
use schedlab_run::sha::sha256;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time in which a guest must boot under KVM. It takes less than two seconds.
const PROBE_LIMIT: Duration = Duration::from_secs(12);
/// Percentage of the host's CPU time that other processes may use during a live run without a
/// warning.
const FOREIGN_PERCENT_MAX: u64 = 10;
/// How often a run is repeated because the emulator crashed its kernel.
const RACES_MAX: u32 = 3;
/// The kernel's message in that case.
const RACE: &str = "int3: 0000";

/// Whether live guests use KVM or emulation.
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
    let key = sha256(format!("{host}\n{boot}\n{}\n{kernel}", qemu.version).as_bytes());
    let path = cache.dir("kvm")?.join(key);
    if let Ok(verdict) = fs::read_to_string(&path) {
        return Ok(if verdict == "yes" { Accel::Kvm } else { Accel::Emulated });
    }
    say("trying whether a guest boots with KVM");
    let works = boots(qemu, files);
    if !works {
        say("it does not: live guests are emulated");
    }
    write_whole(&path, if works { b"yes" } else { b"no" })?;
    Ok(if works { Accel::Kvm } else { Accel::Emulated })
}

/// Whether a guest boots and answers in time.
fn boots(qemu: &Qemu, files: Files<'_>) -> bool {
    let setup = Setup::new(Accel::Kvm, 1, MEMORY_MIB);
    let Ok(shared) = SharedFile::new() else { return false };
    let Ok(mut guest) = Guest::start(qemu, &setup, files, (&[], &[]), shared) else {
        return false;
    };
    // Without a request the guest answers that there was none, and ends. That is enough.
    guest.wait(PROBE_LIMIT).is_ok()
}

/// Runs `run`, and repeats it if the emulator crashed the guest's kernel. Returns the result and
/// the number of such crashes.
///
/// A kernel that changes its own code (a static key, at boot, or when a scheduler is loaded) first
/// puts a breakpoint there, and removes it later. If QEMU emulates with a thread per CPU, a CPU may
/// still execute code that was translated with the breakpoint. The kernel no longer expects it, and
/// crashes. Seen with QEMU 7.2, and by others with 8.0 (Linux kernel mailing list, July 2023,
/// "qemu-x86_64 booting with 8.0.0 stil see int3"). Repeating distorts nothing, because a live run
/// is a sample.
pub fn despite_races<T>(
    setup: &Setup,
    say: &dyn Fn(&str),
    mut run: impl FnMut() -> Result<T, VmError>,
) -> Result<(T, u32), VmError> {
    let can_race = setup.accel == Accel::Emulated && setup.nr_cpus > 1;
    let mut nr_races = 0;
    loop {
        match run() {
            Err(VmError::System(text))
                if can_race && nr_races < RACES_MAX && text.contains(RACE) =>
            {
                nr_races += 1;
                say("QEMU made the guest's kernel crash (int3); the run is made again");
            }
            other => return other.map(|answer| (answer, nr_races)),
        }
    }
}

/// A warning, if the emulator crashed the kernel before.
pub fn race_warning(nr_races: u32) -> Option<Warning> {
    (nr_races > 0).then(|| {
        let often = if nr_races == 1 { "once".into() } else { format!("{nr_races} times") };
        Warning::emulator_crash(&often)
    })
}

/// CPU time of the host and of this process with its children, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    busy: u64,
    steal: u64,
    own: u64,
    all: u64,
}

/// Measures the host's load during a live run.
#[derive(Debug)]
pub struct HostLoad {
    start: Times,
}

impl HostLoad {
    /// Begins.
    pub fn start() -> Self {
        Self { start: times() }
    }

    /// A warning, if other processes used much of the host's time.
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
    (percent >= FOREIGN_PERCENT_MAX).then(|| Warning::host_loaded(percent))
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
        assert_eq!(load_warning(30, 5, 100), Some(Warning::host_loaded(35)));
        assert!(times().all > 0);
    }
    /// The result of runs that give `errors` one after the other and then succeed, and the number
    /// of runs.
    fn after(accel: Accel, nr_cpus: u32, errors: &[&str]) -> (Result<u32, String>, usize) {
        let mut nr_runs = 0;
        let found = despite_races(&Setup::new(accel, nr_cpus, MEMORY_MIB), &|_| (), || {
            nr_runs += 1;
            match errors.get(nr_runs - 1) {
                Some(text) => Err(VmError::System((*text).into())),
                None => Ok(()),
            }
        });
        (found.map(|(_, nr_races)| nr_races).map_err(|error| error.to_string()), nr_runs)
    }

    #[test]
    fn only_what_the_emulator_did_is_tried_again() {
        let race = "panicked: [    5.03] Oops: int3: 0000 [#1] SMP NOPTI";
        let fault = "panicked: [    5.03] Oops: general protection fault [#1]";
        assert_eq!(after(Accel::Emulated, 4, &[race, race]), (Ok(2), 3));
        assert_eq!(after(Accel::Emulated, 4, &[]), (Ok(0), 1));
        assert_eq!(after(Accel::Emulated, 4, &[fault]), (Err(fault.into()), 1));
        assert_eq!(after(Accel::Emulated, 4, &[race; 9]), (Err(race.into()), 4));
        // These cannot have the race: there the crash is the guest's own.
        for (accel, nr_cpus) in [(Accel::Emulated, 1), (Accel::Kvm, 4), (Accel::Counted, 4)] {
            assert_eq!(after(accel, nr_cpus, &[race]), (Err(race.into()), 1));
        }
        assert_eq!(race_warning(0), None);
        assert!(race_warning(1).unwrap().text.contains("crashed once before"));
        assert!(race_warning(2).unwrap().text.contains("crashed 2 times before"));
    }
}
