//! From a tree of version 2.3 to the current one, and back.
//!
//! A migration is a list of changes to files, decided before anything is touched. Applying it first
//! writes a record beside the workspace, with everything that an undo needs; then the changes are
//! made one after the other, and after a failure those already made are taken back. What is in the
//! way is never overwritten.

mod changes;
mod legacy;
mod names;
mod paths;
mod tree;

pub use changes::{AppliedMigration, CopiedState, MigrationChange, WorkspaceMigration};
pub use legacy::LegacyManifest;
pub use names::{rename_environment, rename_scripts};
pub use paths::rewritten;
pub use tree::{StateMove, plan_tree};
