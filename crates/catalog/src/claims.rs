//! A contract against a program: what it says is read and given, against what the code reads and gives.
//!
//! Reading code is somebody else's work, behind [`SurfaceReader`]: the languages' parsers are large, and what is
//! decided here needs none of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contract::{ComponentContract, properties, required};
use crate::definition::ProgramLanguage;

/// What a program shows of itself without being run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSurface {
    /// Names that it exports.
    pub outputs: BTreeSet<String>,
    /// Whether it also exports what only a run can tell: a function, or another module's names.
    pub open_outputs: bool,
    /// Configuration keys that it asks for, and that have to be there.
    pub required_keys: BTreeSet<String>,
    /// Every text in it: a key that is nowhere is not read.
    pub texts: BTreeSet<String>,
    /// Whether all that could read configuration is in these files.
    pub self_contained: bool,
}

/// Why a program cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{file}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct SourceProblem {
    pub file: String,
    pub line: Option<usize>,
    pub message: String,
}

/// Reads programs without running them.
pub trait SurfaceReader: Send + Sync + std::fmt::Debug {
    /// What a program shows, by the texts of its files.
    fn read(
        &self,
        language: ProgramLanguage,
        files: &BTreeMap<String, String>,
    ) -> Result<ProgramSurface, Vec<SourceProblem>>;
}

/// What a contract and its program do not agree on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimProblem {
    #[error("the contract promises the output `{0}`, and the program does not export it")]
    OutputMissing(String),
    #[error("the program exports `{0}`, and the contract does not have it as an output")]
    OutputUndeclared(String),
    #[error("the program exports names that only a run can tell; export each output by its name")]
    OutputsOpen,
    #[error(
        "the program needs the configuration key `{0}`, and the contract does not have it as an input"
    )]
    KeyUndeclared(String),
    #[error("the contract asks for the input `{0}`, and nothing in the program names it")]
    KeyUnread(String),
}

/// Compares a contract with what its program shows.
pub fn compare_claims(contract: &ComponentContract, surface: &ProgramSurface) -> Vec<ClaimProblem> {
    let promised: BTreeSet<&str> = contract.output_names().collect();
    let mut problems = Vec::new();
    if surface.open_outputs {
        problems.push(ClaimProblem::OutputsOpen);
    } else {
        for name in &promised {
            if !surface.outputs.contains(*name) {
                problems.push(ClaimProblem::OutputMissing((*name).to_owned()));
            }
        }
    }
    for name in &surface.outputs {
        if !promised.contains(name.as_str()) {
            problems.push(ClaimProblem::OutputUndeclared(name.clone()));
        }
    }
    let inputs = properties(&contract.inputs);
    let open = contract.inputs.get("additionalProperties") != Some(&Value::Bool(false));
    for key in &surface.required_keys {
        // A key of another namespace, such as `aws:region`, is for a provider.
        let own = !key.contains(':');
        if own && !inputs.contains_key(key) && !(open && inputs.is_empty()) {
            problems.push(ClaimProblem::KeyUndeclared(key.clone()));
        }
    }
    for key in required(&contract.inputs) {
        let named = key.contains(':') || COMMON.contains(&key) || surface.texts.contains(key);
        if surface.self_contained && !named {
            problems.push(ClaimProblem::KeyUnread(key.to_owned()));
        }
    }
    problems
}

/// What every component is given, and what a shared reader reads for it.
const COMMON: &[&str] = &[
    "deploymentId",
    "organization",
    "project",
    "environment",
    "domain",
    "team",
    "costCenter",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_program_that_lies_about_its_outputs_or_inputs_is_found() {
        let contract = ComponentContract {
            inputs: json!({"type": "object", "required": ["size"], "properties": {"size": {}}}),
            outputs: json!({"type": "object", "properties": {"id": {}}}),
            ..ComponentContract::default()
        };
        let honest = ProgramSurface {
            outputs: names(&["id"]),
            required_keys: names(&["size", "aws:region"]),
            texts: names(&["size"]),
            ..ProgramSurface::default()
        };
        assert_eq!(compare_claims(&contract, &honest), []);
        let liar = ProgramSurface {
            outputs: names(&["url"]),
            required_keys: names(&["secret"]),
            self_contained: true,
            ..ProgramSurface::default()
        };
        assert_eq!(
            compare_claims(&contract, &liar),
            [
                ClaimProblem::OutputMissing("id".to_owned()),
                ClaimProblem::OutputUndeclared("url".to_owned()),
                ClaimProblem::KeyUndeclared("secret".to_owned()),
                ClaimProblem::KeyUnread("size".to_owned()),
            ]
        );
        let open = ProgramSurface {
            open_outputs: true,
            texts: names(&["size"]),
            ..ProgramSurface::default()
        };
        assert_eq!(
            compare_claims(&contract, &open),
            [ClaimProblem::OutputsOpen]
        );
    }
}
