//! Whole operations, rule by rule.

mod alias;
mod basics;
mod failures;
mod hooks;
mod importing;
mod listening;
mod options;
mod plans;
mod policies;
mod previews;
mod providers;
mod refreshing;
mod replacing;
mod support;
mod targeting;
