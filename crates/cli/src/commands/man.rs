// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab man`: the manual pages, made from the same declarations as `--help`.

use crate::args::{Cli, ManArgs};
use crate::error::CliResult;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use schedlab_run::file::{FileError, write_whole};
use std::path::Path;

/// What a page's foot names.
const SOURCE: &str = concat!("schedlab ", env!("CARGO_PKG_VERSION"));

/// Writes `schedlab.1`, and `schedlab-COMMAND.1` for each command, into the directory.
pub fn write(args: &ManArgs) -> CliResult<()> {
    std::fs::create_dir_all(&args.dir).map_err(|source| FileError {
        what: "make",
        path: args.dir.clone(),
        source,
    })?;
    // `help` is a page of its own to clap, and says nothing that the others do not.
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    write_page(program.clone(), &args.dir)?;
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_page(command.clone(), &args.dir)?;
    }
    Ok(())
}

fn write_page(command: Command, dir: &Path) -> CliResult<()> {
    // A page is long help: it describes what `-h` leaves out too.
    let command = command.mut_args(|arg| arg.hide_short_help(false));
    let has_examples = command.get_after_long_help().is_some();
    let has_commands = command.has_subcommands();
    let man = Man::new(command).manual("schedlab").source(SOURCE);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    if has_examples {
        page.extend_from_slice(&examples(&man)?);
    }
    Ok(write_whole(&dir.join(man.get_filename()), &page)?)
}

/// The section of examples, line by line as it was written: clap fills and justifies its lines.
fn examples(man: &Man) -> CliResult<Vec<u8>> {
    let mut section = Vec::new();
    man.render_extra_section(&mut section)?;
    let text = String::from_utf8_lossy(&section);
    let text = text.replacen(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n", 1);
    let text = text.replacen(".SH EXTRA\n", ".SH NOTES\n.nf\n", 1);
    Ok(format!("{text}.fi\n").into_bytes())
}
