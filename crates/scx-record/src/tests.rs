// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records a user program that this test executes itself: it calls bpf(2) as libbpf does.

use crate::btf::Btf;
use crate::testing::{Types, kernel};
use crate::{RecordError, Recording, Request, record, without_colours};
use schedlab_model::machine::{Caches, Topology};
use std::ffi::OsString;
use std::time::Duration;

/// Variable that says what the user program does.
const MODE: &str = "SCHEDLAB_TEST_USER_HALF";

/// Two cores of two threads.
fn topology() -> Topology {
    Topology { core: vec![0, 1, 0, 1], llc: vec![0; 4], node: vec![0; 4] }
}

/// Records the user program in a mode; `None`: this machine cannot, and the test is skipped.
fn recorded(mode: &str, limit: Duration) -> Option<Result<Recording, RecordError>> {
    let exe = std::env::current_exe().unwrap();
    let words = ["tests::user_half", "--exact", "--nocapture"].map(OsString::from);
    let mut command = vec!["env".into(), format!("{MODE}={mode}").into(), exe.into_os_string()];
    command.extend(words);
    let (types, _) = kernel();
    let request = Request {
        command: &command,
        topology: &topology(),
        caches: &Caches::default(),
        types: &types,
        kernel: "6.18.0",
        limit,
    };
    match record(&request) {
        Err(RecordError::Unavailable(why)) => {
            schedlab_testing::skip(why);
            None
        }
        other => Some(other),
    }
}

#[test]
fn what_a_user_program_sets_up_becomes_a_setup() {
    let started = std::time::Instant::now();
    let Some(done) = recorded("whole", Duration::from_secs(60)) else { return };
    let Recording { text, notes } = done.unwrap();
    // The program sleeps for a minute after the attach.
    assert!(started.elapsed() < Duration::from_secs(30));
    let start = text.find("core = ").unwrap();
    let expected = "core = [0, 1, 0, 1]\nllc = [0, 0, 0, 0]\nnode = [0, 0, 0, 0]\n\n\
        [variables]\ncpu_llc = [7, 8]\nis_smt = 1\nlevel = 0\n\"limits[all]\" = 9\n\n\
        [[elements]]\nmap = \"tasks_of_a_long_name\"\nkey = [[\"i32\", 5]]\n\
        value = [[\"i32\", 6], [\"i32\", -1]]\n\n\
        [[elements]]\nmap = \"of_cpus\"\nkey = [[\"i32\", 0]]\nvalue = [[\"i32\", 3]]\ncpu = 2\n\n\
        [[runs]]\nprogram = \"enable_cpu_with_a_long_name\"\n\
        context = [[\"i32\", 2], [\"i32\", -3]]\n\n\
        [[runs]]\nprogram = \"enable_cpu_with_a_long_name\"\ncontext = [[\"i32\", 4]]\ncpu = 3\n\
        attached = true\n";
    assert_eq!(&text[start..], expected);
    let flags = "\nflags = [\"SCX_OPS_ENQ_LAST\", \"SCX_OPS_HIGH\"]\ninit_cpu = 1\n";
    assert!(text.contains(flags), "{text}");
    assert!(text.contains("\nkernel = \"6.18.0\"\n"), "{text}");
    assert_eq!(notes, ["flags 0x10 of the scheduler have no name"]);
}

#[test]
fn a_program_that_attaches_nothing_is_an_error_with_its_output() {
    let Some(done) = recorded("none", Duration::from_secs(60)) else { return };
    let error = done.unwrap_err().to_string();
    assert!(error.contains("env ended before it attached a scheduler (exit status: 3)"), "{error}");
    assert!(error.ends_with("\n  a last word"), "{error}");
    let Some(done) = recorded("sleep", Duration::from_millis(300)) else { return };
    let error = done.unwrap_err().to_string();
    assert!(error.starts_with("env has not attached a scheduler within 0 s; --limit"), "{error}");
}

#[test]
fn wrong_calls_get_errors_and_the_recording_goes_on() {
    let Some(done) = recorded("hostile", Duration::from_secs(60)) else { return };
    assert!(done.unwrap().text.contains("is_smt = 1\n"));
}

#[test]
fn requests_that_cannot_work_are_refused() {
    let (types, _) = kernel();
    let command = ["/nonexistent/scx_none".into()];
    let topology = topology();
    let mut request = Request {
        command: &command,
        topology: &topology,
        caches: &Caches::default(),
        types: b"none",
        kernel: "6.1.0",
        limit: Duration::from_secs(1),
    };
    let error = record(&request).unwrap_err().to_string();
    assert!(error.contains("kernel 6.1.0 has no sched_ext") && error.contains("6.16"), "{error}");
    request.types = &types;
    match record(&request).unwrap_err() {
        RecordError::Input(error) => {
            assert!(error.starts_with("cannot start /nonexistent/scx_none: No such"), "{error}");
        }
        RecordError::Unavailable(why) => schedlab_testing::skip(why),
        other => panic!("{other}"),
    }
}

#[test]
fn colours_are_left_out() {
    assert_eq!(without_colours("a\u{1b}[1;31mb\u{1b}[0mc"), "abc");
    assert_eq!(without_colours("\u{1b}[0"), "0");
    assert_eq!(without_colours("plain"), "plain");
}

/// The attribute of bpf(2), word by word.
#[derive(Clone, Copy)]
struct Attr([u8; 128]);

impl Attr {
    fn new() -> Self {
        Self([0; 128])
    }

    fn put(mut self, at: usize, word: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&word.to_le_bytes());
        self
    }

    fn at<T: ?Sized>(mut self, at: usize, place: *const T) -> Self {
        self.0[at..at + 8].copy_from_slice(&(place.cast::<u8>() as u64).to_le_bytes());
        self
    }

    fn text(mut self, at: usize, text: &str) -> Self {
        self.0[at..at + text.len()].copy_from_slice(text.as_bytes());
        self
    }

    /// Calls bpf(2); a negative result is an error number.
    fn call(mut self, command: u32) -> i64 {
        // SAFETY: the attribute has this length; it points to memory of this function's callers, or
        // is wrong on purpose, which the answering side checks.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), 128) };
        let errno = || i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
        if result < 0 { -errno() } else { result }
    }

    /// Calls bpf(2), which succeeds.
    fn must(self, command: u32) -> u32 {
        u32::try_from(self.call(command)).unwrap_or_else(|_| panic!("command {command}"))
    }
}

/// The types of the user program's object: the file, the numbers of its sections and its function.
fn object() -> (Vec<u8>, [u32; 3]) {
    let mut types = Types::new();
    let word = types.number("u32", 4);
    let array = types.array(word, 4);
    let first = [("is_smt", word, 0, 4), ("level", word, 4, 4), ("limits", array, 8, 16)];
    let constants = types.section(".rodata", &first);
    let zeroed = types.section(".bss", &[("cpu_llc", array, 0, 16), ("nr_runs", word, 16, 4)]);
    types.section(".maps", &[("tasks_of_a_long_name", word, 0, 4), ("of_cpus", word, 4, 4)]);
    let prototype = types.add("", 13, 0, word, &[]);
    let function = types.add("enable_cpu_with_a_long_name", 12, 1, prototype, &[]);
    (types.bytes(), [constants, zeroed, function])
}

fn update(map: u32, key: u32, value: &[u8]) {
    Attr::new().put(0, map).at(8, &raw const key).at(16, value.as_ptr()).must(2);
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Loads types, sections and maps; returns the program.
fn set_up() -> u32 {
    let (bytes, [constants, zeroed, function]) = object();
    let types = Attr::new().at(0, bytes.as_ptr()).put(16, bytes.len() as u32).must(18);
    let section = |size: u32, of: u32| {
        let made = Attr::new().put(0, 2).put(4, 4).put(8, size).put(12, 1).put(16, 1 << 10);
        made.put(48, types).put(56, of).must(0)
    };
    update(section(24, constants), 0, &words(&[1, 0, 9, 9, 9, 9]));
    let bss = section(20, zeroed);
    // SAFETY: a new mapping of a page of the map, which has one.
    unsafe {
        let (none, both) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        let at = libc::mmap(none, 4096, both, libc::MAP_SHARED, bss as i32, 0);
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<[u32; 2]>().write([7, 8]);
    }
    let map = |kind: u32, size: u32, name: &str| {
        let made = Attr::new().put(0, kind).put(4, 4).put(8, size).put(12, 10).put(48, types);
        made.text(28, name).must(0)
    };
    let hash = map(1, 8, "tasks_of_a_long");
    update(hash, 5, &words(&[6, -1]));
    update(hash, 6, &words(&[1, 1]));
    let key = 6u32;
    Attr::new().put(0, hash).at(8, &raw const key).must(3);
    let mut value = [0u8; 8];
    let key = 5u32;
    Attr::new().put(0, hash).at(8, &raw const key).at(16, value.as_mut_ptr()).must(1);
    assert_eq!(value.to_vec(), words(&[6, -1]));
    update(map(6, 4, "of_cpus"), 0, &words(&[0, 0, 0, 0, 3, 0, 0, 0]));
    let info = [0, function];
    let program = Attr::new().put(0, 31).text(48, "enable_cpu_with").put(72, types);
    program.put(76, 8).at(80, info.as_ptr()).put(88, 1).must(5)
}

fn run(program: u32, context: &[i32]) {
    let bytes = words(context);
    Attr::new().put(0, program).put(40, bytes.len() as u32).at(48, bytes.as_ptr()).must(10);
}

fn attach() {
    let (_, value) = kernel();
    let map = Attr::new().put(0, 26).put(4, 4).put(8, 128).put(12, 1).put(16, 1 << 13);
    let map = map.put(60, value).must(0);
    let mut ops = vec![0; 128];
    ops[72..80].copy_from_slice(&(1u64 << 40 | 0x12).to_le_bytes());
    update(map, 0, &ops);
    Attr::new().put(0, map).put(8, 44).must(28);
}

/// What the machine shows to the user program.
fn look_around() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    assert_eq!(read("/sys/devices/system/cpu/possible"), "0-3\n");
    assert_eq!(read("/sys/kernel/sched_ext/state"), "disabled\n");
    assert_eq!(std::fs::read("/sys/kernel/btf/vmlinux").unwrap(), kernel().0);
    assert!(std::fs::read_dir("/run").unwrap().next().is_none());
    assert_eq!(std::thread::available_parallelism().unwrap().get(), 4);
    // libbpf asks whether links of performance events exist.
    assert_eq!(Attr::new().put(4, u32::MAX).put(8, 41).call(28), -i64::from(libc::EBADF));
}

/// Calls that are wrong.
fn misbehave() {
    let wild = 0x10_0000usize as *const u8;
    for command in 0..64 {
        for size in [0, 4, u32::MAX] {
            let attr = Attr::new().put(0, size).put(4, size).put(8, size).put(12, size);
            let attr = attr.at(16, wild).put(32, size).put(40, size).at(48, wild).at(80, wild);
            let result = attr.call(command);
            // Locks of a map and links of nothing succeed; nothing else does.
            assert!(result <= 0 || result > 2, "command {command}: {result}");
        }
    }
    // SAFETY: the kernel and the answering side check the address.
    let result = unsafe { libc::syscall(libc::SYS_bpf, 0, wild, 128) };
    assert_eq!(result, -1);
}

/// Moves this thread to a CPU.
fn move_to(cpu: usize) {
    // SAFETY: the set has its size.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(done, 0);
}

/// The user program of the tests above, which execute this one with [`MODE`].
#[test]
fn user_half() {
    let sleep = || std::thread::sleep(Duration::from_secs(60));
    match std::env::var(MODE).as_deref() {
        Ok("whole") => {
            look_around();
            let program = set_up();
            run(program, &[2, -3]);
            move_to(1);
            attach();
            move_to(3);
            run(program, &[4]);
            sleep();
        }
        Ok("none") => {
            println!("\x1b[1ma last word\x1b[0m");
            std::process::exit(3);
        }
        Ok("sleep") => sleep(),
        Ok("hostile") => {
            misbehave();
            set_up();
            attach();
            sleep();
        }
        // Executed with the others: its types must be such that they can be recorded.
        _ => {
            let (bytes, [constants, zeroed, function]) = object();
            let types = Btf::read(&bytes).unwrap();
            assert_eq!(types.function(function), Some("enable_cpu_with_a_long_name"));
            assert_eq!(
                (types.name(constants), types.name(zeroed)),
                (Some(".rodata"), Some(".bss"))
            );
        }
    }
}
