//! Values that a deployment takes from outside of itself.
//!
//! [`aws`] asks an AWS account for images, zones, parameters and secrets, and has its key management
//! service encrypt and decrypt; [`web`] reads files at web addresses. Nothing here knows of
//! manifests or placeholders: questions come in as words, answers go out as JSON with a mark on
//! those that nobody may see.

pub mod aws;
pub mod web;
