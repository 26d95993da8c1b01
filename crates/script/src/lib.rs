// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers written in JavaScript: the policies of the playground, on the command line. The
//! module [`python`] has those that are written in Python.
//!
//! A policy runs in QuickJS, an interpreter without files, network, clock and threads. Its memory
//! and its steps are limited by counts and not by time, so that a run gives the same bytes, or the
//! same error, on every machine.
//!
//! `policy.js` holds the callbacks and their checks, which the page's worker loads too.

#[cfg(unix)]
pub mod python;

use rquickjs::context::EvalOptions;
use rquickjs::function::{Args, IntoArgs};
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, FromJs, Function, Object, Runtime};
use schedlab_core::script;
use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::textbook::user::{self, TaskView, UserPolicy, Why};
use schedlab_sched::{Scheduler, SourceDigest};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The callbacks and their checks.
const GLUE: &str = include_str!("policy.js");

/// Where the interpreter keeps the glue. Policies can neither change it nor call it to effect.
const HOST: &str = "schedlabHost";

/// Name of a policy's text in stack traces, by which its lines are found.
const FILE: &str = "policy.js";

/// Largest text of a policy, in bytes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Memory of a policy, in bytes.
pub const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Stack of a policy, in bytes.
const STACK_BYTES_MAX: usize = 256 << 10;

/// Jumps and calls after which the interpreter looks at its limits.
const STEPS_PER_LOOK: u64 = 10_000;

/// Jumps and calls that one callback may take.
pub const CALL_STEPS_MAX: u64 = 20_000_000;

/// Jumps and calls that all callbacks of a run may take.
pub const RUN_STEPS_MAX: u64 = 2_000_000_000;

/// Makes the host object from the glue, and takes away what differs from run to run. QuickJS keeps
/// the source's line of an error in the stack.
const START: &str = r#"
for (const name of ["Date", "performance", "WeakRef", "FinalizationRegistry", "console"]) {
  delete globalThis[name];
}
(host) => Object.defineProperty(globalThis, "schedlabHost", { value: Object.freeze(host) });
"#;
const LINE_OF: &str = r#"
(error) => {
  const place = /policy\.js:(\d+)/.exec((error && error.stack) || "");
  return place ? Number(place[1]) : 0;
}
"#;

/// The scheduler called `name` that the policy `source` describes.
///
/// # Errors
/// If the text is no policy, with the line of the mistake.
pub fn scheduler(name: &str, source: &str) -> Result<Scheduler, String> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(format!(
            "the policy has {} bytes: allowed are {SOURCE_BYTES_MAX}",
            source.len()
        ));
    }
    Script::new(source)?;
    let digest = digest(source);
    let source = source.to_owned();
    let made = user::scheduler(name, move || Script::new(&source));
    Ok(Scheduler {
        summary: "a policy in JavaScript".into(),
        source: name.to_owned().into(),
        digest: Some(SourceDigest::Policy(digest)),
        ..made
    })
}

/// The sum of a policy's text.
fn digest(source: &str) -> String {
    Sha256::digest(source).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A policy in an interpreter of its own.
struct Script {
    context: Context,
    /// Looks at the limits in the present callback, and before it.
    looks: Arc<AtomicU64>,
    looks_before: u64,
    has_ticks: bool,
}

impl Script {
    fn new(source: &str) -> Result<Self, String> {
        let internal = |error| format!("the interpreter of policies cannot start: {error}");
        let runtime = Runtime::new().map_err(internal)?;
        runtime.set_memory_limit(MEMORY_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed) >= CALL_STEPS_MAX / STEPS_PER_LOOK
        })));
        let context = Context::full(&runtime).map_err(internal)?;
        context.with(|js| start(&js)).map_err(|text| format!("the interpreter fails: {text}"))?;
        let mut script = Self { context, looks, looks_before: 0, has_ticks: false };
        script.read(source)?;
        script.has_ticks = script.call("hasTick", ())?;
        Ok(script)
    }

    /// Runs the text of the policy, which passes its callbacks.
    fn read(&mut self, source: &str) -> Result<(), String> {
        let read = self.context.with(|js| {
            let text = source.to_owned();
            let evaluate = Function::new(js.clone(), move |js: Ctx<'_>| {
                let mut options = EvalOptions::default();
                options.filename = Some(FILE.into());
                options.strict = true;
                js.eval_with_options::<(), _>(text.as_str(), options)
            });
            let host: Object<'_> = js.globals().get(HOST).map_err(|error| error.to_string())?;
            let read = || -> rquickjs::Result<()> {
                host.get::<_, Function<'_>>("read")?.call((evaluate?,))
            };
            read().catch(&js).map_err(|error| text_of(&host, error))
        });
        read.map_err(|text| self.limited("the policy's text", text))
    }

    /// Asks the host object, within the limits.
    fn call<A, T>(&mut self, name: &str, args: A) -> Result<T, String>
    where
        A: for<'js> IntoArgs<'js>,
        T: for<'js> FromJs<'js>,
    {
        let looks = self.looks.swap(0, Ordering::Relaxed);
        self.looks_before = self.looks_before.saturating_add(looks);
        if self.looks_before > RUN_STEPS_MAX / STEPS_PER_LOOK {
            return Err(format!(
                "the policy has taken {RUN_STEPS_MAX} steps in this run: no more are allowed"
            ));
        }
        let answer = self.context.with(|js| {
            let host: Object<'_> = js.globals().get(HOST).map_err(|error| error.to_string())?;
            let ask = || -> rquickjs::Result<T> {
                let mut all = Args::new_unsized(js.clone());
                args.into_args(&mut all)?;
                all.apply(&host.get::<_, Function<'_>>(name)?)
            };
            ask().catch(&js).map_err(|error| text_of(&host, error))
        });
        answer.map_err(|text| self.limited(name, text))
    }

    /// An answer of a callback. A negative one stands for the exception that the glue kept.
    fn ask(&mut self, name: &str, args: impl for<'js> IntoArgs<'js>) -> Result<f64, String> {
        let answer: f64 = self.call(name, args)?;
        if answer >= 0.0 {
            return Ok(answer);
        }
        let text = self.call("exception", ())?;
        Err(self.limited(name, text))
    }

    fn show(&mut self, now: Nanos, task: &TaskView) -> Result<(), String> {
        self.call("show", (task.id, task.name.clone(), script::numbers(task, now).to_vec()))
    }

    /// `text`, or which limit the policy has reached in `place`.
    fn limited(&self, place: &str, text: String) -> String {
        if self.looks.load(Ordering::Relaxed) > CALL_STEPS_MAX / STEPS_PER_LOOK {
            return format!(
                "{place} did not return after {CALL_STEPS_MAX} steps: look for an endless loop"
            );
        }
        // Without memory there is none for the error either.
        if matches!(text.as_str(), "null" | "undefined") || text.contains("out of memory") {
            return format!("{place} needs more than {} MiB of memory", MEMORY_BYTES_MAX >> 20);
        }
        text
    }
}

/// Sets up the interpreter.
fn start(js: &Ctx<'_>) -> Result<(), String> {
    let begin = || -> rquickjs::Result<()> {
        let glue: Function<'_> =
            js.eval(format!("(() => {{{GLUE}\nreturn schedlabPolicy; }})()"))?;
        let line_of: Function<'_> = js.eval(LINE_OF)?;
        let host: Object<'_> = glue.call((line_of,))?;
        js.eval::<Function<'_>, _>(START)?.call((host,))
    };
    begin().catch(js).map_err(|error| error.to_string())
}

/// The text of an exception with the line of the policy, as the page shows it.
fn text_of<'js>(host: &Object<'js>, error: CaughtError<'js>) -> String {
    let thrown = match error {
        CaughtError::Exception(exception) => exception.into_value(),
        CaughtError::Value(value) => value,
        CaughtError::Error(error) => return error.to_string(),
    };
    let shown = host.get::<_, Function<'_>>("textOf").and_then(|text| text.call((thrown,)));
    shown.unwrap_or_else(|_| "null".into())
}

impl UserPolicy for Script {
    fn seed(&mut self, seed: u64) {
        // It assigns a number, and cannot fail.
        let _: Result<(), String> = self.call("seed", (seed as u32,));
    }

    fn enqueue(&mut self, now: Nanos, task: &TaskView, why: Why) -> Result<bool, String> {
        self.show(now, task)?;
        self.ask("enqueue", (task.id, why.name())).map(|gives_way| gives_way > 0.0)
    }

    fn dequeue(&mut self, now: Nanos, task: &TaskView) -> Result<(), String> {
        self.show(now, task)?;
        self.ask("dequeue", (task.id,)).map(|_| ())
    }

    fn pick(&mut self, now: Nanos, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        let ids: Vec<u32> = waiting.iter().map(|task| task.0).collect();
        self.ask("pick", (cpu.0, ids, now as f64)).map(|id| TaskId(id as u32))
    }

    fn tick(&mut self, now: Nanos, task: &TaskView, ran: Nanos) -> Result<bool, String> {
        self.show(now, task)?;
        self.ask("tick", (task.id, ran as f64)).map(|ends| ends > 0.0)
    }

    fn has_ticks(&self) -> bool {
        self.has_ticks
    }

    fn quantum(&mut self, now: Nanos, task: &TaskView) -> Result<Option<Nanos>, String> {
        self.show(now, task)?;
        let ns = self.ask("quantum", (task.id,))?;
        Ok(script::quantum(ns))
    }
}

#[cfg(test)]
mod tests;
