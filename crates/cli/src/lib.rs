//! The nimbus command.
