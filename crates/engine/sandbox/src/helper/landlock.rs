//! Landlock: the kernel refuses files that are not on the list, whoever owns them.
//!
//! In a view of its own the list says once more what the view says. Without one, it is the view.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};

use super::view::{NETWORK_SETTINGS, SETTINGS, SYSTEM};
use crate::plan::{HelperPlan, ProcessIsolation};
use crate::policy::ProgramNetwork;

/// The newest rules that were tried.
const NEWEST: ABI = ABI::V7;

/// Devices that may be read and written.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

pub(super) fn restrict(plan: &HelperPlan, temporary: &Path) -> io::Result<()> {
    if plan.measures.landlock_abi == 0 {
        return Ok(());
    }
    apply(plan, temporary).map_err(|error| io::Error::other(error.to_string()))
}

fn apply(plan: &HelperPlan, temporary: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let everything = AccessFs::from_all(NEWEST);
    let read = AccessFs::from_read(NEWEST);
    // Devices are made by nobody.
    let write = everything & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .scope(Scope::from_all(NEWEST))?;
    if refuses_connections(plan) {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let policy = &plan.policy;
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(readable(plan), read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(
            [temporary, Path::new("/dev/shm")],
            write,
        ))?
        .add_rules(path_beneath_rules(&policy.writable, write))?
        .restrict_self()?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce it".into()),
        _ => Ok(()),
    }
}

/// Without a network namespace, landlock refuses connections; seccomp refuses what is not TCP.
fn refuses_connections(plan: &HelperPlan) -> bool {
    plan.measures.isolation == ProcessIsolation::Refusals
        && plan.policy.network == ProgramNetwork::None
}

fn readable(plan: &HelperPlan) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = SYSTEM.iter().chain(SETTINGS).map(PathBuf::from).collect();
    if plan.policy.network == ProgramNetwork::Full {
        paths.extend(NETWORK_SETTINGS.iter().map(PathBuf::from));
    }
    // What others keep there stays closed: the kernel lets nobody look into processes outside.
    paths.extend(["/proc", "/etc/passwd", "/etc/group", "/etc/hosts"].map(PathBuf::from));
    let policy = &plan.policy;
    paths.extend(policy.read_only.iter().chain(&policy.exact).cloned());
    paths
}
