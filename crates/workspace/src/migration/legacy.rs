//! Manifests of version 2.3, read with patience.
//!
//! They were written by hand and by several tools, so names of keys vary. What can be understood is
//! taken over; what cannot is an error with its place, never a guess.

use std::collections::{BTreeMap, BTreeSet};

use nimbus_core::{ComponentName, DeploymentId, EnvironmentName, Malformed, Result};
use nimbus_document::{Document, View};
use nimbus_orchestrator::{
    ComponentEntry, EnvironmentTarget, Manifest, ManifestMetadata, sort_by_usual_promotion,
};
use serde_json::{Map, Value};

/// A manifest of 2.3 as the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct LegacyManifest(pub Manifest);

impl LegacyManifest {
    /// `directory` is the deployment's, whose name says what the manifest does not.
    pub fn read(document: &Document, directory: &str) -> Result<Self> {
        let view = document.view();
        let spec = view.optional("spec")?.unwrap_or_else(|| view.clone());
        let mut manifest = Manifest {
            metadata: metadata(&view, directory)?,
            environments: Default::default(),
            stacks: BTreeMap::new(),
            shared: Default::default(),
        };
        for (name, value) in spec.required("environments")?.entries()? {
            let environment = environment(name, &value)?;
            manifest.environments.insert(environment, target(&value)?);
        }
        // 2.3 had no order of its own: it promoted from dev over staging to prod.
        sort_by_usual_promotion(&mut manifest.environments);
        let environments: Vec<_> = manifest.environments.keys().copied().collect();
        let stacks = spec.required("stacks")?;
        let list: Vec<(String, View<'_>)> = match stacks.node().as_sequence() {
            Some(_) => stacks
                .items()?
                .map(|item| Ok((item.required("name")?.str()?.to_owned(), item)))
                .collect::<Result<_>>()?,
            None => stacks
                .entries()?
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        };
        for (name, value) in list {
            let entry = stack(&value, &environments)?;
            manifest.stacks.insert(component(&name, &value)?, entry);
        }
        Ok(Self(manifest))
    }
}

fn first<'a>(view: &View<'a>, keys: &[&str]) -> Result<Option<View<'a>>> {
    for key in keys {
        if let Some(found) = view.optional(key)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn text(view: Option<&View<'_>>, keys: &[&str]) -> Result<Option<String>> {
    let Some(view) = view else {
        return Ok(None);
    };
    first(view, keys)?
        .map(|found| found.scalar_text().map(str::to_owned))
        .transpose()
}

fn metadata(view: &View<'_>, directory: &str) -> Result<ManifestMetadata> {
    let given = view.optional("metadata")?.unwrap_or_else(|| view.clone());
    let given = Some(&given);
    let mut parts = directory.splitn(3, '-').map(str::to_owned);
    let (id, organization, project) = (parts.next(), parts.next(), parts.next());
    let missing = |what: &str| {
        view.error(
            format!("neither the manifest nor its directory says the {what}"),
            "of this deployment",
        )
    };
    let id = text(given, &["deploymentId", "id"])?
        .or(id)
        .ok_or_else(|| missing("id"))?;
    let labels = [
        ("domain", &["domain"][..]),
        ("team", &["team"]),
        ("costCenter", &["costCenter", "cost_center"]),
        ("description", &["description"]),
    ];
    let mut kept = BTreeMap::from([("migratedFrom".to_owned(), "2.3".to_owned())]);
    for (label, keys) in labels {
        if let Some(value) = text(given, keys)? {
            kept.insert(label.to_owned(), value);
        }
    }
    Ok(ManifestMetadata {
        id: id.to_ascii_uppercase().parse::<DeploymentId>()?,
        organization: text(given, &["organization", "org"])?
            .or(organization)
            .ok_or_else(|| missing("organisation"))?,
        project: text(given, &["project", "projectName"])?
            .or(project)
            .ok_or_else(|| missing("project"))?,
        template: text(given, &["template"])?.unwrap_or_else(|| "migrated".to_owned()),
        labels: kept,
    })
}

/// Names of environments then and now.
pub(super) fn current_name(name: &str) -> &str {
    match name {
        "staging" => "stage",
        "development" => "dev",
        "production" => "prod",
        other => other,
    }
}

fn environment(name: &str, value: &View<'_>) -> Result<EnvironmentName> {
    current_name(name)
        .parse()
        .map_err(|error: Malformed| value.error(error.to_string(), "of this environment"))
}

fn component(name: &str, value: &View<'_>) -> Result<ComponentName> {
    name.parse()
        .map_err(|error: Malformed| value.error(error.to_string(), "of this component"))
}

fn target(view: &View<'_>) -> Result<EnvironmentTarget> {
    let enabled = view.optional("enabled")?.map(|v| v.bool()).transpose()?;
    Ok(EnvironmentTarget {
        enabled: enabled.unwrap_or(true),
        account: Some(
            text(
                Some(view),
                &["account", "accountId", "awsAccount", "aws_account"],
            )?
            .unwrap_or_default(),
        ),
        region: text(Some(view), &["region", "awsRegion"])?
            .unwrap_or_else(|| "us-east-1".to_owned()),
        ..EnvironmentTarget::default()
    })
}

fn stack(view: &View<'_>, environments: &[EnvironmentName]) -> Result<ComponentEntry> {
    let mut entry = ComponentEntry {
        enabled: true,
        priority: 100,
        dependencies: BTreeSet::new(),
        network: None,
        pulumi: None,
        config: BTreeMap::new(),
    };
    if view.node().is_null() {
        return Ok(entry);
    }
    if let Some(enabled) = view.optional("enabled")? {
        entry.enabled = enabled.bool()?;
    }
    if let Some(priority) = view.optional("priority")? {
        entry.priority = priority.i64()?;
    }
    if let Some(list) = first(view, &["dependencies", "dependsOn", "depends_on"])? {
        entry.dependencies = list
            .items()?
            .map(|item| component(item.str()?, &item))
            .collect::<Result<_>>()?;
    }
    if let Some(config) = view.optional("config")? {
        entry.config = configuration(&config, environments)?;
    }
    Ok(entry)
}

/// By environment, or the same for all of them.
fn configuration(
    view: &View<'_>,
    environments: &[EnvironmentName],
) -> Result<BTreeMap<EnvironmentName, Map<String, Value>>> {
    // A setting may be a mapping and have a name that an environment could have, so only names of
    // environments that 2.3 or this deployment knows say that the values are theirs.
    let known = |name: &str| {
        ["dev", "stage", "prod"].contains(&name)
            || environments.iter().any(|known| known.as_str() == name)
    };
    let by_environment = view
        .entries()?
        .all(|(key, value)| known(current_name(key)) && value.node().as_mapping().is_some());
    let object = |view: &View<'_>| -> Result<Map<String, Value>> {
        let map = match view.document().to_json(view.node())? {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Ok(map
            .into_iter()
            .map(|(key, value)| (key, renamed(value)))
            .collect())
    };
    if by_environment {
        return view
            .entries()?
            .map(|(name, value)| {
                let environment = environment(name, &value)?;
                if !environments.contains(&environment) {
                    let message = format!("there is no environment `{name}`");
                    return Err(value.error(message, "configures nothing; remove it"));
                }
                Ok((environment, object(&value)?))
            })
            .collect();
    }
    let same = object(view)?;
    Ok(environments
        .iter()
        .map(|environment| (*environment, same.clone()))
        .collect())
}

/// A value that names an environment takes its new name.
fn renamed(value: Value) -> Value {
    match value {
        Value::String(text) if text == "staging" => Value::String("stage".to_owned()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Manifest {
        let document = Document::parse("m.yaml", text).unwrap();
        LegacyManifest::read(&document, "D1BRV40-Company-shop")
            .unwrap()
            .0
    }

    #[test]
    fn both_spellings_of_a_manifest_are_understood() {
        let long = read(
            "apiVersion: multi-stack/v2.3\nmetadata: {deploymentId: D1BRV40, organization: Company, project: shop}\n\
             spec:\n  environments: {dev: {awsAccount: '111111111111', region: eu-west-1}, staging: {enabled: false, region: eu-west-1}}\n\
             stacks: {}\n  stacks:\n    network: {config: {staging: {size: 1}}}\n".replace("stacks: {}\n", "").as_str(),
        );
        assert_eq!(
            long.environments[&EnvironmentName::DEV].account.as_deref(),
            Some("111111111111")
        );
        assert!(!long.environments[&EnvironmentName::STAGE].enabled);
        assert_eq!(
            long.stacks["network"].config[&EnvironmentName::STAGE]["size"],
            json!(1)
        );
        let short = read(
            "environments: {dev: {region: eu-west-1}, staging: }\nstacks:\n  - {name: network}\n  - {name: web, dependsOn: [network], config: {size: 1}}\n"
                .replace("staging: }", "staging: {region: eu-west-1}}").as_str(),
        );
        assert_eq!(short.metadata.project, "shop");
        assert!(short.stacks["web"].dependencies.contains("network"));
        assert_eq!(short.stacks["web"].config.len(), 2);
    }

    #[test]
    fn a_setting_that_is_a_mapping_is_no_environment() {
        let manifest = read(
            "environments: {live: {region: r}, test: {region: r}}\nstacks:\n  a: {config: {tags: {x: 1}}}\n  \
             b: {config: {test: {size: 1}}}\n",
        );
        let (live, test) = ("live".parse().unwrap(), "test".parse().unwrap());
        assert_eq!(manifest.stacks["a"].config[&live]["tags"], json!({"x": 1}));
        assert_eq!(manifest.stacks["a"].config[&test]["tags"], json!({"x": 1}));
        assert_eq!(manifest.stacks["b"].config[&test]["size"], json!(1));
        assert!(!manifest.stacks["b"].config.contains_key(&live));
    }

    #[test]
    fn environments_come_in_the_order_of_promotion() {
        let manifest =
            read("environments: {production: {}, staging: {}, development: {}}\nstacks: {}\n");
        let names: Vec<_> = manifest.environments.keys().map(|e| e.as_str()).collect();
        assert_eq!(names, ["dev", "stage", "prod"]);
    }

    #[test]
    fn what_the_current_manifest_could_not_hold_is_an_error_with_its_place() {
        let refused = |text: &str| {
            let document = Document::parse("m.yaml", text).unwrap();
            let error = LegacyManifest::read(&document, "D1-a-b").unwrap_err();
            assert_eq!(error.spans().len(), 1, "{error}");
            error.message().to_owned()
        };
        let config = "environments: {dev: {}}\nstacks: {a: {config: {prod: {size: 1}}}}\n";
        assert!(refused(config).contains("no environment `prod`"));
        let name = "environments: {dev: {}}\nstacks: {My_Stack: }\n";
        assert!(refused(name).contains("name of a component"));
    }

    #[test]
    fn what_comes_out_is_a_current_manifest() {
        let manifest = read("environments: {dev: {region: r}}\nstacks: {network: }\n");
        let text = manifest.write();
        let again = Manifest::read(&Document::parse("m.yaml", &text).unwrap()).unwrap();
        assert_eq!(again, manifest);
    }
}
