// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and attaches the BPF programs of bpf/recorder.bpf.c.

use super::ring::{Control, Record, Rings};
use crate::error::HostError;
use crate::procfs;
use crate::sys;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use schedlab_model::random::{Purpose, Stream};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

#[allow(missing_docs, unused_imports, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/recorder.skel.rs"));
}
use generated::{RecorderSkel, RecorderSkelBuilder};

/// Records of a ring on a machine with few CPUs: 175 ms at 1.5 million events per second.
const RING_SIZE_MAX: u64 = 1 << 18;
/// Records of a ring on a machine with many CPUs.
const RING_SIZE_MIN: u64 = 1 << 16;
/// Most records in all rings together (256 MiB).
const RECORDS_MAX: u64 = 1 << 24;

/// The attached BPF programs with their rings.
pub struct BpfRecorder {
    /// Kept for its drop, which detaches and unloads.
    skel: RecorderSkel<'static>,
    records: Mapping,
    ring_size: u64,
    nr_cpus: u32,
}

thread_local! {
    /// Prepared for the next run of this thread, with its ring size.
    static READY: RefCell<Option<(Option<u64>, BpfRecorder)>> = const { RefCell::new(None) };
}

/// A mapping of a BPF array.
struct Mapping {
    start: *mut libc::c_void,
    len: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `BpfRecorder::load` with this length; rings do not outlive it.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

fn context(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> HostError {
    move |error| HostError::Unavailable(format!("BPF recorder: {what}: {error:#}"))
}

fn ring_size_of(nr_cpus: u32) -> u64 {
    let fair = (RECORDS_MAX / u64::from(nr_cpus).max(1)).next_power_of_two() / 2;
    fair.clamp(RING_SIZE_MIN, RING_SIZE_MAX)
}

impl BpfRecorder {
    /// Loads and attaches the programs for the next run of this thread, with rings of this size. A
    /// guest calls it before its snapshot is taken, because the verifier and the search through the
    /// kernel's types take longer than a short run.
    pub fn make_ready(ring_size: Option<u64>) -> Result<(), HostError> {
        let recorder = Self::load(ring_size)?;
        READY.set(Some((ring_size, recorder)));
        Ok(())
    }

    /// Attaches the programs. Nothing is recorded before [`Self::follow`]. `ring_size`: records of
    /// each CPU's ring, a power of two; `None`: by the number of CPUs.
    pub fn attach(ring_size: Option<u64>) -> Result<Self, HostError> {
        match READY.take() {
            Some((ready_for, recorder)) if ready_for == ring_size => Ok(recorder),
            _ => Self::load(ring_size),
        }
    }

    fn load(ring_size: Option<u64>) -> Result<Self, HostError> {
        if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(HostError::Unavailable(
                "BPF recorder: the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)".into(),
            ));
        }
        if !procfs::is_in_initial_pid_namespace() {
            return Err(HostError::Unavailable(
                "BPF recorder: this process is in a PID namespace, as in a container, and does \
                 not know the kernel's numbers of its tasks (docker run --pid=host shares them)"
                    .into(),
            ));
        }
        libbpf_rs::set_print(None);
        let nr_cpus = libbpf_rs::num_possible_cpus().map_err(context("counting CPUs"))? as u32;
        let nr_cpus = nr_cpus.min(schedlab_model::cpumask::NR_CPUS_MAX as u32);
        let ring_size = ring_size.unwrap_or_else(|| ring_size_of(nr_cpus));
        // The skeleton borrows this small cell for its whole life: it lives as long as the program.
        let cell = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = RecorderSkelBuilder::default().open(cell).map_err(context("opening"))?;
        let rodata = open.maps.rodata_data.as_deref_mut();
        let Some(rodata) = rodata else {
            return Err(HostError::Unavailable("BPF recorder: no constants in the object".into()));
        };
        rodata.ring_size = ring_size as u32;
        rodata.weak_memory = cfg!(not(any(target_arch = "x86_64", target_arch = "x86")));
        open.maps
            .records
            .set_max_entries((u64::from(nr_cpus) * ring_size) as u32)
            .map_err(context("sizing the rings"))?;
        let mut skel = open.load().map_err(context("loading (root or CAP_BPF is needed)"))?;
        skel.attach().map_err(context("attaching"))?;
        let len = (u64::from(nr_cpus) * ring_size) as usize * size_of::<Record>();
        if let Some(bss) = skel.maps.bss_data.as_deref_mut() {
            keep_out_of_children((bss as *mut generated::types::bss).cast(), size_of_val(bss));
        }
        let records = map_array(skel.maps.records.as_fd().as_raw_fd(), len)
            .map_err(|error| HostError::system("BPF recorder: mapping the rings", &error))?;
        Ok(Self { skel, records, ring_size, nr_cpus })
    }

    /// From now on records the children of process `launcher_pid` and their descendants.
    pub fn follow(&mut self, launcher_pid: u32) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            // SAFETY: an aligned, mapped integer that the kernel side reads whole.
            unsafe { (&raw mut bss.launcher_tgid).write_volatile(launcher_pid) };
        }
    }

    /// From now on a switch of the run takes up to `rounds_max` rounds of a loop longer, each by a
    /// number of its own that `seed` draws. With 0 none does.
    pub fn make_longer(&mut self, rounds_max: u32, seed: u64) {
        if let Some(bss) = self.skel.maps.bss_data.as_deref_mut() {
            let state = Stream::new(seed, Purpose::Experiment, 0).below(1 << 32) as u32;
            // SAFETY: aligned, mapped integers that the kernel side reads whole.
            unsafe {
                (&raw mut bss.jitter_state).write_volatile(state);
                (&raw mut bss.jitter_rounds_max).write_volatile(rounds_max);
            }
        }
    }

    /// The rings; valid while `self` lives.
    pub fn rings(&mut self) -> Option<Rings> {
        let bss = self.skel.maps.bss_data.as_deref_mut()?;
        let controls = (&raw const bss.rings.cpu).cast::<Control>();
        // SAFETY: the object declares one control block a CPU up to NR_CPUS_MAX >= nr_cpus, in a
        // mapping that lives as long as the skeleton; the records were mapped with this size.
        Some(unsafe {
            Rings::new(controls, self.records.start.cast(), self.nr_cpus, self.ring_size)
        })
    }
}

fn map_array(fd: i32, len: usize) -> std::io::Result<Mapping> {
    let len = len.next_multiple_of(sys::page_size());
    // SAFETY: a new shared mapping of a BPF array made with BPF_F_MMAPABLE, of at most its size.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            fd,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    keep_out_of_children(start, len);
    Ok(Mapping { start, len })
}

/// Keeps the rings out of forked tasks, which do not use them: copying their page tables would slow
/// every fork.
fn keep_out_of_children(start: *mut libc::c_void, len: usize) {
    let len = len.next_multiple_of(sys::page_size());
    // SAFETY: the start of a mapping of this length; only children are affected. Where the kernel
    // refuses, forks are slower and nothing else changes.
    unsafe { libc::madvise(start, len, libc::MADV_DONTFORK) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_both_sides_are_equal() {
        assert_eq!(size_of::<Control>(), size_of::<generated::types::ring_control>());
        assert_eq!(size_of::<Record>(), size_of::<generated::types::record>());
        assert_eq!(size_of::<Record>(), 16);
        let c = std::mem::offset_of!(generated::types::ring_control, tail);
        assert_eq!(std::mem::offset_of!(Control, tail), c);
    }

    #[test]
    fn rings_get_smaller_on_bigger_machines() {
        assert_eq!(ring_size_of(2), RING_SIZE_MAX);
        assert_eq!(ring_size_of(1024), RING_SIZE_MIN);
        assert!((1..1024).all(|cpus| ring_size_of(cpus).is_power_of_two()));
    }
}
