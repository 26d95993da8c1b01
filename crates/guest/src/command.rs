// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program that loads a sched_ext scheduler and stays: started before a run, interrupted after
//! it.

use schedlab_guest::protocol::SchedulerCommand;
use schedlab_host::ext;
use schedlab_run::LaneError;
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest time until the kernel has enabled its scheduler.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Longest time until it has ended after SIGINT.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// Time between two looks at it.
const GLANCE: Duration = Duration::from_millis(50);
/// What it writes to stdout and stderr.
const OUTPUT: &str = "/tmp/scheduler.output";
/// Last lines of that which an error shows.
const LINES_SHOWN: usize = 15;

/// A program whose scheduler the kernel has enabled.
pub struct Running {
    child: Child,
    name: String,
    /// Name and number of the scheduler that it loaded.
    loaded: (String, u64),
}

impl Running {
    /// Unpacks and starts the program, and waits until its scheduler is enabled.
    pub fn start(command: SchedulerCommand) -> Result<Self, LaneError> {
        let name = command.argv.first().cloned().unwrap_or_default();
        let failed = |what: &str, error: io::Error| {
            LaneError::System(format!("scheduler command {name}: {what}: {error}"))
        };
        for file in &command.files {
            unpack(Path::new(&file.path), &file.content).map_err(|e| failed(&file.path, e))?;
        }
        let output = File::create(OUTPUT).map_err(|e| failed(OUTPUT, e))?;
        let errors = output.try_clone().map_err(|e| failed(OUTPUT, e))?;
        let libraries: BTreeSet<&str> = command
            .files
            .iter()
            .filter_map(|file| Path::new(&file.path).parent()?.to_str())
            .collect();
        let libraries: Vec<&str> = libraries.into_iter().collect();
        let child = Command::new(&name)
            .args(command.argv.iter().skip(1))
            .env_clear()
            .envs([("PATH", "/"), ("HOME", "/"), ("LD_LIBRARY_PATH", &libraries.join(":"))])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|e| failed("starting it", e))?;
        drop(command);
        let mut this = Self { child, name, loaded: Default::default() };
        this.wait_enabled()?;
        Ok(this)
    }

    fn wait_enabled(&mut self) -> Result<(), LaneError> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Err(self.error(&format!("ended before it was loaded ({status})")));
            }
            let state = ext::kernel_state().unwrap_or_default();
            if state.state == "enabled" && !state.ops.is_empty() {
                self.loaded = (state.ops, state.enable_seq);
                return Ok(());
            }
            if since.elapsed() > START_LIMIT {
                let text = format!("loaded nothing within {} s", START_LIMIT.as_secs());
                return Err(self.error(&text));
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Checks that the scheduler is still enabled. If the kernel ejected it, the kernel's own class
    /// did the rest of the run; if the program loaded it again, there was a gap.
    pub fn check(&mut self) -> Result<(), LaneError> {
        if let Some(status) = self.ended() {
            return Err(self.error(&format!("ended during the run ({status})")));
        }
        let state = ext::kernel_state().unwrap_or_default();
        if state.state == "enabled"
            && (&state.ops, state.enable_seq) == (&self.loaded.0, self.loaded.1)
        {
            return Ok(());
        }
        let text = format!("its scheduler {} did not stay loaded during the run", self.loaded.0);
        Err(self.error(&text))
    }

    /// Interrupts the program as Ctrl-C does, and waits for its end.
    pub fn stop(mut self) -> Result<(), LaneError> {
        // SAFETY: a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGINT) };
        let since = Instant::now();
        while self.ended().is_none() {
            if since.elapsed() > STOP_LIMIT {
                let text = format!("did not end within {} s of SIGINT", STOP_LIMIT.as_secs());
                return Err(self.error(&text));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// An error with the last lines that the program wrote.
    fn error(&self, what: &str) -> LaneError {
        let output = fs::read(OUTPUT).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = match &lines[lines.len().saturating_sub(LINES_SHOWN)..] {
            [] => "; it wrote nothing".into(),
            lines => format!("; it wrote:\n    {}", lines.join("\n    ")),
        };
        LaneError::Check(format!("scheduler command {} {what}{shown}", self.name))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended; then both calls fail and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a program or a library.
fn unpack(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}
