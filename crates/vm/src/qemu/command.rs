// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of a machine.
//!
//! With a counted clock (`-icount`) the guest's time is the number of its instructions, eight
//! nanoseconds each, and idle time is skipped. Two more options make two runs equal: `-seed`
//! (rdrand, the seed of the kernel's random numbers), and a clock that starts at a fixed date and
//! follows the virtual time. Nothing in the machine depends on the host: no disk, no network, no
//! input. Shared memory and console are written synchronously.

use std::path::Path;

/// How the guest's instructions are executed, and what drives its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accel {
    /// Emulation with counted instructions.
    Counted,
    /// Emulation, one host thread per CPU, host time.
    Emulated,
    /// The host's CPU itself.
    Kvm,
}

impl Accel {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Emulated => "emulated",
            Self::Kvm => "kvm",
        }
    }

    /// Time (ns) of each instruction; `None` if the clock does not count them.
    pub const fn instruction_ns(self) -> Option<u64> {
        match self {
            Self::Counted => Some(1 << SHIFT),
            Self::Emulated | Self::Kvm => None,
        }
    }
}

/// Logarithm of the nanoseconds that an instruction takes: 125 million instructions a second, which
/// is about what emulation reaches.
pub const SHIFT: u32 = 3;
/// Memory of a guest that runs a workload, MiB.
pub const MEMORY_MIB: u32 = 512;
/// Memory of a guest with a scheduler that a user program sets up, MiB. The tables of scx_layered
/// do not fit [`MEMORY_MIB`].
pub const MEMORY_SET_UP_MIB: u32 = 1024;
/// Memory of a guest that verifies schedulers, MiB: the verifier keeps the states of many paths.
/// With 512 MiB it runs out of memory on scx_lavd.
pub const MEMORY_VERIFY_MIB: u32 = 2048;

/// Kernel parameters: a quiet console, and an end instead of a hang after a panic. They also
/// disable the kernel's own work that competes with a run: self-tests of ciphers, statistics of
/// memory, groups' memory and pressure (every 2 s), and the wait for drivers (once, after 10 s).
const APPEND: &str = "console=ttyS0 quiet panic=-1 reboot=k nokaslr cryptomgr.notests=1 \
                      damon_stat.enabled=0 audit=0 psi=0 cgroup_disable=memory \
                      deferred_probe_timeout=0";

/// Additional parameters for a guest with the host's time. Its check of the timer fails if the host
/// takes the CPU away for long at that moment, and the kernel then panics.
const APPEND_LIVE: &str = " no_timer_check";

/// Additional parameter for counted time: the kernel does not compare its clock with others, which
/// takes 14 us every 0.5 s. CPUs whose clocks differ by up to a quantum need it: the kernel would
/// find that and take the HPET for its clock, which differs as much, and does not compensate.
const APPEND_COUNTED: &str = " norandmaps tsc=reliable";

/// Additional parameter for a packaged kernel with counted time: a kernel without the internet
/// protocols, which guests cannot use anyway (no interface is up). A timer of TCP takes 4 us every
/// 0.1 s and cannot be stopped. A kernel with parts that need them could fail to boot.
const APPEND_PACKAGED: &str = " initcall_blacklist=inet_init,inet_blackhole_dev_init";

/// A machine: how it runs, and its CPUs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How it runs.
    pub accel: Accel,
    /// Number of its CPUs.
    pub nr_cpus: u32,
    /// Its memory, MiB.
    pub memory_mib: u32,
    /// With a counted clock: stretch of time (ns) that each CPU executes before the clock goes on.
    /// `None`: the CPUs take turns. Needs a QEMU of schedlab's own ([`super::build`]).
    pub quantum_ns: Option<u64>,
    /// Number of the boot, from 0: it decides the random numbers of the guest.
    pub boot: u32,
}

/// The files that it boots.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Kernel.
    pub kernel: &'a Path,
    /// Initial file system.
    pub initramfs: &'a Path,
    /// Whether the kernel is one that the distribution has built, whose parts are known.
    pub is_packaged: bool,
}

/// Descriptors of files that a machine shares with the host.
pub mod fd {
    /// Shared memory.
    pub const SHARED: i32 = 10;
    /// Console.
    pub const CONSOLE: i32 = 11;
    /// Control.
    pub const CONTROL: i32 = 12;
    /// The state of a snapshot.
    pub const SNAPSHOT: i32 = 13;
    /// The guest's memory, if a snapshot is made or used.
    pub const MEMORY: i32 = 14;
}

/// Arguments that put the guest's memory into the file of [`fd::MEMORY`]: shared (`is_shared`), or
/// private, read until it is written. They do not influence the guest, and are not part of an
/// identity.
pub fn memory_in_file(setup: &Setup, is_shared: bool) -> Vec<String> {
    let share = if is_shared { "on" } else { "off" };
    let object = format!(
        "memory-backend-file,id=ram,share={share},mem-path=/proc/self/fd/{},size={}M",
        fd::MEMORY,
        setup.memory_mib
    );
    ["-object", &object, "-machine", "memory-backend=ram"].map(str::to_owned).to_vec()
}

impl Setup {
    /// A machine whose CPUs, if there are several and the clock is counted, take turns.
    pub const fn new(accel: Accel, nr_cpus: u32, memory_mib: u32) -> Self {
        Self { accel, nr_cpus, memory_mib, quantum_ns: None, boot: 0 }
    }

    /// Whether its CPUs run one after the other, and share one count of instructions.
    pub fn takes_turns(&self) -> bool {
        self.accel == Accel::Counted && self.nr_cpus > 1 && self.quantum_ns.is_none()
    }

    /// The arguments. With placeholders as `files`, they describe the rest of the machine.
    pub fn arguments(&self, files: Files<'_>) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut add = |text: &str| all.extend(text.split(' ').map(str::to_owned));
        add("-M q35 -nodefaults -no-user-config -display none -no-reboot");
        add(&format!("-m {} -smp {}", self.memory_mib, self.nr_cpus));
        match self.accel {
            Accel::Counted => {
                add("-accel tcg -cpu max,-erms,-fsrm");
                let quantum = self.quantum_ns.map(|ns| format!(",quantum={ns}"));
                let quantum = quantum.unwrap_or_default();
                add(&format!("-icount shift={SHIFT},align=off,sleep=off{quantum}"));
            }
            Accel::Emulated => add("-accel tcg,thread=multi -cpu max"),
            Accel::Kvm => add("-accel kvm -cpu host"),
        }
        add(&format!("-seed {}", u64::from(self.boot) + 1));
        add("-rtc base=2024-01-01T00:00:00,clock=vm");
        add(&format!(
            "-object memory-backend-file,id=iv,share=on,mem-path=/proc/self/fd/{},size={} -device \
             ivshmem-plain,memdev=iv,master=on",
            fd::SHARED,
            schedlab_guest::protocol::SHARED_BYTES
        ));
        add(&format!("-chardev file,id=console,path=/proc/self/fd/{}", fd::CONSOLE));
        add("-serial chardev:console");
        add(&format!("-chardev socket,id=control,fd={}", fd::CONTROL));
        add("-mon chardev=control,mode=control");
        add("-device isa-debug-exit,iobase=0xf4,iosize=4 -device ib700 -action watchdog=pause");
        let path = |path: &Path| path.to_string_lossy().into_owned();
        all.extend(["-kernel".into(), path(files.kernel)]);
        all.extend(["-initrd".into(), path(files.initramfs)]);
        let more = match self.accel {
            Accel::Counted if files.is_packaged => [APPEND_COUNTED, APPEND_PACKAGED].concat(),
            Accel::Counted => APPEND_COUNTED.into(),
            Accel::Emulated | Accel::Kvm => APPEND_LIVE.into(),
        };
        all.extend(["-append".into(), format!("{APPEND}{more}")]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_resumed_guest_is_its_own() {
        let setup = Setup::new(Accel::Counted, 1, 512);
        let [made, used] =
            [true, false].map(|is_shared| memory_in_file(&setup, is_shared).join(" "));
        assert!(made.contains("share=on,mem-path=/proc/self/fd/14,size=512M"), "{made}");
        assert!(used.contains("share=off") && used.ends_with("memory-backend=ram"), "{used}");
    }

    #[test]
    fn only_a_counted_machine_counts() {
        let kernel = Path::new("/k with space");
        let files = Files { kernel, initramfs: Path::new("/i"), is_packaged: false };
        let of = |accel| Setup::new(accel, 2, MEMORY_MIB).arguments(files).join("|");
        let counted = of(Accel::Counted);
        assert!(
            counted.contains("-icount|shift=3,align=off,sleep=off") && counted.contains("-smp|2")
        );
        assert!(counted.contains("-kernel|/k with space|"), "paths stay whole");
        assert!(!counted.contains("no_timer_check") && of(Accel::Kvm).contains("no_timer_check"));
        let setup = Setup { quantum_ns: Some(8_000), ..Setup::new(Accel::Counted, 2, MEMORY_MIB) };
        let rounds = setup.arguments(files).join("|");
        assert!(rounds.contains("sleep=off,quantum=8000|") && rounds.ends_with(" tsc=reliable"));
        assert!(!setup.takes_turns() && Setup::new(Accel::Counted, 2, 512).takes_turns());
        assert!(!counted.contains("quantum") && counted.ends_with(" tsc=reliable"));
        assert!(!of(Accel::Kvm).contains("tsc"));
        assert!(!of(Accel::Emulated).contains("icount") && of(Accel::Kvm).contains("-accel|kvm"));
        let again = Setup { boot: 2, ..setup.clone() }.arguments(files).join("|");
        assert!(rounds.contains("|-seed|1|") && again == rounds.replace("|-seed|1|", "|-seed|3|"));
        // Only kernels whose parts are known go without some of them.
        let packaged = setup.arguments(Files { is_packaged: true, ..files }).join("|");
        assert!(packaged.contains("inet_init") && !rounds.contains("inet_init"), "{packaged}");
    }
}
