//! The commands, one file per verb, a folder per noun.
//!
//! To add one: write `commands/<verb>.rs` (or `commands/<noun>/<verb>.rs`) with a struct that derives
//! `clap::Args` and `pub(crate) async fn run(args, context: &CommandContext) -> Result<CommandOutcome>`;
//! add a variant and an arm below and its weight in `weight.rs`; name it in a group of `args::GROUPS`; run
//! `cargo xtask tidy --bless`. CONTRIBUTING has the whole list.
//!
//! A command prints its result once, through
//! [`CommandOutput::result`](crate::output::CommandOutput::result), as a `Report` that has a text form
//! and a JSON form. It returns errors and never prints them.

mod admin;
mod completions;
mod config;
mod control;
mod deployment;
mod doctor;
mod explain;
mod groups;
mod internal_docs;
mod man;
mod migration;
mod plugin;
mod program;
mod registration;
mod remote;
mod sandbox;
mod stack;
mod stack_config;
mod state;
mod template;
mod trace;
mod validation;
mod values;
mod weight;
mod workspace;

use clap::Subcommand;
use nimbus_config::{DirectoryOwner, FlagValue};
use nimbus_core::Result;

use crate::context::CommandContext;
use crate::exit::CommandOutcome;

pub(crate) use admin::AdminReport;
pub(crate) use config::show::ShowReport;
pub(crate) use config::values::ConfigurationReport;
pub(crate) use control::{BackupReport, MigrateReport, RecoverReport, RestoreReport, UpReport};
pub(crate) use deployment::adopt::{AdoptReport, UndoneReport};
pub(crate) use deployment::decommission::DecommissionReport;
pub(crate) use deployment::environments::EnvironmentsReport;
pub(crate) use deployment::export_state::ExportStateReport;
pub(crate) use deployment::gate::GateReport;
pub(crate) use deployment::graph::GraphReport;
pub(crate) use deployment::init::InitReport;
pub(crate) use deployment::latencies::LatenciesReport;
pub(crate) use deployment::list::DeploymentListReport as DeploymentsReport;
pub(crate) use deployment::locks::{LocksReport, UnlockedReport};
pub(crate) use deployment::new::NewReport;
pub(crate) use deployment::resources::FoundResourcesReport as DeployedReport;
pub(crate) use deployment::rotate::RotateReport;
pub(crate) use deployment::run::{RunSummary, VersionsReport};
pub(crate) use deployment::run_view::RunViewReport;
pub(crate) use deployment::secret::{SecretChangeReport, SecretsReport};
pub(crate) use deployment::stacks::ListedStacksReport;
pub(crate) use deployment::status::StatusReport;
pub(crate) use deployment::templates::{TemplatesReport, ValidTemplate};
pub(crate) use deployment::validate::ValidateReport;
pub(crate) use deployment::why::WhyReport;
pub(crate) use doctor::DoctorReport;
pub(crate) use explain::{ErrorCodesReport, ExplainReport};
pub(crate) use groups::GROUPED;
pub(crate) use migration::NamingMigrationReport;
pub(crate) use plugin::{InstallReport, PluginsReport, RemoveReport};
pub(crate) use program::{CancelReport, OutputsReport};
pub(crate) use registration::StackReport;
pub(crate) use registration::all::AllReport;
pub(crate) use registration::scaffold::NewStackReport;
pub(crate) use remote::{PullReport, PushReport, RunsReport};
pub(crate) use sandbox::audit::SandboxAuditReport;
pub(crate) use stack::{ProjectStacksReport, StackChangeReport};
pub(crate) use stack_config::{
    ChangeReport, GetReport as ConfigValueReport, StackConfigReport as ConfigListReport,
};
pub(crate) use state::{
    DiffReport, HistoryReport, ImportReport, RepairReport, ResourceReport, StateEditReport,
    StateMoveReport, StateResourcesReport, StateStacksReport, UnlockReport,
};
pub(crate) use template::TemplateReport;
pub(crate) use validation::aws::AwsReport;
pub(crate) use validation::pulumi::PulumiReport;
pub(crate) use weight::Weight;
pub(crate) use workspace::{WorkspaceBackupReport, WorkspaceRestoreReport};

#[derive(Debug, Subcommand)]
pub(crate) enum NimbusCommand {
    /// Make, list, deploy, look at and destroy deployments
    #[command(subcommand)]
    Deployment(groups::DeploymentGroup),
    /// List and switch the environments of a deployment
    #[command(subcommand, visible_alias = "env")]
    Environment(groups::EnvironmentGroup),
    /// List, show, check, make and change templates
    #[command(subcommand)]
    Template(groups::TemplateGroup),
    /// List, register and deploy single stacks of deployments
    #[command(subcommand)]
    Component(groups::ComponentGroup),
    /// Check what this machine has, and how to get what it lacks
    Doctor(doctor::DoctorArgs),
    /// Look at what a sandbox lets programs do
    #[command(subcommand)]
    Sandbox(sandbox::SandboxCommand),
    /// Make a workspace with the shipped components and templates
    New(deployment::new::NewDeploymentArgs),
    /// Make a deployment from a template
    Init(deployment::init::InitArgs),
    /// Make components of a deployment from existing Pulumi projects, unmodified
    Adopt(deployment::adopt::AdoptArgs),
    /// Set, list and remove secrets of a deployment
    #[command(subcommand)]
    Secret(deployment::secret::SecretCommand),
    /// Deploy an environment: every stack that changed, in order of need
    Deploy(deployment::run::DeployArgs),
    /// Show what a deploy would do, with the outputs that stacks would have
    Preview(deployment::run::PreviewArgs),
    /// Delete what an environment has, in reverse order
    Destroy(deployment::run::DestroyArgs),
    /// Look at what an environment really has and record it; drift runs a stack again
    Refresh(deployment::run::RefreshDeploymentArgs),
    /// Archive a deployment of which nothing is left, and remove it
    Decommission(deployment::decommission::DecommissionArgs),
    /// Deploy one stack of an environment
    DeployStack(deployment::run::DeployStackArgs),
    /// Delete what one stack of an environment has
    DestroyStack(deployment::run::DestroyStackArgs),
    /// Go on with a run that was interrupted, killed or stopped by a failure
    Resume(deployment::run::ResumeArgs),
    /// Return an environment to an earlier version
    Rollback(deployment::run::RollbackArgs),
    /// Show what is deployed and how the last runs ended
    Status(deployment::status::StatusArgs),
    /// Print the log of a run
    Logs(deployment::logs::LogsArgs),
    /// Print how long calls took in real runs, as a file for rehearsals
    Latencies(deployment::latencies::LatenciesArgs),
    /// Write the states of all stacks of an environment to a file
    ExportState(deployment::export_state::ExportStateArgs),
    /// List who is changing an environment
    Locks(deployment::locks::ListLocksArgs),
    /// Free an environment whose run is gone
    Unlock(deployment::locks::UnlockArgs),
    /// Show or record what an environment needs before the next one follows
    Gate(deployment::gate::GateArgs),
    /// List, look at, watch and stop runs
    #[command(name = "run", visible_alias = "runs")]
    Runs(deployment::runs::RunsArgs),
    /// Back up and restore a whole workspace, or send it to a server and fetch it
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// Say why a stack would run, or that it would be skipped
    Why(deployment::why::WhyArgs),
    /// List the deployments of this workspace
    List(deployment::list::ListDeploymentsArgs),
    /// Check a deployment's manifest and configuration
    Validate(deployment::validate::ValidateDeploymentArgs),
    /// Check one stack of a deployment
    ValidateStack(deployment::validate::ValidateStackArgs),
    /// Check which stack needs which
    ValidateDependencies(deployment::validate::DependenciesArgs),
    /// Show which stack needs which
    Graph(deployment::graph::GraphArgs),
    /// Let an environment be deployed
    EnableEnvironment(deployment::environments::SwitchArgs),
    /// Keep an environment from being deployed
    DisableEnvironment(deployment::environments::SwitchArgs),
    /// List the environments of a deployment
    ListEnvironments(deployment::environments::ListEnvironmentsArgs),
    /// List the templates that deployments are made from
    ListTemplates(deployment::templates::ListTemplatesArgs),
    /// Print a template
    ShowTemplate(deployment::templates::NameArgs),
    /// Check a template by rendering it
    ValidateTemplate(deployment::templates::NameArgs),
    /// List the registered stacks
    ListStacks(deployment::stacks::ListStacksArgs),
    /// List the programs under stacks/
    Discover(deployment::stacks::ListStacksArgs),
    /// Make a stack from the scaffold: program, tests, documents and template
    NewStack(registration::scaffold::ScaffoldStackArgs),
    /// Make a program under stacks/ available to deployments
    RegisterStack(registration::register::RegisterStackArgs),
    /// Change what is registered of a stack
    UpdateStack(registration::update::UpdateStackArgs),
    /// Take a stack out of the registry; its program stays
    UnregisterStack(registration::unregister::UnregisterStackArgs),
    /// Register every program that discovery finds
    RegisterAllStacks(registration::all::RegisterAllArgs),
    /// Make a template from a deployment
    CreateTemplate(template::CreateArgs),
    /// Change which stacks a template uses
    UpdateTemplate(template::UpdateArgs),
    /// List what is deployed
    DiscoverResources(deployment::resources::ResourcesArgs),
    /// Forget made-up values, so that the next deploy makes new ones
    Rotate(deployment::rotate::RotateArgs),
    /// Bring a tree of version 2.3 up to date
    Migrate(migration::steps::TreeArgs),
    /// Rename an environment in all manifests and templates
    MigrateEnvironmentNames(migration::steps::RenameArgs),
    /// Give states of 2.3 the names that units have now
    MigrateStackNaming(migration::naming::MigrateNamingArgs),
    /// Rename the entry file of all stacks
    MigrateStackScripts(migration::steps::RenameArgs),
    /// Take the newest migration back
    MigrateUndo(migration::steps::UndoArgs),
    /// Check whether AWS credentials work
    ValidateAws(validation::aws::ValidateAwsArgs),
    /// Check whether programs can run and state be kept
    ValidatePulumi(validation::pulumi::ValidatePulumiArgs),
    /// Run a Pulumi program: preview, up, destroy, refresh, import
    #[command(subcommand)]
    Program(program::ProgramCommand),
    /// Look at, move and mend what is recorded of a stack
    #[command(subcommand)]
    State(state::StateCommand),
    /// List, make, select, rename and remove the stacks of a project
    #[command(subcommand)]
    Stack(stack::StackCommand),
    /// Read and edit the configuration of a stack
    #[command(subcommand)]
    StackConfig(stack_config::StackConfigCommand),
    /// Install, list and remove provider and policy plugins
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Look at the settings of Nimbus; `set`, `get`, `rm` and `ls` are those of `stack-config`
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Run the control plane on this machine, with a PostgreSQL of its own or with yours
    Up(control::up::ControlUpArgs),
    /// Bring the control plane's database up to date
    MigrateDatabase(control::migrate::ControlMigrateArgs),
    /// Write everything that the control plane has into one file
    Backup(control::backup::ControlBackupArgs),
    /// Make an installation from a backup, or give a tenant back
    Restore(control::restore::ControlRestoreArgs),
    /// Make an administrator for an installation that lost its own, on its machine
    Recover(control::recover::ControlRecoverArgs),
    /// Finish the first run of a control plane: make its first administrator
    Setup(admin::login::SetupArgs),
    /// Sign in to a control plane
    Login(admin::login::LoginArgs),
    /// Sign out of a control plane
    Logout(admin::login::LogoutArgs),
    /// List, make, change, move and delete tenants
    Tenant(admin::tenant::TenantArgs),
    /// Manage users and service accounts
    User(admin::user::UserArgs),
    /// Manage groups and their members
    Group(admin::group::GroupArgs),
    /// See and configure resolvers, and what they have leased
    Resolver(admin::resolver::ResolverArgs),
    /// Manage pools of addresses
    Ipam(admin::ipam::IpamArgs),
    /// Manage how resources are named
    Naming(admin::naming::NamingArgs),
    /// Manage the catalog of images
    Image(admin::image::ImageArgs),
    /// Manage roles, and say why somebody may or may not
    Role(admin::role::RoleArgs),
    /// Manage API keys
    Key(admin::key::KeyArgs),
    /// Read, export and verify the audit trail
    Audit(admin::audit::AuditArgs),
    /// List, import, publish, compare and deprecate components of a server's catalog
    #[command(subcommand)]
    Catalog(admin::catalog::CatalogCommand),
    /// Set what tenants may do with components
    Rule(admin::rule::RuleArgs),
    /// Make, publish and use landing zones
    #[command(subcommand)]
    Zone(admin::zone::ZoneCommand),
    /// See what a tenant has: configuration items, their history and relationships
    Cmdb(admin::cmdb::CmdbArgs),
    /// List runs that wait for approval, and decide on them
    Approve(admin::approve::ApproveArgs),
    /// List what a server told you in person, note what you have read, and choose what you are told
    Notification(admin::notification::NotificationArgs),
    /// Send a tenant's notifications to other systems, and look at what was sent
    Webhook(admin::webhook::WebhookArgs),
    /// List an installation's durable workflows, and look at one
    Workflow(admin::workflow::WorkflowArgs),
    /// List what an installation does by the clock, pause it and let it go on
    Schedule(admin::workflow::ScheduleArgs),
    /// Carry runs of a server out on this machine; list and drain workers
    Worker(admin::worker::WorkerArgs),
    /// Explain an error code
    Explain(explain::ExplainArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual pages
    Man(man::ManArgs),
    /// Write the reference documents of this repository
    #[command(hide = true)]
    InternalDocs(internal_docs::InternalDocsArgs),
}

impl NimbusCommand {
    /// Whether `--config KEY=VALUE` means something to it.
    pub(crate) fn takes_assignments(&self) -> bool {
        use program::ProgramCommand::{Preview, Up};
        matches!(self, Self::Program(Up(_) | Preview(_)))
    }

    /// Where a trace of this command goes, if somebody wants one.
    pub(crate) fn trace_file(&self) -> Option<&std::path::Path> {
        match self {
            Self::Deploy(args) => args.trace_file(),
            Self::DeployStack(args) => args.trace_file(),
            Self::Preview(args) => args.trace_file(),
            Self::Destroy(args) => args.trace_file(),
            Self::DestroyStack(args) => args.trace_file(),
            Self::Refresh(args) => args.trace_file(),
            Self::Resume(args) => args.trace_file(),
            Self::Rollback(args) => args.trace_file(),
            Self::Program(command) => command.trace_file(),
            // Only operations are traced; what else there is to say is in the log.
            _ => None,
        }
    }

    /// The mode of the sandbox that was given to it.
    pub(crate) fn sandbox_flag(&self) -> Option<FlagValue> {
        let sandbox = match self {
            Self::Program(command) => command.sandbox(),
            Self::Sandbox(command) => Some(command.sandbox()),
            _ => None,
        };
        sandbox.and_then(program::SandboxArgs::flag)
    }

    /// A server is started by its operator, where its operator keeps its settings; every other command may
    /// be given somebody else's folder.
    pub(crate) fn directory_owner(&self) -> DirectoryOwner {
        match self {
            Self::Up(_)
            | Self::MigrateDatabase(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Recover(_) => DirectoryOwner::Operator,
            _ => DirectoryOwner::Project,
        }
    }

    /// On the server that was named, or here.
    pub(crate) async fn run(self, context: &CommandContext) -> Result<CommandOutcome> {
        match remote::run(self, context).await {
            Ok(outcome) => outcome,
            // The largest of all commands is in it.
            Err(here) => Box::pin(here.run_here(context)).await,
        }
    }

    async fn run_here(self, context: &CommandContext) -> Result<CommandOutcome> {
        match self {
            Self::Doctor(args) => doctor::run(args, context).await,
            Self::Sandbox(command) => sandbox::run(command, context).await,
            Self::New(args) => deployment::new::run(args, context).await,
            Self::Adopt(args) => deployment::adopt::run(args, context).await,
            Self::Secret(command) => command.run(context).await,
            Self::Init(args) => deployment::init::run(args, context).await,
            Self::Deploy(args) => deployment::run::deploy(args, context).await,
            Self::Preview(args) => deployment::run::preview(args, context).await,
            Self::Destroy(args) => deployment::run::destroy(args, context).await,
            Self::Refresh(args) => Box::pin(deployment::run::refresh(args, context)).await,
            Self::Decommission(args) => deployment::decommission::run(args, context).await,
            Self::DeployStack(args) => deployment::run::deploy_stack(args, context).await,
            Self::DestroyStack(args) => deployment::run::destroy_stack(args, context).await,
            Self::Resume(args) => Box::pin(deployment::run::resume(args, context)).await,
            Self::Rollback(args) => Box::pin(deployment::run::rollback(args, context)).await,
            Self::Status(args) => deployment::status::run(args, context).await,
            Self::Logs(args) => deployment::logs::run(args, context).await,
            Self::ExportState(args) => deployment::export_state::run(args, context).await,
            Self::Locks(args) => deployment::locks::list(args, context).await,
            Self::Unlock(args) => deployment::locks::unlock(args, context).await,
            Self::Gate(args) => deployment::gate::run(args, context).await,
            Self::Runs(args) => deployment::runs::run(args, context).await,
            Self::Workspace(command) => command.run(context).await,
            Self::Latencies(args) => deployment::latencies::run(args, context).await,
            Self::Why(args) => deployment::why::run(args, context).await,
            Self::List(args) => deployment::list::run(args, context).await,
            Self::Validate(args) => deployment::validate::run(args, context).await,
            Self::ValidateStack(args) => deployment::validate::stack(args, context).await,
            Self::ValidateDependencies(args) => {
                deployment::validate::dependencies(args, context).await
            }
            Self::Graph(args) => deployment::graph::run(args, context).await,
            Self::EnableEnvironment(args) => deployment::environments::enable(args, context).await,
            Self::DisableEnvironment(args) => {
                deployment::environments::disable(args, context).await
            }
            Self::ListEnvironments(args) => deployment::environments::list(args, context).await,
            Self::ListTemplates(args) => deployment::templates::list(args, context).await,
            Self::ShowTemplate(args) => deployment::templates::show(args, context).await,
            Self::ValidateTemplate(args) => deployment::templates::validate(args, context).await,
            Self::ListStacks(args) => deployment::stacks::list(args, context).await,
            Self::Discover(args) => deployment::stacks::discover(args, context).await,
            Self::NewStack(args) => registration::scaffold::run(args, context).await,
            Self::RegisterStack(args) => registration::register::run(args, context).await,
            Self::UpdateStack(args) => registration::update::run(args, context).await,
            Self::UnregisterStack(args) => registration::unregister::run(args, context).await,
            Self::RegisterAllStacks(args) => registration::all::run(args, context).await,
            Self::CreateTemplate(args) => template::create(args, context).await,
            Self::UpdateTemplate(args) => template::update(args, context).await,
            Self::DiscoverResources(args) => deployment::resources::run(args, context).await,
            Self::Rotate(args) => deployment::rotate::run(args, context).await,
            Self::Migrate(args) => migration::steps::tree(args, context).await,
            Self::MigrateEnvironmentNames(args) => {
                migration::steps::environment_names(args, context).await
            }
            Self::MigrateStackNaming(args) => migration::naming::run(args, context).await,
            Self::MigrateStackScripts(args) => migration::steps::stack_scripts(args, context).await,
            Self::MigrateUndo(args) => migration::steps::undo(args, context).await,
            Self::ValidateAws(args) => validation::aws::run(args, context).await,
            Self::ValidatePulumi(args) => validation::pulumi::run(args, context).await,
            Self::Program(command) => command.run(context).await,
            Self::Stack(command) => command.run(context).await,
            Self::State(command) => command.run(context).await,
            Self::StackConfig(command) => command.run(context).await,
            Self::Plugin(command) => command.run(context).await,
            Self::Config(command) => command.run(context).await,
            Self::Up(args) => Box::pin(control::up::run(args, context)).await,
            Self::MigrateDatabase(args) => control::migrate::run(args, context).await,
            Self::Backup(args) => control::backup::run(args, context).await,
            Self::Restore(args) => Box::pin(control::restore::run(args, context)).await,
            Self::Recover(args) => Box::pin(control::recover::run(args, context)).await,
            Self::Setup(args) => admin::login::setup(args, context).await,
            Self::Login(args) => admin::login::login(args, context).await,
            Self::Logout(args) => admin::login::logout(args, context).await,
            Self::Tenant(args) => admin::tenant::run(args, context).await,
            Self::User(args) => admin::user::run(args, context).await,
            Self::Group(args) => admin::group::run(args, context).await,
            Self::Resolver(args) => admin::resolver::run(args, context).await,
            Self::Ipam(args) => admin::ipam::run(args, context).await,
            Self::Naming(args) => admin::naming::run(args, context).await,
            Self::Image(args) => admin::image::run(args, context).await,
            Self::Role(args) => admin::role::run(args, context).await,
            Self::Key(args) => admin::key::run(args, context).await,
            Self::Audit(args) => admin::audit::run(args, context).await,
            Self::Catalog(command) => Box::pin(admin::catalog::run(command, context)).await,
            Self::Rule(args) => admin::rule::run(args, context).await,
            Self::Zone(command) => Box::pin(admin::zone::run(command, context)).await,
            Self::Cmdb(args) => Box::pin(admin::cmdb::run(args, context)).await,
            Self::Approve(args) => Box::pin(admin::approve::run(args, context)).await,
            Self::Notification(args) => admin::notification::run(args, context).await,
            Self::Webhook(args) => admin::webhook::run(args, context).await,
            Self::Workflow(args) => admin::workflow::run(args, context).await,
            Self::Schedule(args) => admin::workflow::schedule(args, context).await,
            Self::Worker(args) => admin::worker::run(args, context).await,
            Self::Explain(args) => explain::run(args, context).await,
            Self::Completions(args) => completions::run(args, context).await,
            Self::Man(args) => man::run(args, context).await,
            Self::InternalDocs(args) => internal_docs::run(args, context).await,
            group @ (Self::Deployment(_)
            | Self::Environment(_)
            | Self::Template(_)
            | Self::Component(_)) => Box::pin(group.ungrouped().run_here(context)).await,
        }
    }
}
