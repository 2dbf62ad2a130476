//! What must be true before a deploy changes anything, looked at as a whole.
//!
//! Whoever deploys learns of everything that stands in the way at once, each with what to do. A
//! rehearsal touches nothing real, so only the deployment itself is looked at then. Nothing is
//! recorded here: a deploy that is refused has not begun.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_operations::Cancellation;
use nimbus_local::require_passphrase;
use nimbus_orchestrator::environment::Environment;
use nimbus_orchestrator::manifest::StackEntry;
use nimbus_orchestrator::placeholder::Source;
use nimbus_orchestrator::program::mentions;
use nimbus_orchestrator::validate::placeholders;
use nimbus_resolvers::aws::{Aws, AwsError, Identity, Settings, Variables};

use super::planning;
use crate::commands::deployment::local::{Place, RunArgs, open};
use crate::context::Context;

/// How programs name the packages that talk to AWS, in TypeScript and in Python.
const AWS_PACKAGES: &[&str] = &["@pulumi/aws", "pulumi_aws", "pulumi-aws"];

/// Configuration with which a provider needs none of this machine's credentials.
const OWN_CREDENTIALS: &[&str] = &[
    "aws:accessKey",
    "aws:endpoints",
    "aws:profile",
    "aws:skipCredentialsValidation",
];

/// Refuses a deploy that cannot go well. Returns what is worth a warning.
pub(super) async fn require(
    place: &Place,
    run: &RunArgs,
    stack: Option<&str>,
    promotion: Result<Vec<String>>,
    context: &Context,
) -> Result<Vec<String>> {
    let mut report = Gathered::default();
    report.hear(deployment(place, run.environment, stack));
    report.hear(promotion);
    if !run.rehearse {
        for (name, _) in concerned(place, stack) {
            report.hear(program(place, name));
        }
        report.hear(state(place, run, stack, context).await);
        if uses_aws(place, run.environment, stack) {
            report.hear(aws(place, run.environment).await);
        }
    }
    report.finish(run.environment)
}

/// The stacks that the run is about.
fn concerned<'a>(
    place: &'a Place,
    stack: Option<&'a str>,
) -> impl Iterator<Item = (&'a String, &'a StackEntry)> {
    let all = place.deployment.manifest.enabled();
    all.filter(move |(name, _)| stack.is_none_or(|only| only == name.as_str()))
}

/// Whether the manifest is sound, and what a single stack needs is there.
fn deployment(place: &Place, environment: Environment, stack: Option<&str>) -> Result<Vec<String>> {
    let manifest = &place.deployment.manifest;
    let findings = planning::check(&place.workspace, manifest, environment)?;
    if let Some(stack) = stack {
        planning::require_needs(manifest, environment, &place.directory, stack)?;
    }
    Ok(findings.iter().map(ToString::to_string).collect())
}

/// Whether there is something to run. What else its project file says is for `nimbus validate`.
fn program(place: &Place, stack: &str) -> Result<Vec<String>> {
    match place.workspace.project_file(stack) {
        Err(error) if error.code() == ErrorCode::STACK_PROGRAM_MISSING => Err(error),
        Ok(_) | Err(_) => Ok(Vec::new()),
    }
}

/// Whether states can be reached and their secrets opened.
async fn state(
    place: &Place,
    run: &RunArgs,
    stack: Option<&str>,
    context: &Context,
) -> Result<Vec<String>> {
    require_passphrase(run.rehearse)?;
    let board = open(run, context, &Cancellation::default())?;
    let names = concerned(place, stack).map(|(name, _)| name.as_str());
    board.ready(names).await?;
    Ok(Vec::new())
}

/// Whether the run will talk to AWS with the credentials of this machine.
fn uses_aws(place: &Place, environment: Environment, stack: Option<&str>) -> bool {
    let asks = placeholders(&place.deployment.manifest, &[environment])
        .iter()
        .any(|found| matches!(found.placeholder.source, Source::Aws { .. }));
    let own = |entry: &StackEntry| {
        let config = entry.config.get(&environment);
        config.is_some_and(|config| OWN_CREDENTIALS.iter().any(|key| config.contains_key(*key)))
    };
    let talks = |name: &str| mentions(&place.workspace.stack_source(name), AWS_PACKAGES);
    asks || concerned(place, stack).any(|(name, entry)| !own(entry) && talks(name))
}

/// Whether AWS knows us. Credentials of another account may be meant: a program can take a role.
async fn aws(place: &Place, environment: Environment) -> Result<Vec<String>> {
    let Some(target) = place.deployment.manifest.environments.get(&environment) else {
        return Ok(Vec::new());
    };
    let Identity { account, arn, .. } = identity(&target.region).await?;
    if target.account.is_empty() || target.account == account {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "{environment} is in account {}, and the AWS credentials are those of {arn} in {account}",
        target.account
    )])
}

async fn identity(region: &str) -> std::result::Result<Identity, AwsError> {
    let aws = Aws::new(Settings::load(Variables::process())?)?;
    aws.identity(region).await
}

/// What was found, of all checks.
#[derive(Default)]
struct Gathered {
    refusals: Vec<Error>,
    warnings: Vec<String>,
}

impl Gathered {
    fn hear(&mut self, found: Result<Vec<String>>) {
        match found {
            Ok(warnings) => self.warnings.extend(warnings),
            Err(refusal) => self.refusals.push(refusal),
        }
    }

    /// One refusal speaks for itself; several are told together.
    fn finish(mut self, environment: Environment) -> Result<Vec<String>> {
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
        let mut one = Gathered::default();
        one.hear(Ok(vec!["odd".to_owned()]));
        one.hear(refusal(ErrorCode::AWS_CREDENTIALS, "keys"));
        let error = one.finish(Environment::Dev).unwrap_err();
        assert_eq!(error.code(), ErrorCode::AWS_CREDENTIALS);

        let mut two = Gathered::default();
        two.hear(refusal(ErrorCode::AWS_CREDENTIALS, "keys"));
        two.hear(refusal(ErrorCode::STACK_PROGRAM_MISSING, "code"));
        let error = two.finish(Environment::Dev).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DEPLOYMENT_NOT_READY);
        for part in ["2 things", "keys", "mend keys", "code", "mend code"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }

        let mut none = Gathered::default();
        none.hear(Ok(vec!["odd".to_owned()]));
        assert_eq!(none.finish(Environment::Dev).unwrap(), ["odd"]);
    }
}
