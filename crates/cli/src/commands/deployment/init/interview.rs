//! `nimbus init --interactive`: what a template needs, asked for.

use std::collections::BTreeMap;

use nimbus_core::Result;
use nimbus_orchestrator::{InitAnswers, TemplateLibrary, account_variable};

use super::InitArgs;
use crate::commands::deployment::prompt;

/// Regions that templates know, with what they are called and what they are without an answer.
const REGIONS: [(&str, &str, &str); 2] = [
    ("PRIMARY_REGION", "Primary region", "us-east-1"),
    ("SECONDARY_REGION", "Secondary region", "us-west-2"),
];

/// Those that are shipped, in the order in which users know them.
const SHIPPED: [&str; 4] = ["default", "minimal", "microservices", "data-platform"];

/// Templates that there are to choose from: the shipped ones as far as they are there, then the others by name.
fn templates(library: &TemplateLibrary) -> Vec<&str> {
    let there = |name: &&str| library.manifests.contains_key(*name);
    let others = library.manifests.keys().map(String::as_str);
    let others = others.filter(|name| !SHIPPED.contains(name));
    SHIPPED.into_iter().filter(there).chain(others).collect()
}

/// Asks in the order that users know, and only for what the template has a use for: its own environments, and no account or
/// region where it names none. What flags say is the default of a question. Returns the id, the answers, and the flags that were
/// not asked about, which still count.
pub(super) fn interview(
    args: &InitArgs,
    library: &TemplateLibrary,
) -> Result<(Option<String>, InitAnswers, InitArgs)> {
    let id = prompt::ask(
        "Deployment ID (leave blank for auto-generate)",
        args.id.as_deref(),
    )?;
    let organization = prompt::ask_required("Organization name", args.org.as_deref())?;
    let project = prompt::ask_required("Project name", args.project.as_deref())?;
    let domain = prompt::ask("Domain", args.domain.as_deref())?;
    let templates = templates(library);
    let template = prompt::ask(
        &format!("Template ({})", templates.join("/")),
        args.template
            .as_deref()
            .or_else(|| templates.first().copied()),
    )?;
    let used = library.variables_of(&template)?;
    let mut variables = BTreeMap::new();
    let given = [&args.region, &args.secondary_region];
    for ((name, question, usual), given) in REGIONS.into_iter().zip(given) {
        if used.contains(name) {
            let region = prompt::ask(question, given.as_deref().or(Some(usual)))?;
            variables.insert(name.to_owned(), region);
        }
    }
    let mut accounts = args.accounts()?;
    let known = library.manifests.get(&template);
    let environments = known
        .into_iter()
        .flat_map(|known| known.environments.keys());
    for environment in environments.filter(|one| used.contains(&account_variable(**one))) {
        let given = accounts.remove(environment);
        let account = prompt::ask(&format!("AWS Account ({environment})"), given.as_deref())?;
        if !account.is_empty() {
            accounts.insert(*environment, account);
        }
    }
    let all = prompt::ask("Enable all stacks? [Y/n]", None)?;
    let asked = InitAnswers {
        organization,
        project,
        domain,
        template,
        accounts,
        variables,
        all_stacks: !all.to_ascii_lowercase().starts_with('n'),
        ..InitAnswers::default()
    };
    let rest = InitArgs {
        id: None,
        org: None,
        project: None,
        domain: None,
        template: None,
        region: None,
        secondary_region: None,
        account: Vec::new(),
        account_dev: None,
        account_stage: None,
        account_prod: None,
        ..args.clone()
    };
    Ok(((!id.is_empty()).then_some(id), asked, rest))
}
