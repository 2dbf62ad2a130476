//! A request on its way through a chain: one pure state machine for decisions and deadlines.

use jiff::{SignedDuration, Timestamp};
use nimbus_core::UserId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::chain::{ApprovalChain, ApprovalNeed, ApprovalStep, Approver};

/// Where a request is, with everything that was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalProgress {
    pub state: ApprovalState,
    /// Oldest first.
    pub decisions: Vec<ApprovalDecision>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ApprovalState {
    /// Somebody of this step has to decide.
    Pending {
        step: usize,
        /// The first time was over, and others may decide as well.
        escalated: bool,
        since: Timestamp,
    },
    Approved {
        at: Timestamp,
    },
    Rejected {
        at: Timestamp,
        by: UserId,
        reason: String,
    },
    /// Nobody decided in time.
    Expired {
        at: Timestamp,
        step: usize,
    },
    /// Whoever asked no longer wants it.
    Withdrawn {
        at: Timestamp,
        by: UserId,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalVerdict {
    Approve,
    Reject,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    pub step: usize,
    pub by: UserId,
    /// Who had asked them to decide in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_user: Option<UserId>,
    pub verdict: ApprovalVerdict,
    pub comment: String,
    pub at: Timestamp,
    /// Which of the step's approvers it speaks for, by place. Kept, because groups change.
    pub covers: Vec<usize>,
}

/// Who decides, as they are now.
#[derive(Clone, Debug)]
pub struct Decider {
    pub user: UserId,
    pub groups: Vec<Uuid>,
    /// People who asked them to decide in their place.
    pub delegators: Vec<Delegator>,
}

/// Somebody who lets another decide.
#[derive(Clone, Debug)]
pub struct Delegator {
    pub user: UserId,
    pub groups: Vec<Uuid>,
}

/// Why a decision does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRefusal {
    #[error("the request is {word} already")]
    Ended { word: &'static str },
    #[error("the time to decide on step {step} is over")]
    TooLate { step: String },
    #[error("step {step} is for others to decide")]
    NotApprover { step: String },
    #[error("nobody decides on what they asked for themselves")]
    OwnRequest,
    #[error("you have decided on step {step} already")]
    Twice { step: String },
    #[error("say why it is rejected")]
    ReasonNeeded,
}

impl ApprovalState {
    /// As lists and rows have it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Approved { .. } => "approved",
            Self::Rejected { .. } => "rejected",
            Self::Expired { .. } => "expired",
            Self::Withdrawn { .. } => "withdrawn",
        }
    }
}

impl ApprovalProgress {
    pub fn begin(now: Timestamp) -> Self {
        Self {
            state: ApprovalState::Pending {
                step: 0,
                escalated: false,
                since: now,
            },
            decisions: Vec::new(),
        }
    }

    /// When the time of the present step is over; nothing if nothing is waited for.
    pub fn deadline(&self, chain: &ApprovalChain) -> Option<Timestamp> {
        let ApprovalState::Pending { step, since, .. } = &self.state else {
            return None;
        };
        let seconds = chain.steps.get(*step)?.timeout_seconds;
        let time = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        since.checked_add(time).ok()
    }

    /// A decision of somebody.
    ///
    /// # Errors
    ///
    /// When it does not count: nothing changes.
    pub fn decide(
        &self,
        chain: &ApprovalChain,
        requester: UserId,
        decider: &Decider,
        verdict: ApprovalVerdict,
        comment: &str,
        now: Timestamp,
    ) -> Result<Self, ApprovalRefusal> {
        let (place, escalated) = match &self.state {
            ApprovalState::Pending {
                step, escalated, ..
            } => (*step, *escalated),
            ended => {
                return Err(ApprovalRefusal::Ended { word: ended.word() });
            }
        };
        let Some(step) = chain.steps.get(place) else {
            return Err(ApprovalRefusal::Ended { word: "approved" });
        };
        let name = || step.name.clone();
        // In nobody's place either: whoever is asked for leave cannot give it.
        let own = decider.user == requester;
        if own && !chain.own_requests {
            return Err(ApprovalRefusal::OwnRequest);
        }
        let here = || {
            self.decisions
                .iter()
                .filter(|decision| decision.step == place)
        };
        let spoken: Vec<UserId> = here().map(ApprovalDecision::speaks_for).collect();
        // Nor does anybody whose voice another has used.
        if here().any(|decision| decision.by == decider.user) || spoken.contains(&decider.user) {
            return Err(ApprovalRefusal::Twice { step: name() });
        }
        let (for_user, covers) = step
            .standing(decider, requester, escalated, &spoken)
            .ok_or_else(|| ApprovalRefusal::NotApprover { step: name() })?;
        // A chain lets them speak for themselves, and for nobody who might have said no.
        if own && for_user.is_some() {
            return Err(ApprovalRefusal::OwnRequest);
        }
        if self.deadline(chain).is_some_and(|deadline| now >= deadline) {
            return Err(ApprovalRefusal::TooLate { step: name() });
        }
        let comment = comment.trim();
        if verdict == ApprovalVerdict::Reject && comment.is_empty() {
            return Err(ApprovalRefusal::ReasonNeeded);
        }
        let mut next = self.clone();
        next.decisions.push(ApprovalDecision {
            step: place,
            by: decider.user,
            for_user,
            verdict,
            comment: comment.to_owned(),
            at: now,
            covers,
        });
        next.state = match verdict {
            ApprovalVerdict::Reject => ApprovalState::Rejected {
                at: now,
                by: decider.user,
                reason: comment.to_owned(),
            },
            ApprovalVerdict::Approve if !next.is_met(place, step) => return Ok(next),
            ApprovalVerdict::Approve if place + 1 == chain.steps.len() => {
                ApprovalState::Approved { at: now }
            }
            ApprovalVerdict::Approve => ApprovalState::Pending {
                step: place + 1,
                escalated: false,
                since: now,
            },
        };
        Ok(next)
    }

    /// What the passing of time changes, if it does.
    pub fn time_out(&self, chain: &ApprovalChain, now: Timestamp) -> Option<Self> {
        let ApprovalState::Pending {
            step, escalated, ..
        } = &self.state
        else {
            return None;
        };
        if now < self.deadline(chain)? {
            return None;
        }
        let others = !chain.steps.get(*step)?.escalate_to.is_empty();
        let state = match others && !escalated {
            true => ApprovalState::Pending {
                step: *step,
                escalated: true,
                since: now,
            },
            false => ApprovalState::Expired {
                at: now,
                step: *step,
            },
        };
        Some(Self {
            state,
            decisions: self.decisions.clone(),
        })
    }

    /// Whoever asked takes the request back.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn withdraw(&self, by: UserId, now: Timestamp) -> Result<Self, ApprovalRefusal> {
        match &self.state {
            ApprovalState::Pending { .. } => Ok(Self {
                state: ApprovalState::Withdrawn { at: now, by },
                decisions: self.decisions.clone(),
            }),
            ended => Err(ApprovalRefusal::Ended { word: ended.word() }),
        }
    }

    /// Whether enough have agreed.
    fn is_met(&self, place: usize, step: &ApprovalStep) -> bool {
        let approvals = || {
            self.decisions.iter().filter(move |decision| {
                decision.step == place && decision.verdict == ApprovalVerdict::Approve
            })
        };
        let covered = |place: usize| approvals().any(|decision| decision.covers.contains(&place));
        let first_of_others = step.approvers.len();
        if approvals().any(|decision| {
            decision
                .covers
                .iter()
                .any(|place| *place >= first_of_others)
        }) {
            return true;
        }
        match step.needs {
            ApprovalNeed::Any => approvals().next().is_some(),
            ApprovalNeed::All => (0..first_of_others).all(covered),
            // People who decided are different people already.
            ApprovalNeed::Quorum(quorum) => approvals().count() >= quorum as usize,
        }
    }
}

impl ApprovalDecision {
    fn speaks_for(&self) -> UserId {
        self.for_user.unwrap_or(self.by)
    }
}

impl ApprovalStep {
    /// In whose name somebody decides, and for which approvers: in their own if they can, else in that of somebody
    /// who asked them to and has not spoken.
    fn standing(
        &self,
        decider: &Decider,
        requester: UserId,
        escalated: bool,
        spoken: &[UserId],
    ) -> Option<(Option<UserId>, Vec<usize>)> {
        let may = self.approvers(escalated);
        let covers = |user: UserId, groups: &[Uuid]| -> Vec<usize> {
            let is = |approver: &Approver| match approver {
                Approver::User(one) => *one == user,
                Approver::Group(group) => groups.contains(group),
            };
            (0..may.len()).filter(|place| is(&may[*place])).collect()
        };
        let own = covers(decider.user, &decider.groups);
        if !own.is_empty() {
            return Some((None, own));
        }
        decider
            .delegators
            .iter()
            .filter(|one| one.user != requester && !spoken.contains(&one.user))
            .find_map(|one| {
                let covers = covers(one.user, &one.groups);
                (!covers.is_empty()).then_some((Some(one.user), covers))
            })
    }
}

#[cfg(test)]
mod tests;
