//! JSON Schemas of the files that people write: manifest, templates and init files.
//!
//! The types here have the shape of the files and exist for their schemas alone; editors complete
//! and check with them. The readers are the judges. A test holds the two together: every key that a
//! reader takes is described here, and no other.

#![allow(
    dead_code,
    reason = "fields describe files; nothing reads them but the derive"
)]

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Name of the file under `tools/schemas/`, and the schema.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("manifest.schema.json", of::<ManifestSchema>()),
        (
            "stack-template.schema.json",
            of::<ComponentTemplateSchema>(),
        ),
        (
            "manifest-template.schema.json",
            of::<ManifestTemplateSchema>(),
        ),
        ("init.schema.json", of::<InitFileSchema>()),
        ("defaults.schema.json", of::<DefaultsSchema>()),
    ]
}

fn of<T: JsonSchema>() -> Value {
    ordered(
        SchemaGenerator::default()
            .into_root_schema_for::<T>()
            .to_value(),
    )
}

/// With keys in order of the alphabet, whatever else is in the build.
pub fn ordered(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, ordered(value)))
                .collect();
            Value::Object(sorted.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(ordered).collect(),
        scalar => scalar,
    }
}

/// What one deployment is, over all its environments: `Deployment_Manifest.yaml`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Manifest")]
struct ManifestSchema {
    /// Version of this format.
    #[schemars(extend("const" = "nimbus/v1"))]
    api_version: String,
    /// Kind of this file.
    #[schemars(extend("const" = "DeploymentManifest"))]
    kind: String,
    metadata: ManifestMetadataSchema,
    spec: SpecSchema,
}

/// Who a deployment belongs to and where it comes from.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Metadata")]
struct ManifestMetadataSchema {
    /// Id of the deployment, as in the name of its directory.
    #[schemars(regex(pattern = r"^D[0-9A-Z]{1,15}$"))]
    deployment_id: String,
    /// Organisation that owns the deployment.
    #[schemars(length(min = 1))]
    organization: String,
    /// Business project; the Pulumi project of every unit.
    #[schemars(length(min = 1))]
    project: String,
    /// Template that the manifest was rendered from.
    template: String,
    /// Anything else that was written down: domain, team, cost centre, who and when.
    labels: Option<BTreeMap<String, Scalar>>,
}

/// Where and what.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Spec")]
struct SpecSchema {
    /// Configuration of every stack in every environment, unless it says otherwise.
    defaults: Option<Map<String, Value>>,
    /// Where they live and what they wait for, by environment.
    environments: PerEnvironmentSchema<EnvironmentTargetSchema>,
    /// Environments in the order in which they follow each other; that of the file when left out, and
    /// dev, stage, prod where there are no others.
    promotion: Option<Vec<String>>,
    /// The stacks of this deployment, by name.
    stacks: BTreeMap<String, ComponentEntrySchema>,
}

/// One value for each environment, by its name: at most 20 lower-case letters, digits or `-`.
#[derive(JsonSchema)]
#[schemars(rename = "PerEnvironment")]
#[schemars(extend("propertyNames" = {"pattern": "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$"}))]
struct PerEnvironmentSchema<T>(BTreeMap<String, T>);

/// Where an environment lives.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Target")]
struct EnvironmentTargetSchema {
    /// Whether this environment may be deployed.
    enabled: bool,
    /// AWS account, 12 digits in quotes; left out where no stack uses AWS.
    #[schemars(regex(pattern = r"^([0-9]{12})?$"))]
    account: Option<String>,
    /// AWS region, which stacks get as `aws:region`; left out where no stack uses AWS.
    region: Option<String>,
    /// Whether a deploy needs `--confirm`; true when left out for the last of several environments.
    confirm: Option<bool>,
    gate: Option<GateSchema>,
    /// What must work after a deploy, by name: smoke tests, integration tests.
    checks: Option<BTreeMap<String, CheckCommandSchema>>,
    /// Configuration of every stack in this environment, over that of all environments.
    defaults: Option<Map<String, Value>>,
}

/// What the next environment waits for; usual items when left out.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Gate")]
struct GateSchema {
    /// In the order in which they are shown.
    items: Vec<GateItemSchema>,
    /// How long the environment is watched before the next one follows; for ever when left out.
    monitoring_hours: Option<u64>,
}

/// One thing that a gate asks for.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[schemars(rename = "GateItem")]
enum GateItemSchema {
    /// It is enabled in the manifest.
    Enable,
    /// Somebody agreed to a time.
    Window,
    /// Its last run succeeded.
    Deploy,
    /// The check of this name passed.
    SmokeTests,
    /// What was deployed is what is recorded.
    ResourceValidation,
    /// The check of this name passed.
    IntegrationTests,
    /// The check of this name passed.
    LoadTests,
    /// The check of this name passed.
    PerformanceValidation,
    /// Somebody watched the metrics.
    MetricWatch,
    /// Enough hours have passed since the deploy.
    Monitoring,
}

/// A command that tells whether what was deployed works: exit code zero, in time.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Check")]
struct CheckCommandSchema {
    /// For a shell, in the deployment's directory. It finds NIMBUS_DEPLOYMENT, NIMBUS_ENVIRONMENT,
    /// NIMBUS_REHEARSAL and NIMBUS_OUTPUTS, a JSON file with the outputs of all stacks that are not
    /// secret.
    #[schemars(length(min = 1))]
    command: String,
    /// How long it may take; 300 when left out.
    timeout_seconds: Option<u64>,
    /// Whether the run fails with it; true when left out, otherwise it is a warning.
    needed: Option<bool>,
    /// Whether it also runs in a rehearsal; false when left out.
    rehearse: Option<bool>,
}

/// One stack of a deployment.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "StackEntry")]
struct ComponentEntrySchema {
    /// Whether this deployment uses the stack.
    enabled: bool,
    /// Smaller starts first among stacks that are ready; 100 when left out.
    priority: Option<i64>,
    /// Stacks that must be deployed first: a copy of the stack template's.
    dependencies: Option<Vec<String>>,
    network: Option<NetworkSchema>,
    pulumi: Option<PulumiIdentitySchema>,
    /// Whether it has the defaults of all stacks and of its environment; true when left out.
    inherit: Option<bool>,
    /// Configuration of this stack in every environment, over that of all stacks.
    defaults: Option<Map<String, Value>>,
    /// Configuration for each environment; values may be `{{RUNTIME:…}}` placeholders.
    config: Option<PerEnvironmentSchema<Map<String, Value>>>,
}

/// Names that a component had before it became part of this deployment and keeps; without it, the
/// project is the business project and stacks are named `<deployment>-<component>-<environment>`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "PulumiNames")]
struct PulumiIdentitySchema {
    /// Its Pulumi project; configuration keys without a namespace are in it.
    project: String,
    /// Its Pulumi stack in each environment; named like the environment where left out.
    stacks: Option<PerEnvironmentSchema<String>>,
}

/// What the program may reach when it runs in a sandbox; without it, the setting
/// `engine.sandbox_network` decides.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[schemars(rename = "Network")]
enum NetworkSchema {
    /// Nothing: providers do the talking.
    None,
    /// Whatever the machine can reach.
    Full,
}

/// What a stack is: dependencies, contract and defaults. `tools/templates/config/<stack>.yaml`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "StackTemplate")]
struct ComponentTemplateSchema {
    /// Name of the stack, of its directory and of this file.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9-]*$"), length(max = 40))]
    name: String,
    /// What it makes, in a few words.
    description: Option<String>,
    /// Folder of its program, relative to the workspace; `stacks/<name>/src` when left out.
    source: Option<String>,
    /// Smaller starts first among stacks that are ready; 100 when left out.
    priority: Option<i64>,
    /// Stacks that must be deployed first.
    dependencies: Option<Vec<String>>,
    network: Option<NetworkSchema>,
    /// What other stacks may use with `{{RUNTIME:<stack>:<output>}}`.
    outputs: Option<BTreeMap<String, Option<OutputContractSchema>>>,
    /// Template variables of this stack, filled in at init.
    variables: Option<BTreeMap<String, VariableDeclarationSchema>>,
    /// JSON Schema of the stack's configuration.
    parameters: Option<Map<String, Value>>,
    /// Default configuration for every environment.
    config: Option<Map<String, Value>>,
    /// Default configuration of one environment, over the common one.
    environments: Option<PerEnvironmentSchema<Map<String, Value>>>,
    estimate: Option<EstimateSchema>,
}

/// An output of a stack.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Output")]
struct OutputContractSchema {
    /// What it is.
    description: Option<String>,
    /// Its type, for readers.
    r#type: Option<String>,
    /// Whether nobody may see it.
    secret: Option<bool>,
}

/// A template variable.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Variable")]
struct VariableDeclarationSchema {
    /// What it is.
    description: Option<String>,
    /// Its value unless one is given at init.
    default: Option<Scalar>,
}

/// What a deploy takes, until there are runs to learn from.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Estimate")]
struct EstimateSchema {
    /// Minutes that a deploy may well take. What takes twice as long is stopped; a stack without them never is, and plans say
    /// nothing of its time before its first run.
    minutes: Option<u64>,
    /// Resources that it has. Plans do not count those of a stack without them before its first run.
    resources: Option<u64>,
}

/// Which stacks make a deployment. `tools/templates/default/` and `tools/templates/custom/`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "ManifestTemplate")]
struct ManifestTemplateSchema {
    /// Name of the template and of this file.
    #[schemars(length(min = 1))]
    name: String,
    /// What it is for, in a few words.
    description: Option<String>,
    /// Configuration of every stack in every environment; values may be template variables.
    defaults: Option<Map<String, Value>>,
    /// Environments; values may be template variables.
    environments: Option<PerEnvironmentSchema<TargetTemplateSchema>>,
    /// Environments in the order in which they follow each other.
    promotion: Option<Vec<String>>,
    /// Stacks by name; one without anything is enabled.
    stacks: Option<BTreeMap<String, Option<ComponentChoiceSchema>>>,
}

/// Where an environment lives, with variables such as `{{AWS_ACCOUNT_DEV}}`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "TargetTemplate")]
struct TargetTemplateSchema {
    /// Whether the environment may be deployed at once; true when left out.
    enabled: Option<bool>,
    /// AWS account.
    account: Option<String>,
    /// AWS region.
    region: Option<String>,
    /// Whether a deploy needs `--confirm`; true when left out for the last of several environments.
    confirm: Option<bool>,
    gate: Option<GateSchema>,
    /// What must work after a deploy, by name.
    checks: Option<BTreeMap<String, CheckCommandSchema>>,
    /// Configuration of every stack in this environment.
    defaults: Option<Map<String, Value>>,
}

/// What a template says of one stack.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "StackChoice")]
struct ComponentChoiceSchema {
    /// Whether deployments use the stack; true when left out.
    enabled: Option<bool>,
    /// Configuration over the stack template's defaults.
    config: Option<PerEnvironmentSchema<Map<String, Value>>>,
}

/// Answers for `nimbus init --from-file`.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "InitFile")]
struct InitFileSchema {
    /// Id of the deployment; made from the time when left out.
    #[schemars(regex(pattern = r"^D[0-9A-Z]{1,15}$"))]
    id: Option<String>,
    /// Organisation.
    #[schemars(length(min = 1, max = 63))]
    org: String,
    /// Business project; the Pulumi project of every unit.
    #[schemars(length(min = 1, max = 63))]
    project: String,
    /// Primary domain.
    domain: Option<String>,
    /// Template; `default` when left out.
    template: Option<String>,
    /// Primary region; us-east-1 when left out.
    region: Option<String>,
    /// Secondary region; us-west-2 when left out.
    secondary_region: Option<String>,
    /// What this deployment is for.
    description: Option<String>,
    /// Team, for tags.
    team: Option<String>,
    /// Cost centre, for tags.
    cost_center: Option<String>,
    /// AWS accounts, 12 digits in quotes.
    accounts: Option<PerEnvironmentSchema<Scalar>>,
    /// Network of the first enabled environment.
    vpc_cidr: Option<String>,
    /// Any other template variable, by name.
    variables: Option<BTreeMap<String, Scalar>>,
    /// Use every stack of the template, also those that it leaves off.
    all_stacks: Option<bool>,
}

/// Defaults for `nimbus register-stack --defaults-file`: parts of a stack template.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[schemars(rename = "Defaults")]
struct DefaultsSchema {
    /// Default configuration for every environment.
    config: Option<Map<String, Value>>,
    /// Default configuration of one environment, over the common one.
    environments: Option<PerEnvironmentSchema<Map<String, Value>>>,
    estimate: Option<EstimateSchema>,
    /// What other stacks may use.
    outputs: Option<BTreeMap<String, Option<OutputContractSchema>>>,
    /// JSON Schema of the stack's configuration.
    parameters: Option<Map<String, Value>>,
    /// Template variables of this stack.
    variables: Option<BTreeMap<String, VariableDeclarationSchema>>,
}

/// A text, a number, or true or false.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Scalar {
    Text(String),
    Number(f64),
    Flag(bool),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::gate::GateItem;
    use crate::{identity, init_file, manifest, template};

    fn keys<T: JsonSchema>() -> BTreeSet<String> {
        let schema = of::<T>();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(schema["additionalProperties"], Value::Bool(false));
        properties.keys().cloned().collect()
    }

    fn same<T: JsonSchema>(taken: &[&str]) {
        let taken: BTreeSet<String> = taken.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(keys::<T>(), taken, "{}", T::schema_name());
    }

    #[test]
    fn schemas_describe_exactly_what_the_readers_take() {
        same::<ManifestSchema>(manifest::KEYS);
        same::<ManifestMetadataSchema>(manifest::METADATA_KEYS);
        same::<SpecSchema>(manifest::SPEC_KEYS);
        same::<EnvironmentTargetSchema>(manifest::TARGET_KEYS);
        same::<GateSchema>(manifest::GATE_KEYS);
        same::<CheckCommandSchema>(manifest::CHECK_KEYS);
        same::<ComponentEntrySchema>(manifest::STACK_KEYS);
        same::<PulumiIdentitySchema>(identity::IDENTITY_KEYS);
        same::<ComponentTemplateSchema>(template::STACK_TEMPLATE_KEYS);
        same::<OutputContractSchema>(template::OUTPUT_KEYS);
        same::<VariableDeclarationSchema>(template::VARIABLE_KEYS);
        same::<EstimateSchema>(template::ESTIMATE_KEYS);
        same::<ManifestTemplateSchema>(template::MANIFEST_TEMPLATE_KEYS);
        same::<TargetTemplateSchema>(manifest::TARGET_KEYS);
        same::<ComponentChoiceSchema>(template::CHOICE_KEYS);
        same::<InitFileSchema>(init_file::KEYS);
        same::<DefaultsSchema>(template::DEFAULTS_KEYS);
    }

    #[test]
    fn a_gate_may_ask_for_exactly_what_its_reader_takes() {
        let schema = of::<GateItemSchema>();
        let described: BTreeSet<_> = schema["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["const"].as_str().unwrap())
            .collect();
        let taken: BTreeSet<_> = GateItem::ALL.iter().map(|item| item.as_str()).collect();
        assert_eq!(described, taken);
    }

    #[test]
    fn every_schema_is_one_and_says_what_its_keys_are() {
        for (name, schema) in all() {
            assert!(jsonschema::meta::is_valid(&schema), "{name}");
            let mut open = vec![&schema];
            while let Some(value) = open.pop() {
                if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                    for (key, property) in properties {
                        let described = property.get("description").is_some()
                            || property.to_string().contains("$ref");
                        assert!(described, "{name}: {key} is not described");
                    }
                }
                match value {
                    Value::Object(map) => open.extend(map.values()),
                    Value::Array(items) => open.extend(items),
                    _ => {}
                }
            }
        }
    }
}
