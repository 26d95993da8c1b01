use schedlab_host::{HostLane, HostRequest, PolicyOverride};
use schedlab_model::program::ProgramBuilder;
use schedlab_model::trace::MemorySink;
use schedlab_model::*;
fn main() {
    let n: u32 = std::env::args().nth(1).map_or(2, |a| a.parse().unwrap());
    let kind = std::env::args().nth(2).unwrap_or("hog".into());
    let mut b = ProgramBuilder::new();
    b.begin_loop(LoopCount::Times(100));
    match kind.as_str() {
        "hog" => { b.run(1_000_000); b.op(Op::Progress); }
        "inter" => { b.run(200_000).sleep(1_000_000); b.op(Op::Progress); }
        "yield" => { b.run(20_000).op(Op::Yield); }
        "io" => { b.run(20_000).op(Op::Io{direction: program::IoDirection::Write, bytes: Amount::Constant(512), sync: true}); b.op(Op::Io{direction: program::IoDirection::Read, bytes: Amount::Constant(512), sync: true});}
        "fork" => { b.op(Op::Fork{task:1}).run(50_000); }
        _ => panic!(),
    }
    b.end_loop();
    if kind == "fork" { b.op(Op::JoinAll); }
    let mut t = TaskSpec::new("hog", b.build());
    t.instances = n;
    let mut tasks = vec![t];
    if kind == "fork" { let mut c = TaskSpec::new("kid", ProgramBuilder::new().run(100_000).build()); c.instances = 0; tasks.push(c); }
    let mut r = HostRequest::new(Workload::new("hogs", tasks), 1);
    if let Some(p) = std::env::args().nth(3) {
        let policy = match p.as_str() { "fifo" => Policy::Fifo, "rr" => Policy::Rr, "batch" => Policy::Batch, _ => Policy::Normal };
        r.policy = Some(PolicyOverride { policy, rt_priority: if policy.is_rt() { 50 } else { 0 } });
    }
    if let Some(c) = std::env::args().nth(4) { r.cpus = CpuMask::only(CpuId(c.parse().unwrap())); }
    let mut sink = MemorySink::default();
    match HostLane.play(&r, &mut sink) {
        Ok(o) => {
            for t in o.tasks.iter().take(6) { println!("{t:?}"); }
            println!("{:?}", o.check); for t in &o.tasks { let s = t.trace.unwrap_or_default(); if s.nr_waits != t.nr_slices || s.kernel_delay_ns.abs_diff(t.run_delay_ns) > 20_000 { println!("MISMATCH {} {} trace {s:?} stat run {} delay {} slices {}", t.id, t.name, t.run_ns, t.run_delay_ns, t.nr_slices); } }
            for w in &o.warnings { println!("{w:?}"); }
            println!("events {} lost {} late {} end {} rec_cpu {} tasks {}", o.nr_events, o.nr_lost_events, o.nr_late_events, o.end_ns, o.recorder_cpu_ns, sink.tasks.len());
            for e in sink.events.iter().take(12) { println!("{e:?}"); }
        }
        Err(e) => println!("ERROR {e}"),
    }
}
