//! Saved plans: what a later operation is held to.

/// What one operation was seen to do, bound to the recorded state that it started from.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The state that the plan was made for.
    pub base_serial: String,
}
