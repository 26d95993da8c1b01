// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defaults of options from the user's configuration file: `$SCHEDLAB_CONFIG`, else
//! `$XDG_CONFIG_HOME/schedlab/config.toml`, else `~/.config/schedlab/config.toml`.
//!
//! ```toml
//! hz = 1000                      # for every command that has --hz
//! [sim]
//! scheduler = ["linux-6.12", "rr"]
//! ```
//!
//! The command line overrides the file. The program prints the options from the file on stderr, so
//! that a user can repeat a run without it.

use crate::error::{CliError, CliResult};
use crate::output::say;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command};
use schedlab_lab::studies::FILE_BYTES_MAX;
use schedlab_model::suggest;
use schedlab_run::file::read_text;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The environment variable that names the file. If it is empty, there is none.
pub const VARIABLE: &str = "SCHEDLAB_CONFIG";

/// Path of the file, if it exists. A file named by `$SCHEDLAB_CONFIG` must exist.
fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if std::env::var_os(VARIABLE).is_some() {
        return set(VARIABLE);
    }
    let home = || set("HOME").map(|home| home.join(".config"));
    let path = set("XDG_CONFIG_HOME").or_else(home)?.join("schedlab/config.toml");
    path.is_file().then_some(path)
}

/// Adds the defaults of the user's file for the subcommand in `argv`. Returns `argv` unchanged if
/// there is no file, or if clap refuses `argv` anyway.
pub fn with_defaults(command: &Command, argv: Vec<OsString>) -> CliResult<Vec<OsString>> {
    let Some(path) = path() else { return Ok(argv) };
    let text = read_text(&path, FILE_BYTES_MAX)?;
    with_defaults_of(command, argv, &path, &text)
}

fn with_defaults_of(
    command: &Command,
    argv: Vec<OsString>,
    path: &Path,
    text: &str,
) -> CliResult<Vec<OsString>> {
    let wrong = |what: String, help: &str| {
        CliError::usage_help(format!("{}: {what}", path.display()), help.to_owned())
    };
    let file: Table = toml::from_str(text)
        .map_err(|error| wrong(error.to_string(), "the file is TOML: name = value"))?;
    let Ok(matches) = command.clone().try_get_matches_from(&argv) else { return Ok(argv) };
    let Some((name, given)) = matches.subcommand() else { return Ok(argv) };
    check(command, &file).map_err(|what| wrong(what, "`schedlab COMMAND --help` lists options"))?;
    let Some(own) = command.find_subcommand(name) else { return Ok(argv) };
    let general = file.iter().filter(|(_, value)| !value.is_table());
    let special = file.get(name).and_then(Value::as_table).into_iter().flatten();
    let mut words = argv;
    let mut said = Vec::new();
    // A command's own section overrides the keys for all commands.
    let mut done: Vec<&String> = Vec::new();
    for (key, value) in special.chain(general) {
        let Some(option) = option(own, key).filter(|_| !done.contains(&key)) else {
            continue;
        };
        done.push(key);
        if given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        let added = written(option, key, value).map_err(|what| wrong(what, ""))?;
        // The name of the subcommand is the word after the program's name.
        let mut longer = words.clone();
        let end = 2 + said.len();
        longer.splice(end..end, added.iter().map(OsString::from));
        match command.clone().try_get_matches_from(&longer) {
            Ok(_) => {
                words = longer;
                said.extend(added);
            }
            // This default conflicts with an option on the command line.
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
            Err(error) => {
                let text = error.to_string();
                let text = text.trim_start_matches("error: ").lines().next().unwrap_or_default();
                return Err(wrong(format!("`{key}`: {text}"), "correct it there, or remove it"));
            }
        }
    }
    if !said.is_empty() {
        say(format!("note: {} adds {}", path.display(), said.join(" ")));
    }
    Ok(words)
}

/// The option `--key` of a command.
fn option<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    command.get_opts().chain(flags(command)).find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(key) || aliases.contains(&key)
    })
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| matches!(arg.get_action(), ArgAction::SetTrue))
}

/// Refuses keys that no command would read.
fn check(command: &Command, file: &Table) -> Result<(), String> {
    let names = || command.get_subcommands().map(Command::get_name);
    let is_known = |key| command.get_subcommands().any(|own| option(own, key).is_some());
    for (key, value) in file {
        let Some(table) = value.as_table() else {
            if !is_known(key) {
                return Err(format!("no command has an option --{key}"));
            }
            continue;
        };
        let Some(own) = command.find_subcommand(key) else {
            let guess = suggest::nearest(key, names())
                .map_or_else(String::new, |name| format!(": did you mean `{name}`?"));
            return Err(format!("there is no command {key:?}{guess}"));
        };
        if let Some(other) = table.keys().find(|key| option(own, key).is_none()) {
            return Err(format!("`schedlab {key}` has no option --{other}"));
        }
    }
    Ok(())
}

/// An option with its value as command-line words.
fn written(option: &Arg, key: &str, value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(format!(
            "`{key}` is a {}: expected a text, a number or a list of them",
            value.type_str()
        )),
    };
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{key}")]),
            Value::Boolean(false) => Ok(Vec::new()),
            _ => Err(format!("`{key}` is a {}: expected true or false", value.type_str())),
        };
    }
    let values = match value {
        Value::Array(values) => values.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        value => vec![text(value)?],
    };
    match option.get_value_delimiter() {
        Some(delimiter) => Ok(vec![format!("--{key}={}", values.join(&delimiter.to_string()))]),
        None => Ok(values.iter().map(|value| format!("--{key}={value}")).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn read(line: &str, text: &str) -> Result<String, String> {
        let argv = line.split(' ').map(OsString::from).collect();
        let words = with_defaults_of(&Cli::command(), argv, Path::new("c.toml"), text);
        let words = words.map_err(|error| error.text())?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_file_adds_what_the_command_line_leaves_open() {
        let file = "hz = 1000\nno-such = 1";
        assert!(read("schedlab sim hogs", file).unwrap_err().contains("--no-such"));
        let file = "hz = 1000\ncpus = 2\n[sim]\nscheduler = ['rr', 'fcfs']\ncpus = 4\njson = true";
        assert_eq!(
            read("schedlab sim hogs", file).unwrap(),
            "schedlab sim --cpus=4 --json --scheduler=rr,fcfs --hz=1000 hogs"
        );
        let chosen = read("schedlab sim hogs --cpus 1 -S rr", file).unwrap();
        assert_eq!(chosen, "schedlab sim --json --hz=1000 hogs --cpus 1 -S rr");
        assert_eq!(read("schedlab doctor", file).unwrap(), "schedlab doctor");
        let without = read("schedlab sim hogs --slices", file).unwrap();
        assert!(!without.contains("--json"), "{without}: --slices and --json exclude each other");
    }

    #[test]
    fn a_wrong_file_is_refused_by_name() {
        for (text, wanted) in [
            ("hz = ", "c.toml"),
            ("hz = 251", "`hz`"),
            ("hz = { a = 1 }", "no command \"hz\""),
            ("[sin]\nhz = 250", "did you mean `sim`?"),
            ("[sim]\nhost = 'OTHER'", "has no option --host"),
            ("json = 1", "true or false"),
        ] {
            let error = read("schedlab sim hogs", text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("c.toml"), "{text}: {error}");
        }
        assert!(read("schedlab sim", "hz = 251").is_ok(), "clap's own error comes first");
    }
}
