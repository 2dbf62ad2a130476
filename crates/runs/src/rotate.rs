//! Forgetting values that were made up once, so that the next deploy makes new ones.

use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};

use crate::lock_wait::take_environment;
use crate::ports::{EnvironmentLocks, UnitMemories};

/// Which values are forgotten.
#[derive(Clone, Copy, Debug)]
pub struct RotateRequest<'a> {
    pub component: &'a ComponentName,
    pub environment: EnvironmentName,
    /// Only this calculation, such as `password` or `password:32:admin`; all when absent.
    pub only: Option<&'a str>,
}

/// Forgets made-up values of a unit and names the calculations they came from. The environment is
/// held meanwhile: a deploy writes the same memory, and the later of two writers would bring the
/// value of the other one back.
///
/// # Errors
///
/// When a run holds the environment, or there is no such value.
pub async fn rotate(
    memories: &dyn UnitMemories,
    locks: &dyn EnvironmentLocks,
    request: RotateRequest<'_>,
    command: &str,
) -> Result<Vec<String>> {
    let RotateRequest {
        component,
        environment,
        only,
    } = request;
    let guard = take_environment(locks, environment, command, None).await?;
    let mut memory = memories.load(component, environment).await?;
    let is_meant = |name: &str| {
        only.is_none_or(|only| {
            let rest = name.strip_prefix(only);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    };
    let names = memory.made.keys();
    let forgotten: Vec<String> = names.filter(|name| is_meant(name)).cloned().collect();
    if forgotten.is_empty() {
        let message = format!("{component} has no such made-up value in {environment}");
        return Err(Error::new(ErrorCode::CONFIG_NOT_SET, message)
            .with_help("a value is made up by the first deploy that needs it"));
    }
    memory.made.retain(|name, _| !is_meant(name));
    memories.save(component, environment, &memory).await?;
    drop(guard);
    Ok(forgotten)
}
