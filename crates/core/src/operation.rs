//! What an operation does with a Pulumi stack: the one list that all layers mean.
//!
//! An engine's request, a deployment of the engine and a session of the backend use it as it is. What
//! an operation needs beyond its name (what to import, which state to go back to, whether it is only
//! shown) is among its options. A run's record keeps its own words on disk and a unit's job knows where
//! to go back to; both become this one with `From`, so that nobody compares the words of two layers.

/// What an operation does with a stack, whether it is shown first or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackOperation {
    /// Bring the stack to what its program wants.
    Update,
    /// Delete what the stack has.
    Destroy,
    /// Record what is really there.
    Refresh,
    /// Take existing objects under management.
    Import,
    /// Bring the stack back to a state that was recorded before.
    Restore,
}

impl StackOperation {
    /// Whether resources become what the program asks for. Before a destroy or a refresh a program
    /// is only listened to, for its providers and hooks.
    pub fn follows_program(self) -> bool {
        match self {
            Self::Update | Self::Import | Self::Restore => true,
            Self::Destroy | Self::Refresh => false,
        }
    }

    /// Its name for people, and in the names of spans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Destroy => "destroy",
            Self::Refresh => "refresh",
            Self::Import => "import",
            Self::Restore => "restore",
        }
    }
}
