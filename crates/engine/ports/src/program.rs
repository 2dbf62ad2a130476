//! A program: whatever asks the deployment for resources.

use std::sync::Arc;

use async_trait::async_trait;

use crate::registrar::Registrar;

/// A program has two ends: it has asked for everything it wants, and it is gone. Between the two
/// the deployment deletes what was not asked for, while the program's hooks can still be called.
#[async_trait]
pub trait Program: Send + Sync {
    /// Runs until the program has asked for all it wants. An error means that what it asked for
    /// is incomplete, so nothing may be deleted on its account.
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError>;

    /// Lets a waiting program end, and waits until it has.
    async fn finish(&self) -> Result<(), ProgramError>;
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program failed and has already said why.
    #[error("it said why above")]
    AlreadyReported,
    #[error("{message}")]
    Failed { message: String },
    #[error("cancelled")]
    Cancelled,
}
