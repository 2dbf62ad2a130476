//! Options that several verbs share.

use std::path::{Path, PathBuf};

use nimbus_core::Result;
use nimbus_engine_backend::EnvironmentVariables;
use nimbus_engine_operations::{
    OperationOptions, PolicyPackRequest, ResourceSelection, StackGrant, StackLocation,
    StateLocation, selected_stack,
};

use super::sandbox::{SandboxArgs, from_settings as sandbox_settings};
use crate::commands::trace::TraceArgs;
use crate::context::CommandContext;

/// Where a program and its state are.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ProgramLocationArgs {
    /// Folder of the program, with Pulumi.yaml in it or above it; only in it where the sandbox is strict
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Where state is kept: file:///dir, a path, or s3://bucket/prefix
    ///
    /// Without it: $PULUMI_BACKEND_URL, then `backend.url` in Pulumi.yaml, then file://~, which is
    /// where the official command line keeps state after a local login.
    #[arg(long, value_name = "URL")]
    backend: Option<String>,
}

impl ProgramLocationArgs {
    pub(crate) fn location(&self, stack: &str, context: &CommandContext) -> Result<StackLocation> {
        Ok(self.states(context)?.stack(stack))
    }

    /// Where states are, before a stack is named. With `strict` a project in the folder has no say in it.
    pub(crate) fn states(&self, context: &CommandContext) -> Result<StateLocation> {
        let sandbox = sandbox_settings(context)?;
        Ok(StateLocation {
            directory: context.directory.join(&self.dir),
            backend: self.backend.clone(),
            granted: StackGrant::by_operator(sandbox.as_ref()),
        })
    }
}

/// Which stack is meant.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct LocationArgs {
    #[command(flatten)]
    place: ProgramLocationArgs,

    /// The stack: dev, or organization/project/dev; the selected one when left out
    #[arg(long, short, value_name = "NAME", env = "PULUMI_STACK")]
    stack: Option<String>,
}

impl LocationArgs {
    /// Where the stack is that was named, or selected.
    pub(crate) fn location(&self, context: &CommandContext) -> Result<StackLocation> {
        if let Some(stack) = &self.stack {
            return self.place.location(stack, context);
        }
        let states = self.place.states(context)?;
        let sandbox = sandbox_settings(context)?;
        let stack = selected_stack(&states, sandbox.as_ref(), &EnvironmentVariables::process())?;
        Ok(states.stack(stack))
    }
}

/// Which resources are meant.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Which resources")]
pub(crate) struct TargetArgs {
    /// Work on this resource only; may be repeated, and * matches within a URN
    #[arg(long, short, value_name = "URN")]
    target: Vec<String>,

    /// Also work on whatever depends on the targets
    #[arg(long, requires = "target")]
    target_dependents: bool,

    /// Leave this resource alone; may be repeated
    #[arg(long, value_name = "URN", conflicts_with = "target")]
    exclude: Vec<String>,

    /// Also leave alone whatever depends on the excluded ones
    #[arg(long, requires = "exclude")]
    exclude_dependents: bool,
}

impl TargetArgs {
    pub(crate) fn apply(&self, options: &mut OperationOptions) {
        options.targets = ResourceSelection {
            patterns: self.target.clone(),
            dependents: self.target_dependents,
        };
        options.excludes = ResourceSelection {
            patterns: self.exclude.clone(),
            dependents: self.exclude_dependents,
        };
    }
}

/// Whether to look first.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RefreshArgs {
    /// Look at what is really there first
    #[arg(long, short)]
    refresh: bool,

    /// Accept that many resources are gone at once
    #[arg(long, requires = "refresh")]
    allow_mass_removal: bool,
}

impl RefreshArgs {
    pub(crate) fn apply(&self, options: &mut OperationOptions) {
        options.refresh = self.refresh;
        options.allow_mass_removal = self.allow_mass_removal;
    }
}

/// How the work is done.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "How it is done")]
pub(crate) struct EffortArgs {
    /// How many steps run at once; by default four per processor
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    parallel: Option<u16>,

    /// After a failed step, go on with whatever does not depend on it
    #[arg(long)]
    continue_on_error: bool,

    #[command(flatten)]
    trace: TraceArgs,
}

impl EffortArgs {
    pub(crate) fn trace_file(&self) -> Option<&Path> {
        self.trace.file()
    }

    pub(crate) fn apply(&self, options: &mut OperationOptions) {
        options.parallel = self.parallel.map(usize::from);
        options.continue_on_error = self.continue_on_error;
    }
}

/// How the program is run.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "The program")]
pub(crate) struct ProgramArgs {
    /// Replace this resource even if nothing about it changed; may be repeated
    #[arg(long, value_name = "URN")]
    replace: Vec<String>,

    #[command(flatten)]
    policies: PolicyArgs,

    #[command(flatten)]
    pub(super) sandbox: SandboxArgs,

    /// Compile TypeScript without checking its types
    #[arg(long, alias = "transpile-only")]
    no_typecheck: bool,

    /// Arguments of the program itself
    #[arg(last = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl ProgramArgs {
    pub(crate) fn apply(
        &self,
        options: &mut OperationOptions,
        context: &CommandContext,
    ) -> Result<()> {
        options.replace.clone_from(&self.replace);
        options.sandbox = self.sandbox.settings(context)?;
        options.transpile_only = self.no_typecheck;
        options.program_arguments.clone_from(&self.arguments);
        options.policy_packs = self.policies.requests(context);
        Ok(())
    }
}

/// Which rules a program is held to.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    /// Hold the program to the policies of this pack; may be repeated
    #[arg(long, value_name = "DIR")]
    policy_pack: Vec<PathBuf>,

    /// JSON file with the configuration of a policy pack, in the order of the packs
    #[arg(long, value_name = "FILE", requires = "policy_pack")]
    policy_pack_config: Vec<PathBuf>,
}

impl PolicyArgs {
    pub(crate) fn requests(&self, context: &CommandContext) -> Vec<PolicyPackRequest> {
        let mut configs = self.policy_pack_config.iter();
        self.policy_pack
            .iter()
            .map(|folder| PolicyPackRequest {
                folder: context.directory.join(folder),
                config: configs.next().map(|file| context.directory.join(file)),
            })
            .collect()
    }
}

/// How much is shown.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct ShowArgs {
    /// Show every property that differs, instead of a tree
    #[arg(long)]
    pub(crate) diff: bool,

    /// With --diff, show long texts and deleted resources in full
    #[arg(long, requires = "diff")]
    pub(crate) full: bool,
}

/// Whether to ask.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Confirmation")]
pub(crate) struct ConsentArgs {
    /// Do it without asking
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Do not show a preview first
    #[arg(long, short = 'f')]
    pub(crate) skip_preview: bool,

    /// Kept in the history of the stack
    #[arg(
        long,
        short,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) message: String,

    /// Go on although nobody knows what became of earlier acts
    #[arg(long)]
    pub(crate) allow_unknown: bool,
}

impl ConsentArgs {
    pub(crate) fn apply(&self, options: &mut OperationOptions) {
        options.message.clone_from(&self.message);
        options.allow_unknown = self.allow_unknown;
    }
}
