//! Who somebody is, and what they may do. Pure: no database, no network, no clock of its own.
//!
//! Reading order: `password` (hashing and what is too easy to guess), `token`, `refresh` and
//! `api_key` (how a session or a program proves itself), `attempts` and `rate` (how guessing and
//! flooding are slowed), `csrf` (when a cookie counts), `permission`, `operation` and `role` (what
//! there is to permit, what needs it, who has it), `access` (the decision, by Cedar, with its
//! reason).
//!
//! Secrets are compared in constant time, erased from memory and never shown.

pub mod access;
pub mod api_key;
pub mod attempts;
pub mod csrf;
pub mod network;
pub mod operation;
pub mod password;
pub mod permission;
pub mod rate;
pub mod refresh;
pub mod role;
mod secret;
pub mod token;

pub use secret::{ServerKey, ServerKeys};
