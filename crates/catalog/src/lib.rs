//! What a component is and what may be done with it, decided without touching anything.
//!
//! A component is a program with a contract: inputs and outputs as JSON Schema 2020-12, and inputs that a
//! resolver answers. Here contracts are checked, compared with what a program does, compared with each other
//! from version to version, and wired to each other. Rules say who may use a component and how; their
//! expressions are CEL inside limits of our own. Nothing here names a database, a file or a process.
//!
//! Reading order: `contract`, `claims` (contract against code), `compatibility`, `difference`, `wiring`,
//! `definition` (a component as a stack template and back), then `rule`, `expression` and `tokens`; `upgrade` and
//! `rollout` say how instances go from version to version.

mod claims;
mod compatibility;
mod contract;
mod definition;
mod difference;
mod expansion;
mod expression;
mod rollout;
mod rule;
mod tokens;
mod upgrade;
mod wiring;

pub use claims::{ClaimProblem, ProgramSurface, SourceProblem, SurfaceReader, compare_claims};
pub use compatibility::{ContractChange, ContractChanges, VersionStep, compare, next_version};
pub use contract::{
    ComponentContract, ContractBinding, ContractProblem, schema_problems, value_problems,
};
pub use definition::{ComponentDefinition, ProgramLanguage, from_template, to_template};
pub use difference::{FileChange, FileDifference, compare_files};
pub use expression::{Expression, ExpressionProblem, ExpressionVerdict};
pub use rollout::{
    InstanceProgress, PauseReason, RolloutAdvance, RolloutPlace, RolloutPolicy, RolloutRefusal,
    RolloutSignal, RolloutState, WaveProblem, WaveRule, advance_rollout, plan_waves,
    signal_rollout,
};
pub use rule::{
    CelRule, ParameterLimit, ParameterRules, ParameterViolation, RuleProblem, check_rules,
    rule_facts, violations,
};
pub use upgrade::{
    PathRefusal, UpgradePath, UpgradeWorkflow, VersionOnPath, validate_upgrade_path,
};
pub use wiring::{WiringProblem, check_wiring};
