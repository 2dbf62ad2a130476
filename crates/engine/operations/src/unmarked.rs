//! Secrets of the configuration that a program uses without the mark.
//!
//! A program that reads a secret with `get` instead of `getSecret` has a plain text, and what it makes
//! of it would be recorded in clear. In a deployment the engine knows the text, so whatever has it
//! inside is marked on its way from the program: then state, plans and events treat it as any secret.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_backend::project::ResolvedConfig;
use nimbus_engine_model::{
    Asset, Goal, PropertyMap, PropertyValue, ProviderRef, ResourceState, Urn,
};
use nimbus_engine_ports::{
    Program, ProgramError, Provider, ReadGoal, RegisterError, RegisterResult, Registrar,
};
use nimbus_telemetry::SecretFinder;

use crate::redact;

/// A program whose registrations are looked through.
pub(crate) struct WatchedProgram {
    program: Arc<dyn Program>,
    finder: Arc<SecretFinder>,
}

impl WatchedProgram {
    /// The program itself when the configuration has no secrets.
    pub(crate) fn around(program: Arc<dyn Program>, config: &ResolvedConfig) -> Arc<dyn Program> {
        let mut secrets = Vec::new();
        redact::secrets_of(config, &mut |text| secrets.push(text.to_owned()));
        if secrets.is_empty() {
            return program;
        }
        let finder = Arc::new(SecretFinder::new(secrets.iter().map(String::as_str)));
        Arc::new(Self { program, finder })
    }
}

#[async_trait]
impl Program for WatchedProgram {
    async fn run(&self, registrar: Arc<dyn Registrar>) -> Result<(), ProgramError> {
        let marking = MarkingRegistrar {
            registrar,
            finder: Arc::clone(&self.finder),
        };
        self.program.run(Arc::new(marking)).await
    }

    async fn finish(&self) -> Result<(), ProgramError> {
        self.program.finish().await
    }
}

struct MarkingRegistrar {
    registrar: Arc<dyn Registrar>,
    finder: Arc<SecretFinder>,
}

#[async_trait]
impl Registrar for MarkingRegistrar {
    async fn register(&self, mut goal: Goal) -> Result<RegisterResult, RegisterError> {
        goal.properties = marked_map(goal.properties, &self.finder);
        self.registrar.register(goal).await
    }

    async fn register_outputs(&self, urn: Urn, outputs: PropertyMap) -> Result<(), RegisterError> {
        let outputs = marked_map(outputs, &self.finder);
        self.registrar.register_outputs(urn, outputs).await
    }

    async fn read(&self, mut goal: ReadGoal) -> Result<RegisterResult, RegisterError> {
        goal.properties = marked_map(goal.properties, &self.finder);
        self.registrar.read(goal).await
    }

    fn provider(&self, reference: &ProviderRef) -> Option<Arc<dyn Provider>> {
        self.registrar.provider(reference)
    }

    fn resource(&self, urn: &Urn) -> Option<Arc<ResourceState>> {
        self.registrar.resource(urn)
    }
}

fn marked_map(map: PropertyMap, finder: &SecretFinder) -> PropertyMap {
    map.into_iter()
        .map(|(key, value)| (key, marked(value, finder)))
        .collect()
}

/// The value with marks as deep inside as possible: what is beside a secret stays readable.
fn marked(value: PropertyValue, finder: &SecretFinder) -> PropertyValue {
    if !holds(&value, finder) {
        return value;
    }
    match value {
        PropertyValue::Array(items) => {
            PropertyValue::Array(items.into_iter().map(|item| marked(item, finder)).collect())
        }
        PropertyValue::Object(map) => PropertyValue::Object(marked_map(map, finder)),
        PropertyValue::Output(mut output) => {
            output.secret = true;
            PropertyValue::Output(output)
        }
        other => PropertyValue::secret(other),
    }
}

/// Whether a known secret is in it without a mark.
fn holds(value: &PropertyValue, finder: &SecretFinder) -> bool {
    match value {
        PropertyValue::String(text) | PropertyValue::Asset(Asset::Text { text, .. }) => {
            finder.finds_in(text)
        }
        PropertyValue::Secret(_) => false,
        PropertyValue::Output(output) if output.secret => false,
        other => other.parts().any(|part| holds(part, finder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: Vec<(&str, PropertyValue)>) -> PropertyMap {
        let entries = entries.into_iter();
        entries
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    #[test]
    fn what_has_a_secret_inside_is_marked_and_nothing_else() {
        let finder = SecretFinder::new(["hunter2-unmarked"]);
        let inner = map(vec![
            ("url", "postgres://u:hunter2-unmarked@db".into()),
            ("host", "db".into()),
        ]);
        let given = map(vec![
            ("plain", "open".into()),
            ("bare", "hunter2-unmarked".into()),
            ("list", vec![inner.into()].into()),
            ("known", PropertyValue::secret("hunter2-unmarked".into())),
        ]);
        let marked = marked_map(given, &finder);
        assert_eq!(marked["plain"], "open".into());
        let secret = |text: &str| PropertyValue::secret(text.into());
        assert_eq!(marked["bare"], secret("hunter2-unmarked"));
        assert_eq!(
            marked["known"],
            secret("hunter2-unmarked"),
            "once is enough"
        );
        let expected = map(vec![
            ("url", secret("postgres://u:hunter2-unmarked@db")),
            ("host", "db".into()),
        ]);
        assert_eq!(marked["list"], vec![expected.into()].into());
    }

    #[test]
    fn other_spellings_of_a_secret_are_found_too() {
        let finder = SecretFinder::new(["hunter2-unmarked"]);
        let encoded = "aHVudGVyMi11bm1hcmtlZA==";
        assert!(holds(&encoded.into(), &finder));
        assert!(!holds(&"hunter".into(), &finder));
        assert!(!SecretFinder::new([]).finds_in("anything"));
    }
}
