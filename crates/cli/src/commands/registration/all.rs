//! `nimbus register-all-stacks`: every program that is there and not registered.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, ErrorKind, Result};
use nimbus_workspace::{ComponentRegistration, Workspace, check_name};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::workspace;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::report_page::ReportPage;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct RegisterAllArgs {
    /// Register what discovery finds under stacks/; there is no other way yet
    #[arg(long, required = true)]
    from_discovery: bool,
    /// Also store what they need, as the manifests of deployments say
    #[arg(long)]
    include_dependencies: bool,
}

pub(crate) async fn run(args: RegisterAllArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let report = register_all(&workspace, args.include_dependencies)?;
    let failed = report.stacks.iter().any(|stack| stack.problem.is_some());
    context.output.result(&report)?;
    Ok(if failed {
        CommandOutcome::Reported(ErrorKind::Invalid)
    } else {
        CommandOutcome::Done
    })
}

/// Registers in order of need, so that a stack's dependencies are there before it.
pub(crate) fn register_all(workspace: &Workspace, dependencies: bool) -> Result<AllReport> {
    let needs = if dependencies {
        workspace.needs_in_manifests()?
    } else {
        BTreeMap::new()
    };
    let mut known: BTreeSet<ComponentName> = workspace.library()?.stacks.into_keys().collect();
    let (already, mut open): (BTreeSet<_>, BTreeSet<_>) = workspace
        .programs()
        .into_iter()
        .partition(|name| known.contains(name.as_str()));
    let mut stacks: Vec<RegisteredStack> = already
        .into_iter()
        .map(|name| RegisteredStack {
            name,
            registered: false,
            dependencies: Vec::new(),
            problem: None,
        })
        .collect();
    while !open.is_empty() {
        let needed = |name: &String| needs.get(name.as_str()).cloned().unwrap_or_default();
        let ready = open.iter().find(|name| needed(name).is_subset(&known));
        // What waits for something that never comes is tried all the same: its error says why.
        let Some(next) = ready.or_else(|| open.first()).cloned() else {
            break;
        };
        open.remove(&next);
        let wanted = needed(&next);
        let registration = ComponentRegistration {
            dependencies: Some(wanted.clone()),
            ..ComponentRegistration::default()
        };
        let name = check_name(&next);
        let registered = name.and_then(|name| workspace.register(&name, &registration));
        let problem = registered.err();
        if problem.is_none() {
            known.extend(next.parse::<ComponentName>());
        }
        stacks.push(RegisteredStack {
            registered: problem.is_none(),
            name: next,
            dependencies: wanted.into_iter().map(Into::into).collect(),
            problem: problem.map(|error| match error.help() {
                Some(help) => format!("{}; {help}", error.message()),
                None => error.message().to_owned(),
            }),
        });
    }
    stacks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(AllReport { stacks })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct AllReport {
    stacks: Vec<RegisteredStack>,
}

#[derive(JsonSchema, Serialize)]
struct RegisteredStack {
    name: String,
    /// Registered by this command; otherwise it was before, or there is a problem.
    registered: bool,
    dependencies: Vec<String>,
    /// Why it could not be registered.
    problem: Option<String>,
}

impl Report for AllReport {
    const SCHEMA: &'static str = "nimbus/register-all-stacks/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut page = ReportPage::default();
        for stack in &self.stacks {
            let (mark, remark) = match (&stack.problem, stack.registered) {
                (Some(problem), _) => (terminal.paint(TextStyle::Bad, "✗"), problem.clone()),
                (None, true) if stack.dependencies.is_empty() => (
                    terminal.paint(TextStyle::Good, "✓"),
                    "registered".to_owned(),
                ),
                (None, true) => (
                    terminal.paint(TextStyle::Good, "✓"),
                    format!("registered, needs {}", stack.dependencies.join(", ")),
                ),
                (None, false) => ("·".to_owned(), "was registered".to_owned()),
            };
            page.line(format!("{mark} {:<18} {remark}", stack.name));
        }
        page.into_text()
    }
}
