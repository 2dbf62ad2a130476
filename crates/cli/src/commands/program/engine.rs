//! Which engine carries an operation out.

use clap::ValueEnum;

/// Which engine carries an operation out.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct EngineArgs {
    /// What carries it out; a stack can be continued by either
    #[arg(
        long,
        value_name = "ENGINE",
        default_value = "embedded",
        help_heading = "How it is done"
    )]
    engine: EngineArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    /// Nimbus itself
    #[default]
    Embedded,
    /// An installed official `pulumi`
    Pulumi,
}

impl EngineArgs {
    /// Whether an installed `pulumi` is to do it.
    pub(crate) fn is_official(self) -> bool {
        self.engine == EngineArg::Pulumi
    }
}
