// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the program and their exit codes. Every text says what was found, what is allowed and
//! what to do. Errors go to stderr, because stdout holds data only.

use crate::output::{printable, say, say_coloured};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use schedlab_core::Kind;
use schedlab_lab::LabError;
use schedlab_run::file::{self, FileError, TextError, is_full};
use schedlab_run::workload_file::WorkloadFileError;
use schedlab_run::{LaneError, StudyError};
use schedlab_workload::NotAPair;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Exit codes. Scripts rely on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// A check failed: a scheduler lost or starved a task, a trace contradicts itself.
    Check = 1,
    /// Bad usage or bad input.
    Usage = 2,
    /// This machine cannot do it.
    Unavailable = 3,
}

/// Exit code of a program that Ctrl-C ended, as shells report it.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum CliError {
    /// An error to print.
    Report {
        /// Exit code.
        exit: Exit,
        /// The error itself.
        diagnostic: Box<dyn Diagnostic + Send + Sync + 'static>,
    },
    /// The command has already printed everything; only the exit code is left.
    Silent(Exit),
    /// The reader of stdout has closed the pipe, as `| head` does. This is not an error.
    BrokenPipe,
}

/// Result of a command.
pub type CliResult<T> = Result<T, CliError>;

/// An error text with advice.
#[derive(Debug)]
struct Text {
    text: String,
    help: Option<String>,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Text {}

impl Diagnostic for Text {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

impl CliError {
    /// Makes an error with advice; an empty `help` is left out.
    pub fn new(exit: Exit, text: impl Into<String>, help: impl Into<String>) -> Self {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        Self::Report { exit, diagnostic: Box::new(Text { text: text.into(), help }) }
    }

    /// Makes an error about usage or input.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text, "")
    }

    /// Makes an error about usage or input, with advice.
    pub fn usage_help(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(Exit::Usage, text, help)
    }

    /// Makes an error about a file that cannot be read or written.
    pub fn file(what: &str, path: &std::path::Path, error: &io::Error) -> Self {
        let exit = if is_full(error) { Exit::Unavailable } else { Exit::Usage };
        let text = format!("cannot {what} {}: {error}", path.display());
        Self::new(exit, text, file::help(error))
    }

    /// The exit code; `None`: the reader has gone.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::Report { exit, .. } | Self::Silent(exit) => Some(*exit),
            Self::BrokenPipe => None,
        }
    }

    /// The text and the advice on one line, for use within another error.
    pub fn text(&self) -> String {
        match self {
            Self::Report { diagnostic, .. } => match diagnostic.help() {
                Some(help) => format!("{diagnostic}; {help}"),
                None => diagnostic.to_string(),
            },
            Self::Silent(_) | Self::BrokenPipe => String::new(),
        }
    }

    /// Prints the error and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Report { exit, diagnostic } => {
                let plain = render(&*diagnostic, false);
                let is_safe = matches!(printable(&plain), Cow::Borrowed(_));
                match is_safe && io::stderr().is_terminal() {
                    true => say_coloured(&render(&*diagnostic, true)),
                    false => say(plain),
                }
                ExitCode::from(exit as u8)
            }
            Self::Silent(exit) => ExitCode::from(exit as u8),
            Self::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

/// Renders the error: in colour on a terminal, plain otherwise.
fn render(diagnostic: &dyn Diagnostic, terminal: bool) -> String {
    let colour = terminal && std::env::var_os("NO_COLOR").is_none();
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        .with_links(false)
        // Do not split names at their hyphens: users copy them.
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_context_lines(1);
    let mut text = String::new();
    match handler.render_report(&mut text, diagnostic) {
        Ok(()) => format!("Error:{}", text.trim_end()),
        // Formatting into a String fails only if a Display does; then print the plain text.
        Err(fmt::Error) => format!("Error: {diagnostic}"),
    }
}

/// Prints clap's messages: help and versions on stdout, usage errors on stderr.
pub fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        _ if error.use_stderr() => ExitCode::from(Exit::Usage as u8),
        Err(error) => CliError::from(error).report(),
        Ok(()) => ExitCode::SUCCESS,
    }
}

impl From<LaneError> for CliError {
    fn from(error: LaneError) -> Self {
        match error {
            LaneError::Input(text) => Self::new(Exit::Usage, text, ""),
            LaneError::Unavailable(text) => Self::new(
                Exit::Unavailable,
                text,
                "`schedlab doctor` shows what this machine can do",
            ),
            LaneError::Check(text) => Self::new(Exit::Check, text, ""),
            LaneError::System(text) => Self::new(Exit::Unavailable, text, ""),
        }
    }
}

impl From<schedlab_core::Error> for CliError {
    fn from(error: schedlab_core::Error) -> Self {
        let exit = match error.kind {
            Kind::Check => Exit::Check,
            Kind::Usage => Exit::Usage,
            Kind::Unavailable | Kind::Cancelled => Exit::Unavailable,
        };
        match error.place {
            Some(place) => Self::Report { exit, diagnostic: place },
            None => Self::new(exit, error.text, error.help),
        }
    }
}

impl From<WorkloadFileError> for CliError {
    fn from(error: WorkloadFileError) -> Self {
        LabError::from(error).into()
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        Self::usage_help(error.text, error.help)
    }
}

impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Refused { text, help } => Self::usage_help(text, help),
            LabError::Placed(error) => Self::Report { exit: Exit::Usage, diagnostic: error },
            LabError::File(error) => error.into(),
            LabError::Locked(_) => Self::new(Exit::Unavailable, error.to_string(), error.help()),
        }
    }
}

impl From<TextError> for CliError {
    fn from(error: TextError) -> Self {
        LabError::from(error).into()
    }
}

impl From<NotAPair> for CliError {
    fn from(error: NotAPair) -> Self {
        LabError::from(error).into()
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        if error.what == "write" && error.source.kind() == io::ErrorKind::IsADirectory {
            let text = format!("cannot write {}: it is a directory", error.path.display());
            return Self::usage_help(text, "give the name of a file");
        }
        Self::file(error.what, &error.path, &error.source)
    }
}

impl From<io::Error> for CliError {
    /// Converts errors of stdout. Files have their own text ([`CliError::file`]).
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::new(
                Exit::Unavailable,
                format!("cannot write the output: {error}"),
                "check that the disk is not full",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_text_and_advice() {
        let CliError::Report { diagnostic, exit } =
            CliError::usage_help("no scheduler is called \"x\"", "see `schedlab list`")
        else {
            panic!("expected a report");
        };
        assert_eq!(exit, Exit::Usage);
        let text = render(&*diagnostic, false);
        assert!(text.starts_with("Error:") && text.contains("no scheduler is called"), "{text}");
        assert!(text.contains("help: see `schedlab list`"), "{text}");
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let error = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(CliError::from(error), CliError::BrokenPipe));
    }
}
