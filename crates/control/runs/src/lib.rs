//! Runs on a server: the ports of `crates/runs` on the database, and the workers that carry runs out.
//!
//! A request is a row before anything starts ([`nimbus_control_store::NewRun`]); a worker takes it with an
//! epoch, which also takes its environment, and drives the same run core as the command line does. A worker
//! that dies leaves the row as it was: whoever takes it next goes on through the core's own resumption.
//!
//! Reading order: `vault`, `storage`, `layers`, `tenant_texts`, `tables`, `unit_states`, `access`, `programs`, `tenant_run`,
//! `inventory`, `carrier`, `queue`, `driver`.

mod access;
mod carrier;
mod counted;
mod credential_end;
mod driver;
mod inventory;
mod layers;
mod leases;
mod pinned;
mod programs;
mod queue;
mod run_rules;
mod states;
mod storage;
mod tables;
mod tenant_run;
mod tenant_texts;
mod unit_states;
mod vault;

pub use carrier::{RunCarrier, RunVerdict};
pub use driver::{DriverSettings, RunDriver, RunLimits};
pub use programs::{ProgramSettings, TenantPrograms};
pub use queue::{DatabaseQueue, RunQueue, RunSign, TakenRun};
pub use states::RecordedState;
pub use storage::DatabaseStorage;
pub use tenant_run::{TenantRun, TenantRuns};
pub use unit_states::UnitStack;
pub use vault::TenantVault;

pub use nimbus_engine_operations::{Cancellation, SandboxSettings};

use nimbus_engine_operations::{Helper, Probe};

/// Whether a text is an order that the simulated cloud of a rehearsal understands.
///
/// # Errors
///
/// When it is not, with the reason.
pub fn check_order(text: &str) -> nimbus_core::Result<()> {
    let choice = nimbus_runs::RehearsalChoice {
        more_orders: vec![text.to_owned()],
        ..nimbus_runs::RehearsalChoice::default()
    };
    nimbus_local::rehearsal_orders(&choice).map(drop)
}

/// What this machine lacks to keep programs of strangers apart, tried now; `None` when it cannot be tried.
pub fn missing_isolation() -> Option<Vec<String>> {
    let helper = Helper::this_program().ok()?;
    let probe = Probe::run(&helper);
    let missing = probe.missing();
    Some(missing.iter().map(|one| one.title().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::check_order;

    #[test]
    fn an_order_is_understood_or_refused_before_a_run_has_it() {
        assert!(check_order("on: create, type: aws:s3/bucket:Bucket, do: fail").is_ok());
        for wrong in [
            "",
            "nonsense",
            "on: create",
            "on: [",
            "do: explode, on: create",
        ] {
            assert!(check_order(wrong).is_err(), "{wrong}");
        }
    }
}
