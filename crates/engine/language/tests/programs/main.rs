//! Real programs with real SDKs against a stand-in for the deployment.
//!
//! `NIMBUS_TEST_NODE_SDK` names a directory whose `node_modules` has `@pulumi/pulumi`, `typescript`
//! and `@types/node`; `NIMBUS_TEST_PYTHON` names an interpreter that has `pulumi`. Without them the
//! tests that need them say loudly that they were skipped.

mod code;
mod node;
mod node_failures;
mod python;
mod support;
mod typescript;
mod views;
mod warm;
