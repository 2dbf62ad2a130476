//! What is recorded of a run before anything starts: the whole request, so that whoever goes on with
//! it needs nothing but its number and keeps every promise of the first attempt.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName};
use nimbus_orchestrator::{OnFailure, RunAction, RunId};
use serde::{Deserialize, Serialize};

use crate::seal::SealedPlan;

/// What was asked for, by whom. It does not change once the run has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RunRequest {
    #[serde(rename = "kind")]
    pub action: RunAction,
    pub deployment: DeploymentId,
    pub environment: EnvironmentName,
    pub rehearsal: bool,
    pub user: String,
    pub host: String,
    #[serde(rename = "options")]
    pub choices: RunChoices,
    /// Digest of the manifest that the run was planned from.
    #[serde(default)]
    pub manifest: String,
    /// Digests of those parts of the manifest that the run depends on, by what people call them: what
    /// another attempt must find as it was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub manifest_parts: BTreeMap<String, String>,
    /// Digest over every unit's decision.
    #[serde(default)]
    pub plan: String,
}

/// A run's number and when it was started, with what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RunRecord {
    pub run: RunId,
    /// RFC 3339, seconds.
    pub started: String,
    /// `YYYYMMDD-HHMMSS`, part of the names of its log files.
    pub stamp: String,
    #[serde(flatten)]
    pub request: RunRequest,
}

/// How a run is to be carried out. Fields that older records lack have the values that were usual
/// when those were written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RunChoices {
    pub force: bool,
    /// Look at what is there before anything is decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refresh: bool,
    /// Believe a look that finds much of what is recorded gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_mass_removal: bool,
    pub parallel: usize,
    pub on_failure: OnFailure,
    /// Only these components; all of them when absent.
    #[serde(default, rename = "stacks", skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<ComponentName>>,
    /// Where state is kept, when not in the deployment's own directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The version that a rollback returns to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_version: Option<u32>,
    /// Somebody has looked for creates of unknown outcome, in vain. It holds for the first attempt only:
    /// what a second one finds open, nobody has looked for yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forget_creates: bool,
    #[serde(default)]
    pub engine: EngineChoice,
    #[serde(default)]
    pub sandbox: SandboxChoice,
    /// Whether the types of TypeScript programs are checked.
    #[serde(default = "yes")]
    pub typecheck: bool,
    /// Rules that every unit is held to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policy_packs: Vec<PolicyPackChoice>,
    /// Packages whose providers units in different folders share; the reviewed ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_providers: Option<Vec<String>>,
    /// What the simulated cloud was told, in a rehearsal.
    #[serde(default, skip_serializing_if = "RehearsalChoice::is_empty")]
    pub rehearsal: RehearsalChoice,
    /// The plan that the run is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_plan: Option<SealedPlan>,
    /// Why the environment before this one need not be ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_gate: Option<String>,
    /// Why the run was asked for, in somebody's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

fn yes() -> bool {
    true
}

impl Default for RunChoices {
    fn default() -> Self {
        Self {
            force: false,
            refresh: false,
            allow_mass_removal: false,
            parallel: 4,
            on_failure: OnFailure::Hold,
            components: None,
            backend: None,
            to_version: None,
            forget_creates: false,
            engine: EngineChoice::default(),
            sandbox: SandboxChoice::default(),
            typecheck: true,
            policy_packs: Vec::new(),
            shared_providers: None,
            rehearsal: RehearsalChoice::default(),
            sealed_plan: None,
            skip_gate: None,
            message: None,
        }
    }
}

/// Which engine carries operations out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineChoice {
    #[default]
    Embedded,
    /// An installed `pulumi`.
    Official,
}

impl EngineChoice {
    /// As a function of references, for records that leave out what is usual.
    pub(crate) fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }
}

/// How programs are kept from everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum SandboxChoice {
    #[default]
    Off,
    BestEffort {
        network: String,
        /// What older records lack is this machine's.
        #[serde(default, alias = "walls")]
        limits: Option<SandboxLimits>,
    },
    Strict {
        network: String,
        /// The operator has said that less is acceptable.
        #[serde(default)]
        allow_weak: bool,
        #[serde(default, alias = "walls")]
        limits: Option<SandboxLimits>,
    },
}

impl SandboxChoice {
    /// The same without its limits and folders, which are of one machine.
    #[must_use]
    pub fn without_limits(self) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::BestEffort { network, limits: _ } => Self::BestEffort {
                network,
                limits: None,
            },
            Self::Strict {
                network,
                allow_weak,
                limits: _,
            } => Self::Strict {
                network,
                allow_weak,
                limits: None,
            },
        }
    }

    /// Whether it keeps programs from less than another one does.
    pub fn is_weaker_than(&self, other: &Self) -> bool {
        let rank = |choice: &Self| match choice {
            Self::Off => 0,
            Self::BestEffort { .. } => 1,
            Self::Strict {
                allow_weak: true, ..
            } => 2,
            Self::Strict {
                allow_weak: false, ..
            } => 3,
        };
        let has_network = |choice: &Self| match choice {
            Self::Off => true,
            Self::BestEffort { network, .. } | Self::Strict { network, .. } => network == "full",
        };
        rank(self) < rank(other) || (has_network(self) && !has_network(other))
    }
}

/// What a sandboxed program may use and open. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct SandboxLimits {
    pub memory_bytes: u64,
    pub processes: u64,
    pub open_files: u64,
    pub file_bytes: u64,
    pub temporary_bytes: u64,
    pub temporary_files: u64,
    pub output_bytes: u64,
    /// Names of variables that programs get beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// Folders of the operator that strangers' projects may lead into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
}

/// What a simulated cloud is told, as it was written: files by name and text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct RehearsalChoice {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<NamedText>,
    /// Single orders, in addition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_orders: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<NamedText>,
    /// Seconds that every call takes unless something else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_scale: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What was ordered to go wrong or to be slow has been so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub faults_over: bool,
}

impl RehearsalChoice {
    /// The same cloud without anything that was ordered to go wrong or to be slow.
    #[must_use]
    pub fn without_faults(mut self) -> Self {
        self.faults_over = true;
        self
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A text, and what complaints about it call it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct NamedText {
    pub name: String,
    pub text: String,
}

/// A policy pack, with what was in it when the run was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct PolicyPackChoice {
    pub folder: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<PathBuf>,
    /// Digest over everything in it and its configuration.
    pub digest: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `nimbus` 0.1 wrote it before requests were recorded whole.
    const OLD: &str = r#"{"run":"R0003","kind":"deploy","deployment":"D1","environment":"dev",
        "rehearsal":true,"started":"2026-01-01T00:00:00Z","user":"ann","host":"h",
        "options":{"force":false,"parallel":4,"on_failure":"automatic","stacks":["network"]},
        "manifest":"m","plan":"p","stamp":"20260101-000000"}"#;

    #[test]
    fn a_record_of_an_older_version_is_read_with_what_was_usual_then() {
        let record: RunRecord = serde_json::from_str(OLD).unwrap();
        assert_eq!(record.request.action, RunAction::Deploy);
        let choices = record.request.choices;
        assert_eq!(choices.components.unwrap(), ["network"]);
        assert_eq!(choices.engine, EngineChoice::Embedded);
        assert!(choices.typecheck && choices.sealed_plan.is_none());
    }

    #[test]
    fn what_is_recorded_is_read_back_whole() {
        let choices = RunChoices {
            engine: EngineChoice::Official,
            sandbox: SandboxChoice::Strict {
                network: "none".to_owned(),
                allow_weak: false,
                limits: Some(SandboxLimits {
                    memory_bytes: 1 << 30,
                    roots: vec!["shared".into()],
                    ..SandboxLimits::default()
                }),
            },
            shared_providers: Some(vec!["aws".to_owned()]),
            rehearsal: RehearsalChoice {
                orders: Some(NamedText {
                    name: "orders.yaml".to_owned(),
                    text: "account: 1".to_owned(),
                }),
                time_scale: Some(0.5),
                ..RehearsalChoice::default()
            },
            typecheck: false,
            policy_packs: vec![PolicyPackChoice {
                folder: "rules".into(),
                config: None,
                digest: "d".to_owned(),
            }],
            skip_gate: Some("fire".to_owned()),
            message: Some("rotate the key".to_owned()),
            ..RunChoices::default()
        };
        let text = serde_json::to_string(&choices).unwrap();
        assert_eq!(serde_json::from_str::<RunChoices>(&text).unwrap(), choices);
    }

    /// Records outlive words.
    #[test]
    fn limits_that_were_called_otherwise_are_read() {
        let now = SandboxChoice::BestEffort {
            network: "none".to_owned(),
            limits: Some(SandboxLimits {
                processes: 7,
                ..SandboxLimits::default()
            }),
        };
        let text = serde_json::to_string(&now).unwrap();
        let before = text.replace("\"limits\"", "\"walls\"");
        assert_ne!(before, text);
        assert_eq!(serde_json::from_str::<SandboxChoice>(&before).unwrap(), now);
    }

    #[test]
    fn a_sandbox_is_weaker_where_it_keeps_programs_from_less() {
        let best_effort = |network: &str| SandboxChoice::BestEffort {
            network: network.to_owned(),
            limits: Some(SandboxLimits::default()),
        };
        let strict = |network: &str, allow_weak| SandboxChoice::Strict {
            network: network.to_owned(),
            allow_weak,
            limits: None,
        };
        let from_weak_to_strong = [
            SandboxChoice::Off,
            best_effort("none"),
            strict("none", true),
            strict("none", false),
        ];
        for (place, weak) in from_weak_to_strong.iter().enumerate() {
            assert!(!weak.is_weaker_than(weak));
            for strong in &from_weak_to_strong[place + 1..] {
                assert!(weak.is_weaker_than(strong), "{weak:?} {strong:?}");
                assert!(!strong.is_weaker_than(weak), "{strong:?} {weak:?}");
            }
        }
        assert!(strict("full", false).is_weaker_than(&strict("none", false)));
        assert!(!strict("none", false).is_weaker_than(&strict("full", false)));
        let kept = best_effort("none").without_limits();
        assert!(!kept.is_weaker_than(&best_effort("none")));
        assert!(matches!(
            kept,
            SandboxChoice::BestEffort { limits: None, .. }
        ));
    }
}
