//! Passwords: how they are stored, and which ones are refused.

mod common;
mod hash;
mod policy;

pub use hash::{Cost, Hasher, MAX_BYTES, Verified};
pub use policy::{MIN_CHARACTERS, PasswordContext, PasswordWeakness, check};
