//! Approvals: who has to agree before something happens, and how far that is.
//!
//! A [`ApprovalChain`] is a list of steps, each with its approvers, how many of them are needed and how long
//! they have. [`ApprovalProgress`] is a request on its way through one: a decision or the passing of time
//! gives the next progress, or a typed refusal. Nothing here reads a clock or a table; whoever calls says what
//! time it is and who somebody is.
//!
//! The workflow that waits for a request's decisions and deadlines is `ApprovalChainWorkflow` of
//! `nimbus-control-flows`. What was decided is decided where it was recorded; the workflow brings time into it.

mod chain;
mod progress;

pub use chain::{ApprovalChain, ApprovalNeed, ApprovalStep, Approver, ChainProblem};
pub use progress::{
    ApprovalDecision, ApprovalProgress, ApprovalRefusal, ApprovalState, ApprovalVerdict, Decider,
    Delegator,
};
