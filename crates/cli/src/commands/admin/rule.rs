//! `nimbus rule`: what a tenant may do with components.

use nimbus_control_client::encoded;
use nimbus_core::{Error, ErrorCode, Result};
use serde_json::{Map, Value, json};

use super::AdminReport;
use super::server::{Connection, ServerArgs};
use crate::context::CommandContext;
use crate::exit::CommandOutcome;

#[derive(clap::Args, Debug)]
pub(crate) struct RuleArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(subcommand)]
    command: RuleCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RuleCommand {
    /// List the rules that hold for a tenant, with whose they are
    List,
    /// Set the rule about a component for a tenant and everything below it
    Set(SetRuleArgs),
    /// Take a rule back
    Remove {
        /// The component, or `*`
        component: String,
    },
}

#[derive(clap::Args, Debug)]
struct SetRuleArgs {
    /// The component, or `*` for all that have no rule of their own
    component: String,
    /// Nobody deploys it
    #[arg(long)]
    deny: bool,
    /// At most so many instances
    #[arg(long, value_name = "NUMBER")]
    max_instances: Option<u32>,
    /// A parameter is not smaller
    #[arg(long, value_name = "PARAMETER=NUMBER")]
    min: Vec<String>,
    /// A parameter is not larger
    #[arg(long, value_name = "PARAMETER=NUMBER")]
    max: Vec<String>,
    /// A parameter is one of these
    #[arg(long, value_name = "PARAMETER=A,B")]
    allowed: Vec<String>,
    /// An expression over `params`, `environment`, `component` and `rehearsal` that has to be true
    #[arg(long, value_name = "CEL")]
    expression: Vec<String>,
    /// A file with a JSON Schema over all parameters
    #[arg(long, value_name = "FILE")]
    schema: Option<std::path::PathBuf>,
    /// Why, for whoever is refused
    #[arg(long, default_value = "")]
    reason: String,
}

const COLUMNS: &[&str] = &[
    "component",
    "allowed",
    "max_instances",
    "constraints",
    "tenant_name",
    "set_by",
];

pub(crate) async fn run(args: RuleArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let mut server = Connection::open(&args.server, context).await?;
    let rules = format!("{}/governance", server.tenant().await?);
    let client = &mut server.client;
    let report = match args.command {
        RuleCommand::List => AdminReport::list(client.get(&rules).await?, COLUMNS),
        RuleCommand::Set(args) => {
            let path = format!("{rules}/{}", encoded(&args.component));
            AdminReport::item(client.put(&path, &body(&args)?).await?, COLUMNS)
        }
        RuleCommand::Remove { component } => {
            client
                .delete(&format!("{rules}/{}", encoded(&component)))
                .await?;
            let text = format!("the rule about {component} is gone");
            AdminReport::done(json!({"removed": component}), text)
        }
    };
    context.output.result(&report)?;
    Ok(CommandOutcome::Done)
}

fn body(args: &SetRuleArgs) -> Result<Value> {
    let mut parameters: Map<String, Value> = Map::new();
    let mut put = |name: &str, key: &str, value: Value| {
        let limits = parameters
            .entry(name.to_owned())
            .or_insert_with(|| json!({}));
        limits[key] = value;
    };
    for (key, texts) in [("min", &args.min), ("max", &args.max)] {
        for text in texts {
            let parsed = text
                .split_once('=')
                .and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
            let (name, value) = parsed.ok_or_else(|| unclear(text, "size=4"))?;
            put(name, key, json!(value));
        }
    }
    for text in &args.allowed {
        let (name, values) = text
            .split_once('=')
            .ok_or_else(|| unclear(text, "zone=a,b"))?;
        let values: Vec<Value> = values
            .split(',')
            .map(|value| serde_json::from_str(value).unwrap_or_else(|_| json!(value)))
            .collect();
        put(name, "allowed", json!(values));
    }
    let mut constraints = json!({"parameters": parameters});
    if let Some(path) = &args.schema {
        let unreadable = |why: String| {
            let message = format!("{} cannot be read: {why}", path.display());
            Error::new(ErrorCode::FILE_UNREADABLE, message)
        };
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        constraints["schema"] =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    }
    let expressions: Vec<Value> = args
        .expression
        .iter()
        .map(|expression| json!({"expression": expression}))
        .collect();
    constraints["expressions"] = json!(expressions);
    Ok(json!({
        "allowed": !args.deny,
        "max_instances": args.max_instances,
        "constraints": constraints,
        "reason": args.reason,
    }))
}

fn unclear(text: &str, example: &str) -> Error {
    let message = format!("`{text}` is not a limit such as {example}");
    Error::new(ErrorCode::USAGE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> SetRuleArgs {
        SetRuleArgs {
            component: "network".to_owned(),
            deny: false,
            max_instances: Some(3),
            min: vec!["zones=2".to_owned()],
            max: vec!["zones=3".to_owned()],
            allowed: vec!["nat=none,single".to_owned()],
            expression: vec!["params.zones > 1".to_owned()],
            schema: None,
            reason: String::new(),
        }
    }

    #[test]
    fn limits_of_one_parameter_are_put_together() {
        let body = body(&args()).unwrap();
        let parameters = &body["constraints"]["parameters"];
        assert_eq!(parameters["zones"], json!({"min": 2.0, "max": 3.0}));
        assert_eq!(parameters["nat"], json!({"allowed": ["none", "single"]}));
        assert_eq!(body["allowed"], true);
    }

    #[test]
    fn limits_that_are_none_are_refused() {
        let mut wrong = args();
        wrong.max = vec!["zones=many".to_owned()];
        assert!(body(&wrong).is_err());
    }
}
