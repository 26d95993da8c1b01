// SPDX-License-Identifier: MIT OR Apache-2.0
//! `diff vm:6.12 vm:6.18 --random`: searches random workloads for one in which two kernels, or a
//! model and a kernel, choose otherwise, and makes it small.

use super::super::random::{shell_word, write_workload};
use super::{DiffArgs, Kind, Side, TurnDiffResult, compared, play, tolerance};
use crate::commands::check::place::Place;
use crate::commands::check::search::{self, Search};
use crate::error::CliResult;
use crate::output::{Out, say, without_panic_texts};
use schedlab_check::{
    Breach, Case, DECISIONS, Family, Feature, Features, Shape, TurnDiff, Verdict, shrink,
};
use schedlab_model::Amount;
use schedlab_run::LaneError;
use schedlab_workload::write_rtapp_short;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Least time between the starts of two tasks (ns).
const START_NS: u64 = 300_000;

/// Searches; `None`: no workload shows another choice, which is printed.
pub fn search(
    args: &DiffArgs,
    sides: &[Side; 2],
    nr_seeds: u64,
    out: &mut Out,
) -> CliResult<Option<TurnDiffResult>> {
    let players = Players {
        sides,
        tolerance_ns: tolerance(args, sides),
        failure: Mutex::default(),
        nr_timing: AtomicU64::new(0),
    };
    let pace = players.guest().pace();
    let searched = Search {
        name: format!("{} and {}", args.a, args.b),
        play: Box::new(|case: &Case| players.verdict(case)),
        shape: players.shape(),
        first: args.tasks.seed,
        nr_seeds: Some(nr_seeds),
        budget: None,
        threads: args.machine.threads.map_or_else(search::threads, usize::from),
        batch: pace.batch,
    }
    .run();
    players.check()?;
    let Some((seed, case, breach)) = searched.found else {
        let nr_timing = players.nr_timing.load(Ordering::Relaxed);
        let text = format!(
            "{} and {} choose alike in {} random workloads ({} more they cannot both play). \
             In {nr_timing} of these a task ended or woke at another time before they chose \
             otherwise.",
            args.a,
            args.b,
            searched.nr_cases - searched.nr_refused,
            searched.nr_refused
        );
        match args.json {
            true => out.json(&serde_json::json!({ "same": true, "sentence": text }))?,
            false => out.line(text)?,
        }
        return Ok(None);
    };
    say(format!("workload {seed} differs; making it smaller"));
    let mut test = |case: &Case| players.verdict(case).breach();
    let small =
        without_panic_texts(|| shrink(&case, &breach, pace.shrink_runs_max, &mut test)).case;
    players.check()?;
    let small = players.fit(&small);
    let requests = sides.each_ref().map(|side| side.request(&small.workload, small.seed));
    let pair = play(sides, requests, players.tolerance_ns)?;
    let mut result = compared(sides, &[pair], players.tolerance_ns);
    result.found_at_seed = Some(seed);
    result.command = Some(command(args, sides, &small)?);
    result.workload_text = Some(write_rtapp_short(&small.workload));
    Ok(Some(result))
}

/// Writes the workload, and returns the command that compares it again.
fn command(args: &DiffArgs, sides: &[Side; 2], case: &Case) -> CliResult<String> {
    let path = write_workload(&args.output, case)?;
    let mut command = format!(
        "schedlab diff {} {} {} --seed {}",
        shell_word(&args.a),
        shell_word(&args.b),
        shell_word(&path.display().to_string()),
        case.seed
    );
    for (side, option) in sides.iter().zip(["--set-a", "--set-b"]) {
        for (name, value) in side.tunables() {
            command += &format!(" {option} {}", shell_word(&format!("{name}={value}")));
        }
    }
    if let Some(tolerance_ns) = args.tolerance {
        command += &format!(" --tolerance {tolerance_ns}ns");
    }
    Ok(command)
}

/// Both sides play cases.
struct Players<'s> {
    sides: &'s [Side; 2],
    tolerance_ns: u64,
    /// Why nothing can be played any more.
    failure: Mutex<Option<LaneError>>,
    /// Cases in which other times came first.
    nr_timing: AtomicU64,
}

impl Players<'_> {
    /// The first guest.
    fn guest(&self) -> &dyn Place {
        let guests = self.sides.iter().filter_map(|side| match &side.kind {
            Kind::Guest(guest) => Some(&**guest as &dyn Place),
            Kind::Model(..) => None,
        });
        guests.into_iter().next().expect("one side is a guest")
    }

    /// What both sides can play.
    fn shape(&self) -> Shape {
        let features = |side: &Side| match &side.kind {
            Kind::Guest(guest) => guest.shape().features,
            Kind::Model(model) => match model.subject.family() {
                Family::Textbook | Family::Early => model.subject.shape().features,
                Family::Kernel(_) | Family::Native => Features::ALL,
            },
        };
        let all = self.sides.each_ref().map(features);
        let both: Vec<Feature> = Feature::ALL
            .into_iter()
            .filter(|feature| all.iter().all(|features| features.has(*feature)))
            .collect();
        Shape { features: Features::ALL.only(&both), ..self.guest().shape() }
    }

    /// The case as both play it. No two tasks start at one time, when the launcher decides which is
    /// first. Done again, it changes nothing.
    fn fit(&self, case: &Case) -> Case {
        let mut case = self.guest().fit(case);
        for (index, task) in (0..).zip(&mut case.workload.tasks) {
            if let Amount::Constant(release_ns) = &mut task.release_ns
                && task.instances > 0
            {
                *release_ns = (*release_ns).max(index * START_NS);
            }
        }
        case
    }

    /// A difference that other times explain is none.
    fn verdict(&self, case: &Case) -> Verdict {
        let failure = || self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &*failure() {
            return Verdict::Refused(error.text().to_owned());
        }
        let case = self.fit(case);
        let requests = self.sides.each_ref().map(|side| side.request(&case.workload, case.seed));
        match play(self.sides, requests, self.tolerance_ns) {
            Ok(pair) => self.judged(&pair.diff),
            Err(LaneError::Input(why) | LaneError::Check(why)) => Verdict::Refused(why),
            Err(error) => {
                let why = error.text().to_owned();
                failure().get_or_insert(error);
                Verdict::Refused(why)
            }
        }
    }

    fn judged(&self, diff: &TurnDiff) -> Verdict {
        let Some(first) = &diff.first else { return Verdict::Passed };
        if first.timing.is_some() {
            self.nr_timing.fetch_add(1, Ordering::Relaxed);
            return Verdict::Passed;
        }
        let [a, b] = &first.sides;
        Verdict::Broken(Breach {
            rule: &DECISIONS,
            kind: "",
            time_ns: a.time_ns,
            cpu: None,
            task: None,
            text: format!("A {}, B {}", a.did, b.did),
        })
    }

    fn check(&self) -> CliResult<()> {
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}
