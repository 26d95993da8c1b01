// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes workloads from their names and texts, and applies what a request changes in all tasks.

use crate::Error;
use schedlab_model::{Policy, Workload};
use schedlab_run::{Warning, policy, workload_file};
use schedlab_workload::{WorkloadName, builtin};
use std::collections::BTreeMap;

/// Where a workload comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source<'t> {
    /// A built-in with the parameters of its name.
    Builtin(&'t str, Vec<(&'t str, &'t str)>),
    /// A file: its name, for results and errors, and its text.
    File {
        /// Name.
        name: &'t str,
        /// Text.
        text: &'t str,
    },
}

impl<'t> Source<'t> {
    /// Distinguishes the text of a workload file, which has a brace, from the name of a built-in.
    /// The file is called `name`.
    ///
    /// # Errors
    /// If the text is the path of a file, or has a parameter without a value.
    pub fn of_text(text: &'t str, name: &'t str) -> Result<Self, Error> {
        if text.contains('{') {
            return Ok(Self::File { name, text });
        }
        match WorkloadName::parse(text)? {
            WorkloadName::Builtin(name, given) => Ok(Self::Builtin(name, given)),
            WorkloadName::File(path) => Err(Error::usage(
                format!("{} is the path of a file", path.display()),
                "give the text of the file; `schedlab sim` reads files",
            )),
        }
    }
}

/// What a request changes in a workload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes<'t> {
    /// Parameters of a built-in, in addition to those of its name.
    pub params: Vec<(&'t str, &'t str)>,
    /// Policy of tasks that name none.
    pub policy: Option<Policy>,
    /// Real-time priority for such a policy.
    pub priority: Option<u8>,
    /// Nice value of tasks that set none.
    pub nice: Option<i8>,
}

/// A workload and the parameters that made it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The workload, with all changes applied.
    pub workload: Workload,
    /// The given parameters, for the result.
    pub parameters: BTreeMap<String, String>,
    /// Warnings about entries of the file that have no effect.
    pub warnings: Vec<Warning>,
}

/// Makes the workload for a machine of `nr_cpus` CPUs: files refer to CPUs.
pub fn make(source: Source<'_>, changes: &Changes<'_>, nr_cpus: u32) -> Result<Named, Error> {
    let mut parameters = Vec::new();
    let mut warnings = Vec::new();
    let mut workload = match source {
        Source::Builtin(name, given) => {
            parameters.extend(given.into_iter().chain(changes.params.iter().copied()));
            builtin(name, &parameters)?
        }
        Source::File { name, .. } if !changes.params.is_empty() => {
            return Err(Error::usage(
                format!("--param is given, but {name} is a file"),
                "parameters belong to built-in workloads; change the file instead",
            ));
        }
        Source::File { name, text } => workload_file::read(name, text, nr_cpus, &mut warnings)?,
    };
    if let Some(nice) = changes.nice {
        policy::apply_nice(&mut workload, nice);
    }
    if let Some(policy) = changes.policy {
        if policy == Policy::Deadline {
            return Err(Error::usage(
                "--policy deadline needs a runtime and a period for each task",
                "write them into an rt-app file (dl-runtime, dl-period)",
            ));
        }
        let priority = changes.priority.unwrap_or(policy::RT_PRIORITY_DEFAULT);
        policy::apply_policy(&mut workload, policy, priority);
    }
    let owned = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    Ok(Named { workload, parameters: parameters.into_iter().map(owned).collect(), warnings })
}
