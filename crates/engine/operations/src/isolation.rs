//! The sandbox that programs run in, decided once per run.

use nimbus_core::{Error, ErrorCode, Result};
use nimbus_engine_sandbox::{
    Helper, IsolationMode, Probe, ProgramNetwork, Sandbox, SandboxSettings,
};

/// A sandbox, and what an operator who accepts less than everything should keep seeing.
pub(crate) struct Decided {
    pub(crate) sandbox: Sandbox,
    pub(crate) warning: Option<String>,
}

/// Looks at what this machine offers and decides what is done, or that nothing is run.
pub(crate) async fn decide(settings: SandboxSettings) -> Result<Decided> {
    let decided = tokio::task::spawn_blocking(move || {
        let helper = Helper::this_program().map_err(|error| {
            Error::new(
                ErrorCode::SANDBOX_FAILED,
                "Nimbus cannot find its own program",
            )
            .with_source(error)
        })?;
        let probe = Probe::run(&helper);
        Ok(Decided {
            warning: warning(&probe, &settings),
            sandbox: Sandbox::new(helper, &probe, settings)?,
        })
    });
    decided.await.map_err(|error| {
        Error::new(ErrorCode::INTERNAL, "the sandbox was not decided on").with_source(error)
    })?
}

fn warning(probe: &Probe, settings: &SandboxSettings) -> Option<String> {
    if settings.mode != (IsolationMode::Strict { allow_weak: true }) {
        return None;
    }
    let missing = probe.missing();
    let mut weak: Vec<&str> = missing.iter().map(|primitive| primitive.title()).collect();
    if settings.network == ProgramNetwork::Full {
        weak.push("a network of its own");
    }
    (!weak.is_empty()).then(|| {
        let weak = weak.join(", ");
        format!("WEAK ISOLATION, allowed by the operator: the program runs without {weak}")
    })
}

#[cfg(test)]
mod tests {
    use nimbus_engine_sandbox::{Allowances, ResourceLimits};

    use super::*;

    #[test]
    fn accepted_weakness_is_told_in_every_run() {
        // Without a helper nothing can be tried, so nothing is known to work.
        let probe = Probe::run(&Helper::at("/no/such/helper"));
        let settings = |mode| SandboxSettings {
            mode,
            network: ProgramNetwork::Full,
            limits: ResourceLimits::default(),
            environment: Vec::new(),
            roots: Vec::new(),
            allowances: Allowances::default(),
        };
        let accepted = settings(IsolationMode::Strict { allow_weak: true });
        let told = warning(&probe, &accepted).expect("a warning");
        assert!(told.contains("user namespaces") && told.contains("network of its own"));
        assert_eq!(warning(&probe, &settings(IsolationMode::BestEffort)), None);
    }
}
