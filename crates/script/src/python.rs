// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedulers written in Python, as the Python package has them, each in a process of its own.
//!
//! Python cannot be kept from files, processes and the network from inside. So the kernel does it:
//! before the process reads the policy, it gives up every system call but those that memory and its
//! one socket need (seccomp), and every later change of that. `policy.py` is what runs there.
//!
//! Hashes and `random` have fixed seeds, and modules with clocks cannot be imported, so that marks
//! are the same on every machine. A clock needs no system call: who reads one by a trick gets marks
//! that change, and nothing else.

use schedlab_model::{CpuId, Nanos, TaskId};
use schedlab_sched::textbook::user::{self, TaskView, UserPolicy, Why};
use schedlab_sched::{Scheduler, SourceDigest};
use serde_json::{Value, json};
use std::env;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What runs in the process.
const GLUE: &str = include_str!("policy.py");

/// Environment variable that names the interpreter.
pub const INTERPRETER: &str = "SCHEDLAB_PYTHON";

/// Processor time of a policy in one run, in seconds.
pub const SECONDS_MAX: u64 = 10;

/// Address space of the process, in bytes.
pub const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// Longest wait for an answer: a policy that waits for ever takes no processor time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 16;

/// Signals of the kernel that end a process at its limits of time, and where its stack ends.
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;

/// Why there is no scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// This machine has no Python, or cannot lock up its process.
    Unavailable(String),
    /// The text is no policy.
    Policy(String),
}

/// The scheduler called `name` that the policy `source` describes.
///
/// # Errors
/// If the text is no policy, with the line of the mistake, or if this machine cannot run one.
pub fn scheduler(name: &str, source: &str) -> Result<Scheduler, Error> {
    if source.len() > crate::SOURCE_BYTES_MAX {
        let (found, most) = (source.len(), crate::SOURCE_BYTES_MAX);
        return Err(Error::Policy(format!("the policy has {found} bytes: allowed are {most}")));
    }
    Process::new(source)?;
    let digest = crate::digest(source);
    let source = source.to_owned();
    let made = user::scheduler(name, move || {
        Process::new(&source).map_err(|error| match error {
            Error::Unavailable(text) | Error::Policy(text) => text,
        })
    });
    Ok(Scheduler {
        summary: "a policy in Python".into(),
        source: name.to_owned().into(),
        digest: Some(SourceDigest::Policy(digest)),
        ..made
    })
}

/// A policy in its process.
struct Process {
    child: Child,
    questions: UnixStream,
    answers: BufReader<UnixStream>,
    callbacks: Vec<String>,
}

impl Process {
    fn new(source: &str) -> Result<Self, Error> {
        let unavailable = |what: &str, text: &str| {
            Error::Unavailable(format!(
                "{what}: {text}. Policies in Python need Python 3.9 or later"
            ))
        };
        let interpreter = env::var(INTERPRETER).unwrap_or_else(|_| "python3".into());
        let (own, theirs) = UnixStream::pair()
            .map_err(|error| unavailable("no socket can be made", &error.to_string()))?;
        let spawned = theirs.try_clone().and_then(|other| spawn(&interpreter, theirs, other));
        let child = spawned.map_err(|error| unavailable(&interpreter, &error.to_string()))?;
        let limited = own.set_read_timeout(Some(ANSWER_TIMEOUT)).and_then(|()| own.try_clone());
        let questions =
            limited.map_err(|error| unavailable("the socket fails", &error.to_string()))?;
        let mut made = Self { child, questions, answers: BufReader::new(own), callbacks: vec![] };
        let ready = made.receive("Python").map_err(|text| unavailable(&interpreter, &text))?;
        if let Some(why) = ready.get(1).and_then(Value::as_str) {
            return Err(unavailable("this machine cannot lock up a policy in Python", why));
        }
        let names = made.ask("the policy", &json!(source)).map_err(Error::Policy)?;
        let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
        made.callbacks = names.iter().filter_map(Value::as_str).map(String::from).collect();
        Ok(made)
    }

    fn has(&self, name: &str) -> bool {
        self.callbacks.iter().any(|known| known == name)
    }

    fn ask(&mut self, place: &str, question: &Value) -> Result<Value, String> {
        let mut line = question.to_string();
        line.push('\n');
        // If the process has ended, receiving tells why.
        let _: std::io::Result<()> = self.questions.write_all(line.as_bytes());
        let answer = self.receive(place)?;
        match answer.get("error").and_then(Value::as_str) {
            Some(text) => Err(text.to_owned()),
            None => Ok(answer),
        }
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        let mut question = vec![json!(name)];
        question.extend_from_slice(arguments);
        self.ask(name, &Value::Array(question))
    }

    /// A yes or no.
    fn says(&mut self, name: &str, arguments: &[Value]) -> Result<bool, String> {
        self.call(name, arguments).map(|answer| answer == 1)
    }

    /// The next answer.
    fn receive(&mut self, place: &str) -> Result<Value, String> {
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.answers, ANSWER_BYTES_MAX);
        match limited.read_until(b'\n', &mut line) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let seconds = ANSWER_TIMEOUT.as_secs();
                return Err(format!("{place} did not return within {seconds} s"));
            }
            Ok(bytes) if bytes > 0 => {}
            _ => return Err(self.ended(place)),
        }
        serde_json::from_slice(&line)
            .map_err(|_| format!("{place} wrote to the descriptor of its answers"))
    }

    /// Why the process has ended.
    fn ended(&mut self, place: &str) -> String {
        let Ok(status) = self.child.wait() else { return format!("{place} ended its process") };
        match status.signal() {
            Some(SIGKILL | SIGXCPU) => format!(
                "{place} took more than {SECONDS_MAX} s of processor time: look for an endless loop"
            ),
            Some(SIGSEGV) => format!("{place} overflowed the stack"),
            _ => format!("{place} ended its process ({status})"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, and nothing can be done if it cannot be ended.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<_> = self.child.wait();
    }
}

/// Starts the interpreter with the socket as its standard input and output.
fn spawn(interpreter: &str, input: UnixStream, output: UnixStream) -> std::io::Result<Child> {
    let mut command = Command::new(interpreter);
    command.args(["-S", "-s", "-B", "-c", GLUE]);
    command.args([SECONDS_MAX, MEMORY_BYTES_MAX].map(|limit| limit.to_string()));
    command.env_clear().env("PYTHONHASHSEED", "0").env("LC_ALL", "C.UTF-8");
    command.envs(env::vars_os().filter(|(name, _)| name == "PATH")).current_dir("/");
    command.stdin(Stdio::from(OwnedFd::from(input)));
    command.stdout(Stdio::from(OwnedFd::from(output)));
    command.stderr(Stdio::null()).spawn()
}

/// A task as the process takes it.
fn fields(task: &TaskView) -> Value {
    json!([
        task.id,
        task.name,
        task.nice,
        task.policy.name(),
        task.prio,
        task.cpu,
        task.ran_ns,
        task.released_ns
    ])
}

impl UserPolicy for Process {
    fn seed(&mut self, seed: u64) {
        // It assigns a number; a process that has ended is found by the next question.
        let _: Result<Value, String> = self.call("seed", &[json!(seed)]);
    }

    fn enqueue(&mut self, now: Nanos, task: &TaskView, why: Why) -> Result<bool, String> {
        match self.has("enqueue") {
            true => self.says("enqueue", &[fields(task), json!(now), json!(why.name())]),
            false => Ok(false),
        }
    }

    fn dequeue(&mut self, now: Nanos, task: &TaskView) -> Result<(), String> {
        match self.has("dequeue") {
            true => self.call("dequeue", &[fields(task), json!(now)]).map(|_| ()),
            false => Ok(()),
        }
    }

    fn pick(&mut self, now: Nanos, cpu: CpuId, waiting: &[TaskId]) -> Result<TaskId, String> {
        let ids: Vec<u32> = waiting.iter().map(|task| task.0).collect();
        let picked = self.call("pick", &[json!(cpu.0), json!(now), json!(ids)])?;
        let picked = picked.as_u64().and_then(|id| u32::try_from(id).ok());
        picked.map(TaskId).ok_or_else(|| "pick wrote to the descriptor of its answers".into())
    }

    fn tick(&mut self, now: Nanos, task: &TaskView, ran: Nanos) -> Result<bool, String> {
        self.says("tick", &[fields(task), json!(now), json!(ran)])
    }

    fn has_ticks(&self) -> bool {
        self.has("tick")
    }

    fn quantum(&mut self, _now: Nanos, task: &TaskView) -> Result<Option<Nanos>, String> {
        match self.has("quantum") {
            true => self.call("quantum", &[fields(task)]).map(|answer| answer.as_u64()),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
