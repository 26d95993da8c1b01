// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what recording costs: a pipe ping-pong of two processes on one CPU, with and without
//! the BPF recorder, in pairs of random order.
//!
//! `cargo run --release -p schedlab-host --example recorder_cost [ROUNDS]` (root). The two
//! processes run under FIFO, to exclude other load; the example compares their CPU time
//! (getrusage). It prints the median over the pairs of the extra CPU time per event, on the traced
//! CPU and with the drain thread.

#[cfg(schedlab_bpf)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    bench::run()
}

#[cfg(not(schedlab_bpf))]
fn main() {
    eprintln!("this build has no BPF recorder: install clang and build again");
    std::process::exit(3);
}

#[cfg(schedlab_bpf)]
mod bench {
    use schedlab_host::recorder::{bpf::BpfRecorder, drain::Drain};
    use schedlab_host::sys::{self, RawSchedAttr, Usage};
    use schedlab_model::CpuMask;

    const ROUND_TRIPS: u32 = 200_000;
    type Failure = Box<dyn std::error::Error>;

    /// One ping-pong: wall and CPU time (ns), and the recorder's figures if there is one.
    struct Sample {
        wall_ns: u64,
        cpu_ns: u64,
        events: u64,
        lost: u64,
        drain_ns: u64,
    }

    pub fn run() -> Result<(), Failure> {
        let rounds: u32 = std::env::args().nth(1).map_or(Ok(15), |text| text.parse())?;
        let cpus = schedlab_host::allowed_cpus();
        let home = cpus.iter().last().map(CpuMask::only).ok_or("no CPU")?;
        let others = cpus.and_not(&home);
        let others = if others.is_empty() { home } else { others };
        let (mut on_cpu, mut total, mut wall, mut rate) = (vec![], vec![], vec![], vec![]);
        let (mut events, mut lost) = (0, 0);
        for round in 0..rounds {
            let (with, without) = if (round * 7 + 3) % 4 < 2 {
                let with = sample(true, &home, others)?;
                (with, sample(false, &home, others)?)
            } else {
                let without = sample(false, &home, others)?;
                (sample(true, &home, others)?, without)
            };
            let per_event = |ns: i64| ns as f64 / with.events as f64;
            let extra = with.cpu_ns as i64 - without.cpu_ns as i64;
            on_cpu.push(per_event(extra));
            total.push(per_event(extra + with.drain_ns as i64));
            wall.push(with.wall_ns as f64 / without.wall_ns as f64);
            rate.push(with.events as f64 / with.wall_ns as f64 * 1_000.0);
            events += with.events;
            lost += with.lost;
        }
        let line = |name: &str, unit: &str, mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            let at = |part: usize| values[(values.len() - 1) * part / 100];
            println!("{name:34} {:8.2} {unit}  [{:.2} .. {:.2}]", at(50), at(10), at(90));
        };
        println!("{rounds} pairs, {ROUND_TRIPS} round trips each: median [10 % .. 90 %]");
        line("events a second (millions)", "M/s", rate);
        line("cost on the traced CPU", "ns/event", on_cpu);
        line("cost with the drain thread", "ns/event", total);
        line("wall time, with / without", "x", wall);
        println!("events {events}, lost {lost}, 16 bytes an event");
        Ok(())
    }

    fn sample(is_recorded: bool, home: &CpuMask, others: CpuMask) -> Result<Sample, Failure> {
        let mut recorder = is_recorded.then(|| BpfRecorder::attach(None)).transpose()?;
        let mut drain = None;
        if let Some(recorder) = &mut recorder {
            recorder.follow(sys::getpid());
            let rings = recorder.rings().ok_or("no rings")?;
            drain = Some(Drain::start(rings, others, schedlab_host::Pace::LIVE.round_ns)?);
        }
        let before = children();
        let start = sys::monotonic_ns();
        ping_pong(home)?;
        let wall_ns = sys::monotonic_ns() - start;
        let used = children();
        let (mut events, mut lost, mut drain_ns) = (0, 0, 0);
        if let (Some(drain), Some(recorder)) = (&mut drain, &mut recorder) {
            drain_ns = drain.stop().cpu_ns;
            for batch in drain.batches.try_iter() {
                events += batch.records.iter().map(|(_, list)| list.len() as u64).sum::<u64>();
            }
            lost = recorder.rings().map_or(0, |rings| rings.nr_lost());
        }
        let cpu_us = |usage: &Usage| usage.user_us + usage.system_us;
        let cpu_ns = (cpu_us(&used) - cpu_us(&before)) * 1_000;
        Ok(Sample { wall_ns, cpu_ns, events, lost, drain_ns })
    }

    fn children() -> Usage {
        sys::usage_of_children()
    }

    /// Two processes that pass a byte back and forth.
    fn ping_pong(home: &CpuMask) -> Result<(), Failure> {
        let (there, back) = (sys::pipe()?, sys::pipe()?);
        let first = player(home, || {
            for _ in 0..ROUND_TRIPS {
                sys::write_byte(there.1);
                sys::read_byte(back.0);
            }
        })?;
        let second = player(home, || {
            for _ in 0..ROUND_TRIPS {
                sys::read_byte(there.0);
                sys::write_byte(back.1);
            }
        })?;
        for pid in [first, second] {
            sys::reap(pid)?;
        }
        for fd in [there.0, there.1, back.0, back.1] {
            sys::close(fd);
        }
        Ok(())
    }

    fn player(home: &CpuMask, body: impl FnOnce()) -> Result<u32, Failure> {
        if let Some(pid) = sys::fork()? {
            return Ok(pid);
        }
        let fifo = RawSchedAttr {
            size: size_of::<RawSchedAttr>() as u32,
            policy: libc::SCHED_FIFO as u32,
            priority: 50,
            ..RawSchedAttr::default()
        };
        let is_set = sys::sched_setaffinity(0, home).and_then(|()| sys::sched_setattr(0, &fifo));
        if is_set.is_ok() {
            body();
        }
        sys::exit_now(i32::from(is_set.is_err()))
    }
}
