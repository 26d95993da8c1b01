// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads /proc about processes and CPUs, by the field names or positions that proc(5) guarantees.
//! Unreadable values count as missing.

use std::fs;
use std::io;

/// /proc/PID/schedstat. It counts without CONFIG_SCHEDSTATS too, in ns, and for zombies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SchedStat {
    /// Time on a CPU.
    pub run_ns: u64,
    /// Time runnable but not running.
    pub run_delay_ns: u64,
    /// Number of slices.
    pub nr_slices: u64,
}

fn parse_schedstat(text: &str) -> Option<SchedStat> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    Some(SchedStat {
        run_ns: fields.next()??,
        run_delay_ns: fields.next()??,
        nr_slices: fields.next()??,
    })
}

/// Counters of the main thread of `pid`.
pub fn schedstat(pid: u32) -> io::Result<SchedStat> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    parse_schedstat(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// State letter of /proc/PID/stat. It follows the last closing bracket, because names may contain
/// any byte.
fn parse_state(stat: &str) -> Option<char> {
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

/// State of a process, as a letter of proc(5); `None`: it no longer exists.
pub fn state(pid: u32) -> Option<char> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_state(&String::from_utf8_lossy(&stat))
}

/// Whether the process sleeps.
pub fn is_sleeping(pid: u32) -> bool {
    state(pid) == Some('S')
}

/// Whether the process has ended: it no longer exists, or is a zombie.
pub fn has_ended(pid: u32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Whether an exited process has not left its CPU for good. Until then the kernel shows it as
/// `running` (proc(5), /proc/PID/syscall), afterwards in no system call. If the file cannot be
/// read: false.
pub fn is_on_its_way_out(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/syscall")).is_ok_and(|text| text.starts_with(b"running"))
}

/// (voluntary, involuntary) switches of `pid` so far.
pub fn switches(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

/// Greatest resident memory of the calling process since it was executed (VmHWM), bytes.
/// getrusage(2) would include its parent's memory, if that was more.
pub fn max_rss_bytes() -> Option<u64> {
    parse_max_rss(&fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_max_rss(status: &str) -> Option<u64> {
    let field = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(field.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Memory that can be used without swapping (MemAvailable), bytes.
pub fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let field = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(field.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Threads of a process, its own number first; empty if it no longer exists.
pub fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut threads: Vec<u32> = numbers.collect();
    threads.sort_unstable_by_key(|thread| (*thread != pid, *thread));
    threads
}

/// Whether process ids are those that the kernel traces, which is false in a container. If /proc
/// does not tell, true.
pub fn is_in_initial_pid_namespace() -> bool {
    // PROC_PID_INIT_INO, include/linux/proc_ns.h.
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").map_or(true, |link| link.as_os_str() == INITIAL)
}

/// Children of all threads of a process.
pub fn children_of_threads(pid: u32) -> Vec<u32> {
    let of_thread = |thread| {
        let path = format!("/proc/{pid}/task/{thread}/children");
        numbers(&fs::read_to_string(path).unwrap_or_default()).collect::<Vec<u32>>()
    };
    threads(pid).into_iter().flat_map(of_thread).collect()
}

/// Every process below `pid`: its children, theirs, and so on, each after its parent.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() {
        found.extend(children_of_threads(found[next]));
        next += 1;
    }
    found
}

fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split_whitespace().filter_map(|field| field.parse().ok())
}

/// Children of a process with one thread.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    numbers(&text).collect()
}

/// Name of a task (comm).
pub fn comm(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// Times of the CPUs since boot, in ticks of USER_HZ (/proc/stat).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuTimes {
    /// user + nice + system + irq + softirq.
    pub busy: u64,
    /// Time that the hypervisor ran another guest.
    pub steal: u64,
}

fn parse_cpu_times(stat: &str, wants: impl Fn(u32) -> bool) -> CpuTimes {
    let mut total = CpuTimes::default();
    for line in stat.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { continue };
        let mut fields = rest.split_whitespace();
        // The first line, "cpu  ...", is the sum of all: its number is missing.
        if rest.starts_with(' ') || !fields.next().and_then(|n| n.parse().ok()).is_some_and(&wants)
        {
            continue;
        }
        let values: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        let at = |index: usize| values.get(index).copied().unwrap_or(0);
        total.busy += at(0) + at(1) + at(2) + at(5) + at(6);
        total.steal += at(7);
    }
    total
}

/// Times of the CPUs for which `wants` returns true.
pub fn cpu_times(wants: impl Fn(u32) -> bool) -> CpuTimes {
    parse_cpu_times(&fs::read_to_string("/proc/stat").unwrap_or_default(), wants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_read() {
        let pid = std::process::id();
        assert!(schedstat(pid).unwrap().run_ns > 0);
        assert!(switches(pid).is_some());
        assert!(comm(pid).is_some());
        assert!(cpu_times(|_| true).busy > 0);
        assert!(max_rss_bytes().unwrap() > 1 << 20);
        assert_eq!(parse_max_rss("VmPeak: 9 kB\nVmHWM:\t   12 kB\n"), Some(12_288));
        assert_eq!(parse_max_rss("VmHWM: 12 MB"), None);
    }

    #[test]
    fn whoever_left_its_cpu_for_good_is_not_on_its_way_out() {
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let busy = ["-c", "while :; do :; done"];
        let mut busy = std::process::Command::new("sh").args(busy).spawn().unwrap();
        while !is_on_its_way_out(busy.id()) {
            assert!(std::time::Instant::now() < limit, "a loop is seen to run");
        }
        busy.kill().unwrap();
        busy.wait().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while state(child.id()) != Some('Z') || is_on_its_way_out(child.id()) {
            assert!(std::time::Instant::now() < limit, "{:?}", state(child.id()));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.wait().unwrap();
        assert!(!is_on_its_way_out(child.id()), "nobody has this number");
    }

    #[test]
    fn hostile_and_broken_text_is_absent_not_a_panic() {
        assert_eq!(parse_schedstat("1 2"), None);
        assert_eq!(parse_schedstat("1 x 3"), None);
        assert_eq!(parse_state("12 (evil) R) S 1"), Some('S'));
        assert_eq!(parse_state("12 evil"), None);
        let stat = "cpu  9 9 9 9\ncpu0 1 2 3 100 5 6 7 8 0 0\ncpu1 10 0 0 0\ncpux 1\nintr 5\n";
        assert_eq!(parse_cpu_times(stat, |cpu| cpu == 0), CpuTimes { busy: 19, steal: 8 });
        assert_eq!(parse_cpu_times(stat, |_| true), CpuTimes { busy: 29, steal: 8 });
    }
}
