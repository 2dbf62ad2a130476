//! The decision: may this caller do this to that, here and now?
//!
//! Roles, conditions and limits become Cedar policies; Cedar decides. Nothing is allowed that no
//! policy permits, and a policy that forbids beats every one that permits. The answer carries the
//! policies that decided, so that it can be explained.
//!
//! Reading order: `condition` (attributes that a role may depend on), `policies` (how roles become
//! Cedar), `decide` (the question and the answer), `delegate` (what of it may be passed on).

mod condition;
mod decide;
mod delegate;
mod policies;

pub use condition::{ConditionError, Conditions, TimeWindow};
pub use decide::{
    Assignment, AssignmentReach, Caller, Circumstances, Decision, PolicyEngine, Resource,
};
pub use delegate::{Delegation, Excess, Validity};
