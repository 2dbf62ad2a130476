//! `nimbus validate-aws`: whose credentials these are, and whether they work in a region.

use nimbus_aws::{Aws, AwsError, AwsSettings, AwsValue, AwsVariables};
use nimbus_core::Result;
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::deployment::usage;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct ValidateAwsArgs {
    /// Region to ask; that of AWS_REGION or the profile when left out
    #[arg(long)]
    region: Option<String>,
}

pub(crate) async fn run(args: ValidateAwsArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let aws = Aws::new(AwsSettings::load(AwsVariables::process())?)?;
    let region = args.region.or_else(|| aws.region()).ok_or_else(|| {
        usage("no region is set").with_help("give --region, for example --region us-east-1")
    })?;
    let identity = aws.identity(&region).await?;
    let (zones, remark) = match aws.lookup(&region, "availabilityZones", &[]).await {
        Ok(AwsValue::Value(zones)) => (serde_json::from_value(zones).unwrap_or_default(), None),
        Ok(AwsValue::Secret(_) | AwsValue::Absent) => (Vec::new(), None),
        Err(error @ AwsError::Refused { .. }) => (Vec::new(), Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    context.output.result(&AwsReport {
        region,
        account: identity.account,
        arn: identity.arn,
        credentials: identity.source,
        zones,
        remark,
    })?;
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct AwsReport {
    region: String,
    account: String,
    /// Who AWS says we are.
    arn: String,
    /// Where the credentials were found.
    credentials: String,
    /// Availability zones of the region.
    zones: Vec<String>,
    /// Why zones could not be listed: the credentials work, but may not do everything.
    remark: Option<String>,
}

impl Report for AwsReport {
    const SCHEMA: &'static str = "nimbus/validate-aws/1";

    fn text(&self, terminal: Terminal) -> String {
        let mark = terminal.paint(TextStyle::Good, "✓");
        let mut text = format!(
            "{mark} AWS answers in {}\n  account: {}\n  identity: {}\n  credentials: {}\n",
            self.region, self.account, self.arn, self.credentials
        );
        if !self.zones.is_empty() {
            text.push_str(&format!("  zones: {}\n", self.zones.join(", ")));
        }
        if let Some(remark) = &self.remark {
            let line = format!("! {remark}");
            text.push_str(&format!("{}\n", terminal.paint(TextStyle::Warning, &line)));
        }
        text
    }
}
