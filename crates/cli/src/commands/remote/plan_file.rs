//! A plan of a server in a file: which preview it is. What was sealed stays on the server, so nobody can change
//! what a deploy is held to by editing the file.

use std::path::Path;

use nimbus_control_wire::Run;
use nimbus_core::{Error, ErrorCode, Result};
use nimbus_disk::FileMode;
use serde::{Deserialize, Serialize};

use crate::context::CommandContext;

const SCHEMA: &str = "nimbus/server-plan/1";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerPlan {
    schema: String,
    server: String,
    deployment: String,
    environment: String,
    rehearsal: bool,
    /// The preview that has the plan.
    run: String,
}

/// Writes which preview of which server it is.
pub(super) fn save(file: &Path, server: &str, run: &Run, context: &CommandContext) -> Result<()> {
    let plan = ServerPlan {
        schema: SCHEMA.to_owned(),
        server: server.to_owned(),
        deployment: run.deployment.clone(),
        environment: run.environment.clone(),
        rehearsal: run.rehearsal,
        run: run.id.clone(),
    };
    let bytes = serde_json::to_vec_pretty(&plan).unwrap_or_default();
    let path = context.directory.join(file);
    nimbus_disk::replace(&path, &bytes, FileMode::Private).map_err(|error| {
        let message = format!("cannot write the plan {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNWRITABLE, message).with_source(error)
    })
}

/// The preview that a file names, if it is one of this server.
pub(super) fn load(file: &Path, server: &str, context: &CommandContext) -> Result<String> {
    let path = context.directory.join(file);
    let bytes = std::fs::read(&path).map_err(|error| {
        let message = format!("cannot read the plan {}: {error}", path.display());
        Error::new(ErrorCode::FILE_UNREADABLE, message).with_source(error)
    })?;
    let unusable = |problem: &str| {
        let message = format!("{} cannot be used here: {problem}", path.display());
        Error::new(ErrorCode::PLAN_UNREADABLE, message)
            .with_help("make one with `nimbus preview --server URL --save FILE`")
    };
    let plan: ServerPlan = serde_json::from_slice(&bytes)
        .map_err(|_| unusable("it is not a plan that a server made"))?;
    if plan.schema != SCHEMA {
        return Err(unusable(&format!("its schema is {:?}", plan.schema)));
    }
    if plan.server != server {
        return Err(unusable(&format!("it was made by {}", plan.server)));
    }
    Ok(plan.run)
}
