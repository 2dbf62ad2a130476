//! `nimbus register-stack`: a program becomes a stack that deployments can use.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _};

use nimbus_core::{EnvironmentName, Result};
use nimbus_workspace::{ComponentRegistration, check_name};
use serde_json::{Map, Value, json};

use super::{StackMetadataArgs, StackReport};
use crate::commands::deployment::{prompt, usage, workspace};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct RegisterStackArgs {
    /// Name of the stack: its directory under stacks/
    name: String,
    #[command(flatten)]
    stack: StackMetadataArgs,
}

pub(crate) async fn run(
    args: RegisterStackArgs,
    context: &CommandContext,
) -> Result<CommandOutcome> {
    let workspace = workspace(context)?;
    let name = check_name(&args.name)?;
    workspace.project_file(&name)?;
    let mut registration = args.stack.registration(&context.directory)?;
    if args.stack.defaults_file.is_none() && io::stdin().is_terminal() && !context.output.is_json()
    {
        let library = workspace.library()?;
        let templates = library.manifests.values();
        let known: BTreeSet<EnvironmentName> = templates
            .flat_map(|template| template.environments.keys().copied())
            .collect();
        ask_defaults(&mut registration, &known)?;
    }
    let template = workspace.register(&name, &registration)?;
    let file = workspace.stack_template(&name);
    let report = StackReport::new("registered", template, &file);
    context.output.result(&report)?;
    context.output.note(&format!(
        "Next: nimbus update-template TEMPLATE --enable-stack {name}"
    ));
    Ok(CommandOutcome::Done)
}

/// Asks for default values, one after the other, until there is no answer.
fn ask_defaults(
    registration: &mut ComponentRegistration,
    known: &BTreeSet<EnvironmentName>,
) -> Result<()> {
    loop {
        let question = "Default value, KEY=VALUE or dev.KEY=VALUE (leave blank to finish)";
        let answer = prompt::ask(question, None)?;
        if answer.is_empty() {
            return Ok(());
        }
        add_default(&mut registration.defaults, &answer, known)?;
    }
}

/// `KEY=VALUE`, or `ENVIRONMENT.KEY=VALUE` for an environment that some template has: keys may have
/// dots of their own.
fn add_default(
    defaults: &mut Map<String, Value>,
    answer: &str,
    known: &BTreeSet<EnvironmentName>,
) -> Result<()> {
    let (key, value) = answer
        .split_once('=')
        .ok_or_else(|| usage(format!("`{answer}` is not KEY=VALUE")))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    let (environment, key) = match key.split_once('.') {
        Some((first, rest)) if known.iter().any(|name| *name == first) => (Some(first), rest),
        _ => (None, key),
    };
    let root = match environment {
        Some(environment) => object(object(defaults, "environments"), environment),
        None => object(defaults, "config"),
    };
    root.insert(key.trim().to_owned(), value);
    Ok(())
}

fn object<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made an object above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_defaults_of_all_or_one_environment() {
        let known = BTreeSet::from([EnvironmentName::PROD]);
        let mut defaults = Map::new();
        for answer in ["size=2", "name=web", "prod.size=5", "a.b=x"] {
            add_default(&mut defaults, answer, &known).unwrap();
        }
        let expected = json!({
            "config": {"size": 2, "name": "web", "a.b": "x"},
            "environments": {"prod": {"size": 5}},
        });
        assert_eq!(Value::Object(defaults), expected);
        assert!(add_default(&mut Map::new(), "nonsense", &known).is_err());
    }
}
