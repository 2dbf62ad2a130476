//! The same commands by noun and verb, as `gh` and `kubectl` have them: `nimbus deployment list` is
//! `nimbus list`. Each verb takes the arguments of the command that it stands for and becomes it
//! before anything is decided, so there is no second way for anything to behave.

use clap::Subcommand;

use super::admin::catalog::{self, CatalogCommand};
use super::admin::fleet;
use super::admin::zone::{self, ZoneCommand};
use super::{NimbusCommand, deployment, registration, template};

/// Verbs of `nimbus deployment`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeploymentGroup {
    /// Make a deployment from a template (init)
    Create(deployment::init::InitArgs),
    /// Make components of a deployment from existing Pulumi projects (adopt)
    Adopt(deployment::adopt::AdoptArgs),
    /// List the deployments of this workspace (list)
    #[command(visible_alias = "ls")]
    List(deployment::list::ListDeploymentsArgs),
    /// Show what is deployed and how the last runs ended (status)
    #[command(visible_alias = "view")]
    Status(deployment::status::StatusArgs),
    /// Show what a deploy would do (preview)
    Preview(deployment::run::PreviewArgs),
    /// Deploy an environment (deploy)
    Deploy(deployment::run::DeployArgs),
    /// Look whether what is there is what is recorded (refresh)
    Refresh(deployment::run::RefreshDeploymentArgs),
    /// Return an environment to an earlier version (rollback)
    Rollback(deployment::run::RollbackArgs),
    /// Delete what an environment has (destroy)
    Destroy(deployment::run::DestroyArgs),
    /// Archive a deployment of which nothing is left (decommission)
    Decommission(deployment::decommission::DecommissionArgs),
    /// Check manifest and configuration (validate)
    Validate(deployment::validate::ValidateDeploymentArgs),
    /// Show which stack needs which (graph)
    Graph(deployment::graph::GraphArgs),
    /// Say why a stack would run, or be skipped (why)
    Why(deployment::why::WhyArgs),
    /// Write the states of an environment to a file (export-state)
    Export(deployment::export_state::ExportStateArgs),
    /// List what is deployed (discover-resources)
    Resources(deployment::resources::ResourcesArgs),
}

/// Verbs of `nimbus environment`.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentGroup {
    /// List the environments of a deployment (list-environments)
    #[command(visible_alias = "ls")]
    List(deployment::environments::ListEnvironmentsArgs),
    /// Let an environment be deployed (enable-environment)
    Enable(deployment::environments::SwitchArgs),
    /// Keep an environment from being deployed (disable-environment)
    Disable(deployment::environments::SwitchArgs),
    /// Show or record what an environment needs before the next one follows (gate)
    Gate(deployment::gate::GateArgs),
    /// List environments in landing zones of a server (zone environments)
    Zones(zone::ZoneListArgs),
    /// Show an environment in a landing zone (zone environment)
    Show(zone::ZoneEnvironmentArgs),
    /// Make an environment in a landing zone (zone create-environment)
    Create(zone::NewEnvironmentArgs),
    /// Destroy and remove an environment in a landing zone (zone delete-environment)
    Delete(zone::ZoneEnvironmentArgs),
}

/// Verbs of `nimbus template`.
#[derive(Debug, Subcommand)]
pub(crate) enum TemplateGroup {
    /// List the templates that deployments are made from (list-templates)
    #[command(visible_alias = "ls")]
    List(deployment::templates::ListTemplatesArgs),
    /// Print a template (show-template)
    #[command(visible_alias = "view")]
    Show(deployment::templates::NameArgs),
    /// Check a template by rendering it (validate-template)
    Validate(deployment::templates::NameArgs),
    /// Make a template from a deployment (create-template)
    Create(template::CreateArgs),
    /// Change which stacks a template uses (update-template)
    Update(template::UpdateArgs),
}

/// Verbs of `nimbus component`.
#[derive(Debug, Subcommand)]
pub(crate) enum ComponentGroup {
    /// List the registered stacks (list-stacks)
    #[command(visible_alias = "ls")]
    List(deployment::stacks::ListStacksArgs),
    /// List the programs under stacks/ (discover)
    Discover(deployment::stacks::ListStacksArgs),
    /// Make a stack from the scaffold (new-stack)
    New(registration::scaffold::ScaffoldStackArgs),
    /// Make a program available to deployments (register-stack)
    Register(registration::register::RegisterStackArgs),
    /// Register every program that discovery finds (register-all-stacks)
    RegisterAll(registration::all::RegisterAllArgs),
    /// Change what is registered of a stack (update-stack)
    Update(registration::update::UpdateStackArgs),
    /// Take a stack out of the registry (unregister-stack)
    Unregister(registration::unregister::UnregisterStackArgs),
    /// Check one stack of a deployment (validate-stack)
    Validate(deployment::validate::ValidateStackArgs),
    /// Deploy one stack of an environment (deploy-stack)
    Deploy(deployment::run::DeployStackArgs),
    /// Delete what one stack of an environment has (destroy-stack)
    Destroy(deployment::run::DestroyStackArgs),
    /// Publish the components of a folder or a repository on a server (catalog import)
    Import(catalog::ImportArgs),
    /// List the components of a server's catalog (catalog list)
    Catalog(catalog::CatalogListArgs),
    /// Show a component of the catalog (catalog show)
    Show(catalog::ComponentNameArgs),
    /// Publish a component's draft as a version (catalog publish)
    Publish(catalog::PublishArgs),
    /// List versions of a component (catalog versions)
    Versions(catalog::ComponentNameArgs),
    /// Show what is different between two versions (catalog diff)
    Diff(catalog::CompareArgs),
    /// Say that a version should not be used any more (catalog deprecate)
    Deprecate(catalog::DeprecateArgs),
    /// Take a component out of the catalog (catalog remove)
    Remove(catalog::ComponentNameArgs),
    /// List where a component is deployed (catalog instances)
    Instances(catalog::ComponentNameArgs),
    /// Show what a version would mean for every instance (catalog impact)
    Impact(fleet::ImpactArgs),
    /// Preview instances with a version that they do not have (catalog preview)
    Preview(fleet::PreviewVersionArgs),
    /// Upgrade one instance to a later version (catalog upgrade)
    Upgrade(fleet::UpgradeArgs),
    /// Upgrade instances in waves (catalog rollout)
    #[command(subcommand)]
    Rollout(fleet::RolloutCommand),
}

/// Groups whose verbs stand for other commands; the reference describes those.
pub(crate) const GROUPED: [&str; 4] = ["deployment", "environment", "template", "component"];

impl NimbusCommand {
    /// The command that a verb of a group stands for.
    pub(crate) fn ungrouped(self) -> Self {
        match self {
            Self::Deployment(group) => match group {
                DeploymentGroup::Create(args) => Self::Init(args),
                DeploymentGroup::Adopt(args) => Self::Adopt(args),
                DeploymentGroup::List(args) => Self::List(args),
                DeploymentGroup::Status(args) => Self::Status(args),
                DeploymentGroup::Preview(args) => Self::Preview(args),
                DeploymentGroup::Deploy(args) => Self::Deploy(args),
                DeploymentGroup::Refresh(args) => Self::Refresh(args),
                DeploymentGroup::Rollback(args) => Self::Rollback(args),
                DeploymentGroup::Destroy(args) => Self::Destroy(args),
                DeploymentGroup::Decommission(args) => Self::Decommission(args),
                DeploymentGroup::Validate(args) => Self::Validate(args),
                DeploymentGroup::Graph(args) => Self::Graph(args),
                DeploymentGroup::Why(args) => Self::Why(args),
                DeploymentGroup::Export(args) => Self::ExportState(args),
                DeploymentGroup::Resources(args) => Self::DiscoverResources(args),
            },
            Self::Environment(group) => match group {
                EnvironmentGroup::List(args) => Self::ListEnvironments(args),
                EnvironmentGroup::Enable(args) => Self::EnableEnvironment(args),
                EnvironmentGroup::Disable(args) => Self::DisableEnvironment(args),
                EnvironmentGroup::Gate(args) => Self::Gate(args),
                EnvironmentGroup::Zones(args) => Self::Zone(ZoneCommand::Environments(args)),
                EnvironmentGroup::Show(args) => Self::Zone(ZoneCommand::Environment(args)),
                EnvironmentGroup::Create(args) => Self::Zone(ZoneCommand::CreateEnvironment(args)),
                EnvironmentGroup::Delete(args) => Self::Zone(ZoneCommand::DeleteEnvironment(args)),
            },
            Self::Template(group) => match group {
                TemplateGroup::List(args) => Self::ListTemplates(args),
                TemplateGroup::Show(args) => Self::ShowTemplate(args),
                TemplateGroup::Validate(args) => Self::ValidateTemplate(args),
                TemplateGroup::Create(args) => Self::CreateTemplate(args),
                TemplateGroup::Update(args) => Self::UpdateTemplate(args),
            },
            Self::Component(group) => match group {
                ComponentGroup::List(args) => Self::ListStacks(args),
                ComponentGroup::Discover(args) => Self::Discover(args),
                ComponentGroup::New(args) => Self::NewStack(args),
                ComponentGroup::Register(args) => Self::RegisterStack(args),
                ComponentGroup::RegisterAll(args) => Self::RegisterAllStacks(args),
                ComponentGroup::Update(args) => Self::UpdateStack(args),
                ComponentGroup::Unregister(args) => Self::UnregisterStack(args),
                ComponentGroup::Validate(args) => Self::ValidateStack(args),
                ComponentGroup::Deploy(args) => Self::DeployStack(args),
                ComponentGroup::Destroy(args) => Self::DestroyStack(args),
                ComponentGroup::Import(args) => Self::Catalog(CatalogCommand::Import(args)),
                ComponentGroup::Catalog(args) => Self::Catalog(CatalogCommand::List(args)),
                ComponentGroup::Show(args) => Self::Catalog(CatalogCommand::Show(args)),
                ComponentGroup::Publish(args) => Self::Catalog(CatalogCommand::Publish(args)),
                ComponentGroup::Versions(args) => Self::Catalog(CatalogCommand::Versions(args)),
                ComponentGroup::Diff(args) => Self::Catalog(CatalogCommand::Diff(args)),
                ComponentGroup::Deprecate(args) => Self::Catalog(CatalogCommand::Deprecate(args)),
                ComponentGroup::Remove(args) => Self::Catalog(CatalogCommand::Remove(args)),
                ComponentGroup::Instances(args) => Self::Catalog(CatalogCommand::Instances(args)),
                ComponentGroup::Impact(args) => Self::Catalog(CatalogCommand::Impact(args)),
                ComponentGroup::Preview(args) => Self::Catalog(CatalogCommand::Preview(args)),
                ComponentGroup::Upgrade(args) => Self::Catalog(CatalogCommand::Upgrade(args)),
                ComponentGroup::Rollout(args) => Self::Catalog(CatalogCommand::Rollout(args)),
            },
            other => other,
        }
    }
}
