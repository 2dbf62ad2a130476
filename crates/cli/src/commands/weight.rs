//! How much a command needs before it starts.
//!
//! Every command says so by name: one that is added has to be thought about.

use super::NimbusCommand;

/// How much machinery a command needs before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// One thread, no log; settings only if it asks. Works even when the settings are wrong.
    Light,
    /// Settings, log, traces and worker threads.
    Heavy,
}

impl NimbusCommand {
    pub(crate) fn weight(&self) -> Weight {
        match self {
            Self::Config(_)
            | Self::Up(_)
            | Self::Worker(_)
            | Self::MigrateDatabase(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Recover(_)
            | Self::Plugin(_)
            | Self::Program(_)
            | Self::Stack(_)
            | Self::State(_)
            | Self::Adopt(_)
            | Self::Deploy(_)
            | Self::Preview(_)
            | Self::Destroy(_)
            | Self::Decommission(_)
            | Self::DeployStack(_)
            | Self::DestroyStack(_)
            | Self::Refresh(_)
            | Self::ExportState(_)
            | Self::DiscoverResources(_)
            | Self::MigrateStackNaming(_)
            | Self::MigrateUndo(_)
            | Self::Resume(_)
            | Self::Rollback(_)
            | Self::ValidateAws(_)
            | Self::Why(_) => Weight::Heavy,
            Self::Doctor(_)
            | Self::Sandbox(_)
            | Self::Setup(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Tenant(_)
            | Self::User(_)
            | Self::Group(_)
            | Self::Resolver(_)
            | Self::Ipam(_)
            | Self::Naming(_)
            | Self::Image(_)
            | Self::Role(_)
            | Self::Key(_)
            | Self::Audit(_)
            | Self::Catalog(_)
            | Self::Rule(_)
            | Self::Zone(_)
            | Self::Cmdb(_)
            | Self::Approve(_)
            | Self::Notification(_)
            | Self::Webhook(_)
            | Self::Workflow(_)
            | Self::Schedule(_)
            | Self::Explain(_)
            | Self::StackConfig(_)
            | Self::New(_)
            | Self::Init(_)
            | Self::Secret(_)
            | Self::List(_)
            | Self::Status(_)
            | Self::Logs(_)
            | Self::Latencies(_)
            | Self::Locks(_)
            | Self::Unlock(_)
            | Self::Gate(_)
            | Self::Runs(_)
            | Self::Workspace(_)
            | Self::Validate(_)
            | Self::ValidateStack(_)
            | Self::ValidateDependencies(_)
            | Self::Graph(_)
            | Self::EnableEnvironment(_)
            | Self::DisableEnvironment(_)
            | Self::ListEnvironments(_)
            | Self::ListTemplates(_)
            | Self::ShowTemplate(_)
            | Self::ValidateTemplate(_)
            | Self::ListStacks(_)
            | Self::Discover(_)
            | Self::NewStack(_)
            | Self::RegisterStack(_)
            | Self::UpdateStack(_)
            | Self::UnregisterStack(_)
            | Self::RegisterAllStacks(_)
            | Self::CreateTemplate(_)
            | Self::UpdateTemplate(_)
            | Self::Rotate(_)
            | Self::Migrate(_)
            | Self::MigrateEnvironmentNames(_)
            | Self::MigrateStackScripts(_)
            | Self::ValidatePulumi(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::InternalDocs(_) => Weight::Light,
            // They have become what they stand for.
            Self::Deployment(_) | Self::Environment(_) | Self::Template(_) | Self::Component(_) => {
                Weight::Light
            }
        }
    }
}
