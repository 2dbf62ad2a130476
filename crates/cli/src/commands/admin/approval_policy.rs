//! `nimbus approve policy`: which environments need approval, and by whom.

use std::path::{Path, PathBuf};

use nimbus_control_client::encoded;
use nimbus_control_wire::{PolicyStep, SetApprovalPolicy, StepApprover};
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_document::Document;
use serde_json::json;

use super::AdminReport;
use super::server::Connection;

#[derive(Debug, clap::Subcommand)]
pub(super) enum ApprovalPolicyCommand {
    /// List which environments need approval, and by whom
    List,
    /// Set who has to agree before a run changes an environment
    Set {
        /// The environment, or `*` for all that have no policy of their own
        environment: String,
        /// A file with the chain, in YAML or JSON; users are named by id or address, groups by id or name
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove a policy; runs that wait keep theirs
    Remove {
        /// The environment, or `*`
        environment: String,
    },
}

const COLUMNS: &[&str] = &[
    "environment",
    "steps",
    "own_requests",
    "rehearsals",
    "set_by",
    "set_at",
];

pub(super) async fn run(
    command: ApprovalPolicyCommand,
    server: &mut Connection,
) -> Result<AdminReport> {
    match command {
        ApprovalPolicyCommand::List => {
            let path = server.path("approval-policies", &[]);
            Ok(AdminReport::list(server.client.get(&path).await?, COLUMNS))
        }
        ApprovalPolicyCommand::Set { environment, file } => {
            // Before anybody is asked: a file that is wrong is told with its place.
            let mut policy = read(&file)?;
            name_approvers(&mut policy.steps, server).await?;
            let body = serde_json::to_value(&policy).map_err(|error| {
                Error::new(ErrorCode::INTERNAL, "a policy cannot be written").with_source(error)
            })?;
            let path = server.path(&place(&environment), &[]);
            let set = server.client.put(&path, &body).await?;
            Ok(AdminReport::item(set, COLUMNS))
        }
        ApprovalPolicyCommand::Remove { environment } => {
            let path = server.path(&place(&environment), &[]);
            server.client.delete(&path).await?;
            let text = format!("the policy of {environment} is gone");
            Ok(AdminReport::done(json!({"removed": environment}), text))
        }
    }
}

fn place(environment: &str) -> String {
    format!("approval-policies/{}", encoded(environment))
}

/// What a chain may be is the server's to say; here it only has to be one.
fn read(path: &Path) -> Result<SetApprovalPolicy> {
    Document::read(path)?.deserialize()
}

/// People write addresses and names of groups; the server knows ids.
async fn name_approvers(steps: &mut [PolicyStep], server: &mut Connection) -> Result<()> {
    let tenant = server.tenant().await?;
    for step in steps {
        for approver in step.approvers.iter_mut().chain(&mut step.escalate_to) {
            let found = match &*approver {
                StepApprover::User(user) => {
                    StepApprover::User(server.find_user(&tenant, user).await?)
                }
                StepApprover::Group(group) => {
                    StepApprover::Group(server.find_group(&tenant, group).await?)
                }
            };
            *approver = found;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &str = "\
rehearsals: true
steps:
  - name: team
    approvers: [{group: reviewers}]
    needs: any
    timeout_seconds: 3600
    escalate_to: [{user: ben@acme.example}]
  - name: security
    approvers: [{user: ben@acme.example}, {user: eva@acme.example}]
    needs: {quorum: 2}
    timeout_seconds: 60
";

    fn read_text(name: &str, text: &str) -> Result<SetApprovalPolicy> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn yaml_and_json_are_the_same_chain() {
        let yaml = read_text("chain.yaml", CHAIN).unwrap();
        let json = serde_json::to_string(&yaml).unwrap();
        assert_eq!(read_text("chain.json", &json).unwrap(), yaml);
        assert_eq!(yaml.steps.len(), 2);
        assert!(yaml.rehearsals);
        assert!(!yaml.own_requests);
    }

    #[test]
    fn what_is_no_chain_is_told_with_its_place() {
        for (wrong, right) in [
            ("timeout: 3600", "timeout_seconds: 3600"),
            ("needs: most", "needs: any"),
            ("approvers: reviewers", "approvers: [{group: reviewers}]"),
            ("approvers: [{role: r}]", "approvers: [{group: reviewers}]"),
        ] {
            let error = read_text("chain.yaml", &CHAIN.replacen(right, wrong, 1)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::DOCUMENT_SHAPE, "{wrong}");
        }
        let error = read_text("chain.yaml", "steps: [").unwrap_err();
        assert_eq!(error.code(), ErrorCode::DOCUMENT_SYNTAX);
        let error = read(Path::new("no-such-file.yaml")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::FILE_UNREADABLE);
    }
}
