// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's control protocol (docs/interop/qmp-spec.rst): lines of JSON in both directions. Only what
//! a snapshot needs: commands, and waiting for an event or a state.

use crate::VmError;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A connection to a machine.
#[derive(Debug)]
pub struct Qmp {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
    is_greeted: bool,
    /// Events that arrived while waiting for an answer.
    events: Vec<String>,
}

/// Longest time between two queries of a state. Events about it arrive earlier.
const LOOK: Duration = Duration::from_millis(20);

fn wrong(what: impl std::fmt::Display) -> VmError {
    VmError::System(format!("QEMU's control connection: {what}"))
}

impl Qmp {
    /// Uses the host's end of a pair of sockets.
    pub fn new(stream: UnixStream) -> Result<Self, VmError> {
        let lines = BufReader::new(stream.try_clone().map_err(wrong)?);
        Ok(Self { stream, lines, is_greeted: false, events: Vec::new() })
    }

    /// The next message; `None` if none arrived in time.
    fn message(&mut self, until: Instant) -> Result<Option<Value>, VmError> {
        let mut line = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(wrong)?;
            match self.lines.read_line(&mut line) {
                Ok(0) => return Err(wrong("it was closed: QEMU has ended")),
                Ok(_) => return serde_json::from_str(&line).map(Some).map_err(wrong),
                // The part of the line that was read stays in it.
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(error) => return Err(wrong(error)),
            }
        }
    }

    /// Sends a command and returns its result.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value, VmError> {
        if !self.is_greeted {
            self.is_greeted = true;
            self.execute("qmp_capabilities", json!({}))?;
        }
        let line = format!("{}\n", json!({ "execute": command, "arguments": arguments }));
        self.stream.write_all(line.as_bytes()).map_err(wrong)?;
        let until = Instant::now() + Duration::from_secs(30);
        while let Some(message) = self.message(until)? {
            if let Some(name) = message["event"].as_str() {
                self.events.push(name.to_owned());
            } else if let Some(error) = message.get("error") {
                return Err(wrong(format!("{command}: {}", error["desc"].as_str().unwrap_or("?"))));
            } else if let Some(value) = message.get("return") {
                return Ok(value.clone());
            }
        }
        Err(wrong(format!("{command} was not answered within 30 s")))
    }

    /// Waits for an event. Returns false if it did not arrive in time.
    pub fn wait_event(&mut self, name: &str, limit: Duration) -> Result<bool, VmError> {
        if !self.is_greeted {
            // Capabilities are first; their answer collects the events.
            self.execute("query-status", json!({}))?;
        }
        let until = Instant::now() + limit;
        loop {
            if let Some(at) = self.events.iter().position(|event| event == name) {
                self.events.remove(at);
                return Ok(true);
            }
            let Some(message) = self.message(until)? else { return Ok(false) };
            if let Some(event) = message["event"].as_str() {
                self.events.push(event.to_owned());
            }
        }
    }

    /// Waits until the present migration, in either direction, is done.
    pub fn wait_migration(&mut self, limit: Duration) -> Result<(), VmError> {
        let until = Instant::now() + limit;
        while Instant::now() < until {
            let found = self.execute("query-migrate", json!({}))?;
            match found["status"].as_str() {
                Some("completed") => return Ok(()),
                Some(status @ ("failed" | "cancelled")) => {
                    let why = found["error-desc"].as_str().unwrap_or("no reason given");
                    return Err(wrong(format!("the snapshot {status}: {why}")));
                }
                _ => {
                    self.wait_event("MIGRATION", LOOK)?;
                }
            }
        }
        Err(wrong("the snapshot was not complete in time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that greets, accepts, sends events and fails at one command.
    fn machine(stream: UnixStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        let mut say = |text: &str| stream.write_all(text.as_bytes()).unwrap();
        say("{\"QMP\": {}}\r\n");
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            let command: Value = serde_json::from_str(&line).unwrap();
            match command["execute"].as_str().unwrap() {
                "bad" => say("{\"error\": {\"desc\": \"no such thing\"}}\r\n"),
                "query-migrate" => say("{\"return\": {\"status\": \"completed\"}}\r\n"),
                _ => say("{\"event\": \"STOP\"}\r\n{\"return\": {\"x\": 1}}\r\n"),
            }
            line.clear();
        }
    }

    #[test]
    fn commands_events_and_errors_are_told_apart() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let other = std::thread::spawn(|| machine(theirs));
        let mut qmp = Qmp::new(ours).unwrap();
        assert_eq!(qmp.execute("x", json!({})).unwrap()["x"], 1);
        assert!(qmp.wait_event("STOP", Duration::from_secs(5)).unwrap());
        let error = qmp.execute("bad", json!({})).unwrap_err().to_string();
        assert!(error.contains("bad: no such thing"), "{error}");
        qmp.wait_migration(Duration::from_secs(5)).unwrap();
        assert!(!qmp.wait_event("RESUME", Duration::from_millis(10)).unwrap());
        drop(qmp);
        other.join().unwrap();
    }

    #[test]
    fn a_machine_that_ends_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let error = Qmp::new(ours).unwrap().execute("x", json!({})).unwrap_err();
        assert!(error.to_string().contains("control connection"), "{error}");
    }
}
