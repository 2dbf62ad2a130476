//! What must be true before a deploy changes anything, looked at as a whole.
//!
//! Whoever deploys learns of everything that stands in the way at once, each with what to do. A
//! rehearsal touches nothing real, so only the deployment itself is looked at then. Nothing is
//! recorded here: a deploy that is refused has not begun.

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::validate::placeholders;
use nimbus_orchestrator::{EnvironmentTarget, PlaceholderSource};

use crate::context::RunContext;
use crate::record::RunRequest;
use crate::{planning, promotion};

/// How programs name the packages that talk to AWS, in TypeScript and in Python.
const AWS_PACKAGES: &[&str] = &["@pulumi/aws", "pulumi_aws", "pulumi-aws"];

/// Configuration with which a provider needs none of this machine's credentials.
const OWN_CREDENTIALS: &[&str] = &[
    "aws:accessKey",
    "aws:assumeRole",
    "aws:assumeRoles",
    "aws:endpoints",
    "aws:profile",
    "aws:skipCredentialsValidation",
];

/// Refuses a deploy that cannot go well. Returns what is worth a warning.
pub(crate) async fn require(context: &RunContext, request: &RunRequest) -> Result<Vec<String>> {
    let chosen = request.choices.components.as_deref();
    let mut findings = ReadinessFindings::default();
    findings.add(deployment(context, chosen).await);
    findings.add(promotion::require(context, request).await);
    if !request.rehearsal {
        let names = concerned(context, chosen);
        for name in &names {
            let found = context.ports.components.require_program(name).await;
            findings.add(found.map(|()| Vec::new()));
        }
        let ready = context.ready(names.iter().copied()).await;
        findings.add(ready.map(|()| Vec::new()));
        let account = account_of(context, &names).await;
        findings.add(account.map(|()| Vec::new()));
    }
    findings.finish(context.environment)
}

/// Refuses to touch what a run is about with credentials of another account than the environment's.
/// Who is named counts, switched on or not: a stack that is off can still be looked at and taken away.
pub(crate) async fn account(context: &RunContext, chosen: Option<&[ComponentName]>) -> Result<()> {
    let names: Vec<&ComponentName> = match chosen {
        Some(chosen) => chosen.iter().collect(),
        None => concerned(context, None),
    };
    account_of(context, &names).await
}

async fn account_of(context: &RunContext, names: &[&ComponentName]) -> Result<()> {
    match uses_aws(context, names).await {
        true => aws(context).await,
        false => Ok(()),
    }
}

/// The components that a deploy is about.
fn concerned<'a>(
    context: &'a RunContext,
    chosen: Option<&[ComponentName]>,
) -> Vec<&'a ComponentName> {
    let all = context.manifest.enabled().map(|(name, _)| name);
    all.filter(|name| chosen.is_none_or(|chosen| chosen.contains(name)))
        .collect()
}

/// Whether the manifest is sound, and what a single component needs is there.
async fn deployment(context: &RunContext, chosen: Option<&[ComponentName]>) -> Result<Vec<String>> {
    let findings = planning::check(context, chosen).await?;
    if let Some([component]) = chosen {
        planning::require_needs(context, component).await?;
    }
    Ok(findings.iter().map(ToString::to_string).collect())
}

/// Whether the run will talk to AWS with the credentials of this machine.
async fn uses_aws(context: &RunContext, names: &[&ComponentName]) -> bool {
    let environment = context.environment;
    let asks = placeholders(&context.manifest, &[environment])
        .iter()
        .any(|found| matches!(found.placeholder.source, PlaceholderSource::Aws { .. }));
    if asks {
        return true;
    }
    for name in names {
        let entry = context.manifest.stacks.get(*name);
        let config = entry.and_then(|entry| entry.config.get(&environment));
        let own = config
            .is_some_and(|config| OWN_CREDENTIALS.iter().any(|key| config.contains_key(*key)));
        if !own && context.ports.components.mentions(name, AWS_PACKAGES).await {
            return true;
        }
    }
    false
}

/// Whether AWS knows us, and as who. A program that takes a role says so in its configuration and is
/// not asked.
async fn aws(context: &RunContext) -> Result<()> {
    let Some(target) = context.target() else {
        return Ok(());
    };
    let found = context
        .ports
        .accounts
        .aws(&aws_region(context, target))
        .await?;
    let declared = target.account.as_deref().unwrap_or_default();
    if declared.is_empty() || declared == found.account {
        return Ok(());
    }
    let environment = context.environment;
    let message = format!(
        "{environment} is in account {declared}, and the AWS credentials are those of {} in {}",
        found.caller, found.account
    );
    Err(Error::new(ErrorCode::ACCOUNT_OTHER, message).with_help(format!(
        "use credentials of {declared}; a stack that takes a role there has `aws:assumeRoles` in its \
         configuration, and is not asked"
    )))
}

/// Where to ask: the environment's region, or what a stack's own configuration says. Who somebody is
/// can be asked anywhere, so there is an answer without either.
fn aws_region(context: &RunContext, target: &EnvironmentTarget) -> String {
    if !target.region.is_empty() {
        return target.region.clone();
    }
    let configs = context.manifest.enabled();
    let mut configs = configs.filter_map(|(_, entry)| entry.config.get(&context.environment));
    let own = configs.find_map(|config| config.get("aws:region")?.as_str());
    own.unwrap_or("us-east-1").to_owned()
}

/// What was found, of all checks.
#[derive(Default)]
struct ReadinessFindings {
    refusals: Vec<Error>,
    warnings: Vec<String>,
}

impl ReadinessFindings {
    fn add(&mut self, found: Result<Vec<String>>) {
        match found {
            Ok(warnings) => self.warnings.extend(warnings),
            Err(refusal) => self.refusals.push(refusal),
        }
    }

    /// One refusal speaks for itself; several are told together.
    fn finish(mut self, environment: EnvironmentName) -> Result<Vec<String>> {
        if self.refusals.len() <= 1 {
            return self.refusals.pop().map_or(Ok(self.warnings), Err);
        }
        let count = self.refusals.len();
        let mut message = format!("{count} things are in the way of a deploy to {environment}");
        for refusal in &self.refusals {
            message.push_str(&format!("\n  {} {}", refusal.code(), refusal.message()));
            if let Some(help) = refusal.help() {
                message.push_str(&format!("\n    → {help}"));
            }
        }
        Err(Error::new(ErrorCode::DEPLOYMENT_NOT_READY, message)
            .with_help("nothing was changed; put each of them right and deploy again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_refusal_speaks_for_itself_and_several_are_told_with_what_to_do() {
        let refusal =
            |code, what: &str| Err(Error::new(code, what).with_help(format!("mend {what}")));
        let mut one = ReadinessFindings::default();
        one.add(Ok(vec!["odd".to_owned()]));
        one.add(refusal(ErrorCode::AWS_CREDENTIALS, "keys"));
        let error = one.finish(EnvironmentName::DEV).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AWS_CREDENTIALS);

        let mut two = ReadinessFindings::default();
        two.add(refusal(ErrorCode::AWS_CREDENTIALS, "keys"));
        two.add(refusal(ErrorCode::STACK_PROGRAM_MISSING, "code"));
        let error = two.finish(EnvironmentName::DEV).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DEPLOYMENT_NOT_READY);
        for part in ["2 things", "keys", "mend keys", "code", "mend code"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }

        let mut none = ReadinessFindings::default();
        none.add(Ok(vec!["odd".to_owned()]));
        assert_eq!(none.finish(EnvironmentName::DEV).unwrap(), ["odd"]);
    }
}
