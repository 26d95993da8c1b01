// SPDX-License-Identifier: MIT OR Apache-2.0
//! `schedlab attach`: shows a running task, or changes its policy.

use crate::error::{CliError, CliResult};
use crate::output::Out;
use crate::table::{self, duration};
use clap::Args;
use schedlab_host::inspect::{self, Change, TaskView};
use schedlab_host::{HostError, procfs};
use schedlab_model::Policy;
use schedlab_run::LaneError;

/// Arguments of `attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Process or thread id
    #[arg(required_unless_present = "list", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// New policy: other, batch, idle, fifo, rr, ext
    #[arg(long, value_parser = crate::input::policy)]
    pub policy: Option<Policy>,
    /// New real-time priority, 1 to 99, for fifo and rr
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub priority: Option<u8>,
    /// New nice value, -20 to 19, for other, batch and ext
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i8).range(-20..=19),
          allow_hyphen_values = true)]
    pub nice: Option<i8>,
    /// Change every thread of the process
    #[arg(long)]
    pub threads: bool,
    /// List the policies of this kernel
    #[arg(long, conflicts_with_all = ["pid", "policy", "priority", "nice", "threads"])]
    pub list: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn attach(args: &AttachArgs, out: &mut Out) -> CliResult<()> {
    let Some(pid) = args.pid else { return list(args.json, out) };
    let change = Change { policy: args.policy, priority: args.priority, nice: args.nice };
    let is_look = change == Change::default();
    let problem = |error: HostError| CliError::from(LaneError::from(error));
    // Look up the task first: a process id that does not exist must give an error, not an empty
    // answer.
    let first = inspect::view(pid).map_err(problem)?;
    let threads = if args.threads { procfs::threads(pid) } else { vec![pid] };
    let mut tasks = Vec::new();
    for thread in threads {
        tasks.push(if is_look && thread == pid {
            first.clone()
        } else if is_look {
            inspect::view(thread).map_err(problem)?
        } else {
            inspect::switch(thread, change).map_err(problem)?
        });
    }
    if args.json {
        return out.json(&tasks);
    }
    show(&tasks, out)
}

fn slice(task: &TaskView) -> String {
    match (task.slice_ns, task.runtime_ns) {
        (0, Some(runtime)) => duration(runtime),
        (0, None) => "none".into(),
        (slice, _) => duration(slice),
    }
}

fn show(tasks: &[TaskView], out: &mut Out) -> CliResult<()> {
    let heads = ["pid", "name", "group", "ground", "policy", "priority", "nice", "slice", "CPUs"];
    let mut rows = table::table(&heads);
    for task in tasks {
        let policy = match &task.scheduler {
            Some(scheduler) => format!("{} ({scheduler})", task.policy),
            None => task.policy.clone(),
        };
        rows.add_row([
            task.pid.to_string(),
            task.name.clone(),
            task.group.clone(),
            if task.is_background { "back".into() } else { "fore".into() },
            policy,
            if task.rt_priority > 0 { task.rt_priority.to_string() } else { "-".into() },
            task.nice.map_or_else(|| "-".into(), |nice| nice.to_string()),
            slice(task),
            task.cpus.clone(),
        ]);
    }
    out.line(table::render(&rows))
}

fn list(json: bool, out: &mut Out) -> CliResult<()> {
    let policies = inspect::policies();
    if json {
        return out.json(&policies);
    }
    let mut rows = table::table(&["policy", "number", "priorities", "takes"]);
    for policy in &policies {
        let priorities = match policy.priorities {
            Some((0, 0)) => "-".into(),
            Some((least, most)) => format!("{least} to {most}"),
            None => "not in this kernel".into(),
        };
        let number = policy.number.to_string();
        rows.add_row([policy.name, number.as_str(), priorities.as_str(), policy.takes]);
    }
    out.line(table::render(&rows))
}
