// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three devices of a guest: memory shared with the host, a port that pauses the machine, and a
//! port that ends it.

use schedlab_guest::protocol::{
    BODY, DEBUG_EXIT_PORT, MAGIC, Message, PAUSE_IN_TWO_SECONDS, PAUSE_PORT, SHARED_BYTES, word,
};
use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// PCI ids of ivshmem (docs/specs/ivshmem-spec.txt of QEMU).
const IVSHMEM: (&str, &str) = ("0x1af4", "0x1110");

/// The memory shared with the host.
pub struct Shared {
    start: *mut u8,
}

impl Shared {
    /// Finds the device and maps its memory.
    pub fn open() -> Result<Self, String> {
        let device = find_ivshmem().ok_or("the machine has no shared memory (ivshmem)")?;
        let failed = |what: &str, error: std::io::Error| format!("shared memory: {what}: {error}");
        fs::write(device.join("enable"), "1").map_err(|e| failed("enabling the device", e))?;
        let cached = device.join("resource2_wc");
        let path = if cached.exists() { cached } else { device.join("resource2") };
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|e| failed("opening it", e))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of the device's memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SHARED_BYTES,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(failed("mapping it", std::io::Error::last_os_error()));
        }
        // Tasks have no use for it, and copying its 16,384 page table entries into each and taking
        // them down again would cost them fifteen milliseconds of counted time.
        // SAFETY: the mapping above; only children are affected.
        if unsafe { libc::madvise(start, SHARED_BYTES, libc::MADV_DONTFORK) } != 0 {
            return Err(failed("keeping it out of tasks", std::io::Error::last_os_error()));
        }
        let shared = Self { start: start.cast() };
        match shared.word(word::MAGIC) {
            MAGIC => Ok(shared),
            found => Err(format!(
                "the shared memory begins with {found:#x}, not {MAGIC:#x}: the lab and this guest \
                 are of different versions"
            )),
        }
    }

    /// The word at byte `at` of the first page.
    pub fn word(&self, at: usize) -> u64 {
        assert!(at + 8 <= BODY && at.is_multiple_of(8));
        // SAFETY: mapped and aligned; the other side does not write while this one runs.
        u64::from_le(unsafe { self.start.add(at).cast::<u64>().read_volatile() })
    }

    /// Sets the word at byte `at` of the first page.
    pub fn set_word(&self, at: usize, value: u64) {
        assert!(at + 8 <= BODY && at.is_multiple_of(8));
        // SAFETY: as above.
        unsafe { self.start.add(at).cast::<u64>().write_volatile(value.to_le()) };
    }

    /// The request.
    pub fn request(&self) -> Message {
        let len = self.word(word::REQUEST_LEN).min((SHARED_BYTES - BODY) as u64) as usize;
        // SAFETY: within the mapping.
        let bytes = unsafe { std::slice::from_raw_parts(self.start.add(BODY), len) }.to_vec();
        Message { kind: self.word(word::KIND), bytes }
    }

    /// Writes reply and trace and marks them as complete. The caller has checked that they fit.
    pub fn answer(&self, reply: &[u8], trace: &[u8]) {
        assert!(reply.len() + trace.len() <= SHARED_BYTES - BODY);
        let mut at = BODY;
        for part in [reply, trace] {
            // SAFETY: within the mapping, by the check above.
            unsafe { self.start.add(at).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            at += part.len();
        }
        self.set_word(word::REPLY_LEN, reply.len() as u64);
        self.set_word(word::TRACE_LEN, trace.len() as u64);
        self.set_word(word::STAGE, schedlab_guest::protocol::stage::DONE);
    }
}

fn find_ivshmem() -> Option<PathBuf> {
    let is = |path: &Path, file: &str, id: &str| {
        fs::read_to_string(path.join(file)).is_ok_and(|text| text.trim() == id)
    };
    let mut devices: Vec<PathBuf> =
        fs::read_dir("/sys/bus/pci/devices").ok()?.flatten().map(|entry| entry.path()).collect();
    devices.sort();
    devices.into_iter().find(|path| is(path, "vendor", IVSHMEM.0) && is(path, "device", IVSHMEM.1))
}

/// Allows this process to use the two ports.
fn allow(port: u16, bytes: u64) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::ioperm(libc::c_ulong::from(port), bytes as libc::c_ulong, 1) == 0 }
}

/// Starts the watchdog, which pauses the machine two seconds later (in the guest's time). The host
/// resumes it.
///
/// A device that pauses at once would stop a CPU that works. QEMU's other thread may or may not
/// take that CPU for idle and skip to the next timer, which gives two different states. A timer
/// that expires while the whole guest sleeps gives only one.
pub fn pause_in_two_seconds() {
    if allow(PAUSE_PORT, 1) {
        // SAFETY: the port belongs to the watchdog.
        unsafe {
            std::arch::asm!(
                "out dx, al", in("dx") PAUSE_PORT, in("al") PAUSE_IN_TWO_SECONDS,
                options(nomem, nostack)
            );
        }
    }
}

/// Ends QEMU with this code (its exit status is twice that plus one), after the console is written.
pub fn end(code: u32) -> ! {
    // SAFETY: descriptor 1 is the console; the port belongs to isa-debug-exit.
    unsafe {
        libc::tcdrain(1);
        if allow(DEBUG_EXIT_PORT, 4) {
            std::arch::asm!(
                "out dx, eax", in("dx") DEBUG_EXIT_PORT, in("eax") code, options(nomem, nostack)
            );
        }
        // Without the device: power off. QEMU reports this as a guest that ended without an answer.
        libc::reboot(libc::LINUX_REBOOT_CMD_RESTART);
    }
    loop {
        // SAFETY: waits for a signal; nothing is left to do.
        unsafe { libc::pause() };
    }
}
