// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab diff vm:6.12 vm:6.18`, or a model against a kernel: both runs are recorded on one CPU
//! with counted time, and their turns compared.

mod random;
mod result;
mod show;

pub use result::TurnDiffResult;

use super::{DiffArgs, Party, party};
use crate::commands::check::guest::{Guests, InGuest};
use crate::commands::check::place::Place;
use crate::error::{CliError, CliResult, Exit};
use crate::input;
use crate::machine;
use crate::output::{Out, say};
use result::Played;
use schedlab_check::{Recording, Subject, TurnDiff, compare_turns};
use schedlab_lab::versus::{Versus, measures_default};
use schedlab_model::time::tick_nsec;
use schedlab_model::{Amount, CpuId, CpuMask, Nanos, Workload};
use schedlab_run::{Lane, LaneError, LaneKind, RunRequest, RunResult, run_and_check};
use schedlab_sim::SimLane;
use schedlab_sim::explain::{Query, Question, StatedDecision, explain};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a kernel in a guest is called.
const PREFIX: &str = "vm:";

/// The machine that is like a guest with counted time.
const GUEST: &str = "guest-counted";

/// Candidates of a model's pick that are shown.
const CANDIDATES_SHOWN: usize = 12;

/// Whether one of the sides is a kernel in a guest.
pub fn is_meant(args: &DiffArgs) -> bool {
    [&args.a, &args.b].iter().any(|name| name.starts_with(PREFIX))
}

/// Runs the command.
pub fn diff(args: &DiffArgs, out: &mut Out) -> CliResult<()> {
    let sides = sides(args)?;
    let result = match args.random {
        Some(nr_seeds) => random::search(args, &sides, nr_seeds, out)?,
        None => Some(one_workload(args, &sides)?),
    };
    let Some(result) = result else { return out.finish_now() };
    match args.json {
        true => out.json(&result)?,
        false => show::print(&result, out)?,
    }
    out.finish_now()?;
    if result.same { Ok(()) } else { Err(CliError::Silent(Exit::Check)) }
}

/// One of the two that are compared.
pub struct Side {
    /// As the user names it.
    name: String,
    kind: Kind,
}

enum Kind {
    Guest(Box<InGuest>),
    Model(Box<Model>),
}

/// A model, on the machine that it is compared on.
struct Model {
    lane: SimLane,
    subject: Subject,
    tunables: Vec<(String, String)>,
}

/// Both sides. A model has the tick of the kernel that it is compared with, and the machine that
/// the user names, else [`GUEST`].
fn sides(args: &DiffArgs) -> CliResult<[Side; 2]> {
    refuse(args)?;
    let guests = Guests::new(&args.machine.scx)?;
    let guest = |name: &str, own: &[String]| -> CliResult<Option<InGuest>> {
        let Some(kernel) = name.strip_prefix(PREFIX) else { return Ok(None) };
        if kernel.is_empty() {
            return Err(CliError::usage_help(
                format!("{name:?} names no kernel"),
                "give one of `schedlab kernel list`, such as vm:6.12",
            ));
        }
        let tunables: Vec<String> = args.machine.tunables.iter().chain(own).cloned().collect();
        guests.place(kernel, &tunables, false).map(Some)
    };
    let found = [guest(&args.a, &args.tunables_a)?, guest(&args.b, &args.tunables_b)?];
    let hz: Vec<u32> = found.iter().flatten().map(|guest| guest.hz()).collect();
    if let [one, other] = hz[..]
        && one != other
    {
        say(format!("note: A has {one} ticks a second, B {other}"));
    }
    let [a, b] = found;
    let model = |name: &str, own: &[String]| -> CliResult<Kind> {
        let party = party(args, name, own)?;
        let mut machine = args.machine.clone();
        if machine.costs.is_none() {
            machine.machine.get_or_insert_with(|| GUEST.to_owned());
        }
        let lane = SimLane {
            hz: args.machine.hz.or(hz.first().copied()),
            charges_textbooks: true,
            schedulers: party.known.compiled(),
            ..machine::sim_lane(&machine)?
        };
        let Party { subject, tunables, .. } = party;
        Ok(Kind::Model(Box::new(Model { lane, subject, tunables })))
    };
    let kind = |guest: Option<InGuest>, name: &str, own: &[String]| match guest {
        Some(guest) => Ok(Kind::Guest(Box::new(guest))),
        None => model(name, own),
    };
    Ok([
        Side { kind: kind(a, &args.a, &args.tunables_a)?, name: args.a.clone() },
        Side { kind: kind(b, &args.b, &args.tunables_b)?, name: args.b.clone() },
    ])
}

/// Refuses what a comparison with a guest cannot have.
fn refuse(args: &DiffArgs) -> CliResult<()> {
    if args.cpus.is_some_and(|cpus| cpus != 1) {
        return Err(CliError::usage_help(
            "--cpus: kernels in guests are compared on one CPU",
            "several CPUs of a guest take turns on one clock, so their order means little",
        ));
    }
    let are_guests = [&args.a, &args.b].iter().all(|name| name.starts_with(PREFIX));
    if are_guests && args.machine.machine.is_some() {
        return Err(CliError::usage_help(
            "--machine is for models: a guest is QEMU's own machine",
            "leave it out",
        ));
    }
    Ok(())
}

impl Side {
    fn tunables(&self) -> &[(String, String)] {
        match &self.kind {
            Kind::Guest(guest) => guest.tunables(),
            Kind::Model(model) => &model.tunables,
        }
    }

    fn lane(&self) -> &dyn Lane {
        match &self.kind {
            Kind::Guest(guest) => guest.lane(),
            Kind::Model(model) => &model.lane,
        }
    }

    fn request(&self, workload: &Workload, seed: u64) -> RunRequest {
        let scheduler = match &self.kind {
            Kind::Guest(guest) => guest.kernel(),
            Kind::Model(model) => &model.subject.scheduler.name,
        };
        RunRequest {
            tunables: self.tunables().to_vec(),
            seed,
            ..RunRequest::new(workload.clone(), scheduler, CpuMask::first(1))
        }
    }

    /// A model's last pick up to `at`, with its numbers.
    fn choice(&self, request: &RunRequest, at: Nanos) -> Option<StatedDecision> {
        let Kind::Model(model) = &self.kind else { return None };
        let query = Query {
            question: Question::At(at),
            cpu: Some(CpuId(0)),
            decisions_max: 1,
            candidates_max: CANDIDATES_SHOWN,
        };
        let (request, _) = request.bounded(LaneKind::Sim);
        explain(&model.lane, &request, &query).ok()?.decisions.into_iter().next()
    }
}

/// Half a tick: what a slice that ends at ticks may be longer or shorter.
fn tolerance(args: &DiffArgs, sides: &[Side; 2]) -> Nanos {
    let hz = sides.iter().filter_map(|side| match &side.kind {
        Kind::Guest(guest) => Some(guest.hz()),
        Kind::Model(..) => None,
    });
    args.tolerance.unwrap_or_else(|| tick_nsec(hz.max().unwrap_or(250)) / 2)
}

/// Both runs of one workload, and their comparison.
pub struct Pair {
    requests: [RunRequest; 2],
    runs: [RunResult; 2],
    diff: TurnDiff,
}

/// Plays a workload on both sides at once.
fn play(
    sides: &[Side; 2],
    requests: [RunRequest; 2],
    tolerance_ns: Nanos,
) -> Result<Pair, LaneError> {
    let run = |side: usize| -> Result<(Recording, RunResult), LaneError> {
        let mut recording = Recording::default();
        let play = || run_and_check(sides[side].lane(), &requests[side], &mut recording);
        // A class that finds its own state broken panics.
        let result = catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|_| {
            let name = &sides[side].name;
            Err(LaneError::Check(format!("{name}: the model found its own state broken")))
        })?;
        Ok((recording, result))
    };
    let (a, b) = std::thread::scope(|scope| {
        let b = scope.spawn(|| run(1));
        let a = run(0);
        (a, b.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let ((of_a, a), (of_b, b)) = (a?, b?);
    let diff = compare_turns(&requests[0].workload, &[of_a, of_b], tolerance_ns);
    Ok(Pair { requests, runs: [a, b], diff })
}

fn one_workload(args: &DiffArgs, sides: &[Side; 2]) -> CliResult<TurnDiffResult> {
    let text = args.workload.as_deref().unwrap_or_default();
    let named = input::workload(text, &args.tasks, 1)?;
    named.warnings.iter().for_each(|warning| say(format!("warning: {}", warning.text)));
    let nr_runs = args.seeds.unwrap_or(1);
    let tolerance_ns = tolerance(args, sides);
    let tick_ns = tolerance_ns * 2;
    let mut pairs = Vec::new();
    for repetition in 0..nr_runs {
        let shift_ns = tick_ns * u64::from(repetition) / u64::from(nr_runs);
        let workload = shifted(&named.workload, shift_ns);
        let seed = args.tasks.seed.wrapping_add(u64::from(repetition));
        let requests = sides.each_ref().map(|side| RunRequest {
            until_ns: args.tasks.until,
            repetition,
            parameters: named.parameters.clone(),
            ..side.request(&workload, seed)
        });
        pairs.push(play(sides, requests, tolerance_ns)?);
    }
    crate::commands::results::warn(pairs.first().into_iter().flat_map(|pair| &pair.runs));
    Ok(compared(sides, &pairs, tolerance_ns))
}

/// The comparison of all runs: shown is the first pair in which the schedulers choose otherwise, or
/// the first that differs.
fn compared(sides: &[Side; 2], pairs: &[Pair], tolerance_ns: Nanos) -> TurnDiffResult {
    let chooses = |pair: &&Pair| pair.diff.first.as_ref().is_some_and(|one| one.timing.is_none());
    let differs = |pair: &&Pair| pair.diff.first.is_some();
    let shown = pairs.iter().find(chooses).or_else(|| pairs.iter().find(differs));
    let shown = shown.unwrap_or(&pairs[0]);
    let choices = match &shown.diff.first {
        None => [None, None],
        Some(first) => {
            [0, 1].map(|side| sides[side].choice(&shown.requests[side], first.sides[side].time_ns))
        }
    };
    let played = Played { sides, shown, choices, tolerance_ns };
    let mut result = TurnDiffResult::new(&played);
    if pairs.len() > 1 {
        let runs = |side: usize| pairs.iter().map(move |pair| &pair.runs[side]).collect::<Vec<_>>();
        let measures: Vec<String> = measures_default().map(String::from).collect();
        result.measures = Versus::of(("A", &runs(0)), ("B", &runs(1)), &measures);
        result.runs = Some(result::Runs {
            nr_runs: pairs.len() as u64,
            nr_choice: pairs.iter().filter(chooses).count() as u64,
            nr_timing: pairs.iter().filter(|pair| differs(pair) && !chooses(pair)).count() as u64,
        });
        result.same &= pairs.iter().all(|pair| !chooses(&pair));
    }
    result
}

/// The workload with all starts later. A tick then falls on another part of each task's work.
fn shifted(workload: &Workload, shift_ns: Nanos) -> Workload {
    let mut workload = workload.clone();
    for task in workload.tasks.iter_mut().filter(|task| task.instances > 0) {
        if let Amount::Constant(release_ns) = &mut task.release_ns {
            *release_ns += shift_ns;
        }
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_model::TaskSpec;

    #[test]
    fn starts_move_together() {
        let mut tasks = vec![TaskSpec::new("a", Default::default()); 3];
        tasks[1].release_ns = Amount::Constant(5);
        tasks[2].instances = 0;
        let workload = shifted(&Workload::new("w", tasks), 7);
        let starts = workload.tasks.iter().map(|task| task.release_ns);
        assert_eq!(starts.collect::<Vec<_>>(), [7, 12, 0].map(Amount::Constant));
    }
}
