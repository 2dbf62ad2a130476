//! What has to be agreed: steps in order, each with who may decide and how many have to.

use nimbus_core::UserId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const MOST_STEPS: usize = 10;
const MOST_APPROVERS: usize = 50;
const LONGEST_NAME: usize = 80;
const SHORTEST_SECONDS: u64 = 1;
/// Ninety days.
const LONGEST_SECONDS: u64 = 90 * 24 * 60 * 60;

/// Steps, one after the other. All have to be approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalChain {
    pub steps: Vec<ApprovalStep>,
    /// Whoever asks may decide as well, where they are an approver.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_requests: bool,
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalStep {
    /// What people call it, such as `security`.
    pub name: String,
    pub approvers: Vec<Approver>,
    pub needs: ApprovalNeed,
    /// How long they have.
    pub timeout_seconds: u64,
    /// Who may decide as well when the time is over, with as much time again. One of them is enough, whatever the
    /// step needs. With nobody here the request expires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub escalate_to: Vec<Approver>,
}

/// Somebody who may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    User(UserId),
    /// Anybody who is in it when they decide.
    Group(Uuid),
}

/// How many of the approvers have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalNeed {
    Any,
    /// Each of them; of a group, one of its members.
    All,
    /// So many different people.
    Quorum(u32),
}

/// Why a chain cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainProblem {
    #[error("a chain has 1 to {MOST_STEPS} steps")]
    Steps,
    #[error("step {step} needs a name of 1 to {LONGEST_NAME} characters")]
    Name { step: usize },
    #[error("there are two steps named {name}")]
    Repeated { name: String },
    #[error("step {name} needs 1 to {MOST_APPROVERS} approvers, each named once")]
    Approvers { name: String },
    #[error("step {name} asks for {quorum} people of {most}")]
    Quorum {
        name: String,
        quorum: u32,
        most: usize,
    },
    #[error("step {name} needs a time of {SHORTEST_SECONDS} to {LONGEST_SECONDS} seconds")]
    Timeout { name: String },
}

impl ApprovalChain {
    /// Refuses a chain that could never end well, or whose steps cannot be told apart.
    ///
    /// # Errors
    ///
    /// The first problem.
    pub fn check(&self) -> Result<(), ChainProblem> {
        if !(1..=MOST_STEPS).contains(&self.steps.len()) {
            return Err(ChainProblem::Steps);
        }
        for (place, step) in self.steps.iter().enumerate() {
            let length = step.name.trim().chars().count();
            if !(1..=LONGEST_NAME).contains(&length) || step.name.chars().any(char::is_control) {
                return Err(ChainProblem::Name { step: place + 1 });
            }
            if self.steps[..place]
                .iter()
                .any(|other| other.name == step.name)
            {
                let name = step.name.clone();
                return Err(ChainProblem::Repeated { name });
            }
            step.check()?;
        }
        Ok(())
    }
}

impl ApprovalStep {
    fn check(&self) -> Result<(), ChainProblem> {
        let name = || self.name.clone();
        let all: Vec<_> = self.everybody().collect();
        let repeated = (1..all.len()).any(|place| all[..place].contains(&all[place]));
        let count = self.approvers.len();
        if !(1..=MOST_APPROVERS).contains(&count)
            || self.escalate_to.len() > MOST_APPROVERS
            || repeated
        {
            return Err(ChainProblem::Approvers { name: name() });
        }
        if let ApprovalNeed::Quorum(quorum) = self.needs {
            // How many people a group has is known when they decide.
            let people = |approver: &Approver| matches!(approver, Approver::User(_));
            let known = self.approvers.iter().all(people);
            let too_many = known && quorum as usize > count;
            if quorum == 0 || too_many {
                return Err(ChainProblem::Quorum {
                    name: name(),
                    quorum,
                    most: count,
                });
            }
        }
        if !(SHORTEST_SECONDS..=LONGEST_SECONDS).contains(&self.timeout_seconds) {
            return Err(ChainProblem::Timeout { name: name() });
        }
        Ok(())
    }

    /// Who may decide from the beginning, then who may when the time is over.
    pub(crate) fn everybody(&self) -> impl Iterator<Item = Approver> {
        self.approvers.iter().chain(&self.escalate_to).copied()
    }

    /// Who may decide now.
    pub fn approvers(&self, escalated: bool) -> Vec<Approver> {
        let count = match escalated {
            true => self.approvers.len() + self.escalate_to.len(),
            false => self.approvers.len(),
        };
        self.everybody().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str) -> ApprovalStep {
        ApprovalStep {
            name: name.to_owned(),
            approvers: vec![
                Approver::User(UserId::random()),
                Approver::Group(Uuid::new_v4()),
            ],
            needs: ApprovalNeed::Any,
            timeout_seconds: 3600,
            escalate_to: Vec::new(),
        }
    }

    fn of_steps(steps: Vec<ApprovalStep>) -> ApprovalChain {
        ApprovalChain {
            steps,
            own_requests: false,
        }
    }

    fn problem(change: impl FnOnce(&mut ApprovalStep)) -> Option<ChainProblem> {
        let mut steps = vec![step("security"), step("finance")];
        change(&mut steps[1]);
        of_steps(steps).check().err()
    }

    #[test]
    fn a_chain_that_could_not_end_well_is_refused_by_name() {
        assert_eq!(problem(|_| ()), None);
        assert_eq!(of_steps(Vec::new()).check(), Err(ChainProblem::Steps));
        let many = (0..11).map(|n| step(&n.to_string())).collect();
        assert_eq!(of_steps(many).check(), Err(ChainProblem::Steps));
        assert_eq!(
            problem(|step| step.name = " ".into()),
            Some(ChainProblem::Name { step: 2 })
        );
        assert!(matches!(
            problem(|step| step.name = "security".into()),
            Some(ChainProblem::Repeated { .. })
        ));
        for change in [
            (|step| step.approvers.clear()) as fn(&mut ApprovalStep),
            |step| step.approvers.push(step.approvers[0]),
            |step| step.escalate_to = step.approvers.clone(),
        ] {
            assert!(matches!(
                problem(change),
                Some(ChainProblem::Approvers { .. })
            ));
        }
        assert!(matches!(
            problem(|step| step.timeout_seconds = 0),
            Some(ChainProblem::Timeout { .. })
        ));
        let quorum = |people: bool, quorum| {
            problem(|step| {
                if people {
                    step.approvers = vec![Approver::User(UserId::random())];
                }
                step.needs = ApprovalNeed::Quorum(quorum);
            })
        };
        assert!(quorum(true, 2).is_some());
        assert!(quorum(true, 0).is_some());
        assert!(quorum(true, 1).is_none());
        // How many a group has is not known here.
        assert!(quorum(false, 5).is_none());
    }
}
