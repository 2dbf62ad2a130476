//! The real Node and Python SDKs: dynamic providers, source plugins and policy packs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use nimbus_engine_model::{CustomTimeouts, PropertyMap, PropertyValue};
use nimbus_engine_plugin::{HostOptions, PluginHost, PluginKind, PolicyPackOptions, ProjectPlugin};
use nimbus_engine_ports::{
    AnalyzeRequest, Analyzer, AnalyzerResource, CheckRequest, ConfigureRequest, CreateRequest,
    DeleteRequest, DiffRequest, Diffs, EnforcementLevel, Provider, ProviderError, ProviderHost,
    ReadRequest, Severity, UpdateRequest,
};
use nimbus_test_tools::{Tool, tool_or_skip};
use tempfile::TempDir;

use crate::support::*;

/// A folder in which the Node SDK is installed.
fn node_folder(sdk: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(sdk.join("node_modules"), folder.path().join("node_modules"))
        .unwrap();
    folder
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

async fn dynamic(options: HostOptions, package_name: &str) -> (PluginHost, Arc<dyn Provider>) {
    let host = PluginHost::new(options);
    let provider = host.load(&package(package_name)).await.unwrap();
    let type_ = format!("pulumi:providers:{package_name}");
    let config = map([("fake:size", "3".into())]);
    let check = CheckRequest {
        type_: type_.clone(),
        news: config.clone(),
        ..Default::default()
    };
    assert_eq!(
        provider.check_config(check).await.unwrap().properties,
        config
    );
    let request = ConfigureRequest {
        urn: Some(urn(&type_, "default")),
        name: "default".into(),
        type_,
        id: Some("id".into()),
        inputs: config,
    };
    provider.configure(request).await.unwrap();
    (host, provider)
}

/// What every dynamic provider must do. Its `create` makes id `made` and adds `length`; its `check`
/// refuses an empty `name`; `name: broken` makes `create` fail; `delete` of `stuck` fails.
async fn lifecycle(provider: &Arc<dyn Provider>, code: PropertyValue) {
    let inputs = |name: &str| map([("__provider", secret(code.clone())), ("name", secret(name))]);
    let check = |news: PropertyMap| CheckRequest {
        news,
        ..CheckRequest::default()
    };

    let checked = provider.check(check(inputs("abc"))).await.unwrap();
    assert_eq!(checked.failures, []);
    assert_eq!(checked.properties["name"], secret("abc"), "marked again");
    let refused = provider.check(check(inputs(""))).await.unwrap();
    assert_eq!(refused.failures[0].property, "name");

    let create = |properties, preview| CreateRequest {
        properties,
        preview,
        ..Default::default()
    };
    let preview = provider
        .create(create(checked.properties.clone(), true))
        .await
        .unwrap();
    assert_eq!(
        preview.properties, checked.properties,
        "it supports no previews"
    );
    let created = provider
        .create(create(checked.properties.clone(), false))
        .await
        .unwrap();
    assert_eq!(created.id, "made");
    assert_eq!(created.properties["length"], 3.0.into());
    assert_eq!(created.properties["name"], secret("abc"));
    assert_eq!(created.properties["__provider"], secret(code.clone()));
    let failed = provider.create(create(inputs("broken"), false)).await;
    let Err(ProviderError::Failed { message, .. }) = failed else {
        panic!("{failed:?}")
    };
    assert!(message.contains("no such luck"), "{message}");

    let diff = |name: &str| DiffRequest {
        id: "made".into(),
        old_inputs: checked.properties.clone(),
        old_outputs: created.properties.clone(),
        new_inputs: inputs(name),
        ..DiffRequest::default()
    };
    assert_eq!(
        provider.diff(diff("abc")).await.unwrap().changes,
        Diffs::None
    );
    let changed = provider.diff(diff("abcd")).await.unwrap();
    assert_eq!((changed.changes, changed.replaces()), (Diffs::Some, true));

    let update = UpdateRequest {
        id: "made".into(),
        old_inputs: checked.properties.clone(),
        old_outputs: created.properties.clone(),
        new_inputs: inputs("abcd"),
        ..UpdateRequest::default()
    };
    let updated = provider.update(update).await.unwrap();
    assert_eq!(updated.properties["length"], 4.0.into());
    let read = ReadRequest {
        id: "made".into(),
        inputs: checked.properties.clone(),
        state: created.properties.clone(),
        ..ReadRequest::default()
    };
    let found = provider.read(read.clone()).await.unwrap();
    assert_eq!(found.id.as_deref(), Some("made"));
    assert_eq!(found.outputs["name"], secret("abc"));
    let delete = |id: &str| DeleteRequest {
        id: id.into(),
        inputs: checked.properties.clone(),
        outputs: created.properties.clone(),
        timeout: None,
        ..DeleteRequest::default()
    };
    provider.delete(delete("made")).await.unwrap();
    let stuck = provider.delete(delete("stuck")).await;
    assert!(
        matches!(stuck, Err(ProviderError::Failed { .. })),
        "{stuck:?}"
    );
}

const NODE_DYNAMIC: &str = r#"
exports.handler = () => ({
    async check(olds, news) {
        const failures = news.name ? [] : [{ property: "name", reason: "is empty" }];
        return { inputs: news, failures };
    },
    async create(inputs) {
        if (inputs.name === "broken") { throw new Error("no such luck"); }
        console.log("made it");
        return { id: "made", outs: { ...inputs, length: inputs.name.length } };
    },
    async diff(id, olds, news) {
        const changes = olds.name !== news.name;
        return { changes, replaces: changes ? ["name"] : [] };
    },
    async update(id, olds, news) {
        return { outs: { ...news, length: news.name.length } };
    },
    async delete(id) {
        if (id === "stuck") { throw new Error("will not go"); }
    },
});
"#;

#[tokio::test]
async fn a_dynamic_provider_of_the_node_sdk_does_its_whole_work() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let folder = node_folder(&sdk);
    let audience = Arc::new(Audience::default());
    let (host, provider) = dynamic(options(&audience, folder.path()), "pulumi-nodejs").await;
    lifecycle(&provider, NODE_DYNAMIC.into()).await;
    host.shutdown().await;
    assert!(
        audience
            .told(Severity::Info)
            .contains(&"made it".to_owned()),
        "the user's own output"
    );
    assert_eq!(audience.told(Severity::Error), [""; 0]);
}

const PYTHON_DYNAMIC: &str = r#"
import base64
import dill
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, ResourceProvider, UpdateResult


class Provider(ResourceProvider):
    def check(self, olds, news):
        failures = [] if news["name"] else [CheckFailure("name", "is empty")]
        return CheckResult(news, failures)

    def create(self, props):
        if props["name"] == "broken":
            raise Exception("no such luck")
        return CreateResult("made", {**props, "length": len(props["name"])})

    def diff(self, id, olds, news):
        changes = olds["name"] != news["name"]
        return DiffResult(changes=changes, replaces=["name"] if changes else [])

    def update(self, id, olds, news):
        return UpdateResult({**news, "length": len(news["name"])})

    def delete(self, id, props):
        if id == "stuck":
            raise Exception("will not go")


print(base64.b64encode(dill.dumps(Provider(), recurse=True)).decode())
"#;

#[tokio::test]
async fn a_dynamic_provider_of_the_python_sdk_does_its_whole_work() {
    let python = tool_or_skip!(Tool::Python);
    let pickled = Command::new(&python)
        .args(["-c", PYTHON_DYNAMIC])
        .output()
        .unwrap();
    assert!(
        pickled.status.success(),
        "{}",
        String::from_utf8_lossy(&pickled.stderr)
    );
    let code = String::from_utf8(pickled.stdout).unwrap().trim().to_owned();
    let folder = TempDir::new().unwrap();
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, folder.path());
    options.python = Some(python);
    let (host, provider) = dynamic(options, "pulumi-python").await;
    lifecycle(&provider, code.into()).await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_dynamic_provider_without_its_sdk_says_what_to_install() {
    let folder = TempDir::new().unwrap();
    let audience = Arc::new(Audience::default());
    let host = PluginHost::new(options(&audience, folder.path()));
    let error = host
        .load(&package("pulumi-nodejs"))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("@pulumi/pulumi/cmd/dynamic-provider is not installed"),
        "{error}"
    );
    assert!(error.contains("npm install"), "{error}");
}

fn source_plugin(options: &mut HostOptions, folder: &Path) {
    options.search.project = vec![ProjectPlugin {
        kind: PluginKind::Resource,
        name: "fake".into(),
        version: None,
        folder: folder.to_owned(),
    }];
}

const NODE_PLUGIN: &str = r#"
const { main } = require("@pulumi/pulumi/provider");
class Provider {
    constructor() { this.version = "1.2.3"; this.schema = JSON.stringify({ name: "fake" }); }
    async invoke(token, inputs) { return { outputs: { echo: inputs.word, token } }; }
}
main(new Provider(), process.argv.slice(2));
"#;

#[tokio::test]
async fn a_plugin_in_source_runs_with_its_own_node_sdk() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let folder = node_folder(&sdk);
    write(
        folder.path(),
        &[
            ("PulumiPlugin.yaml", "runtime: nodejs\n"),
            ("index.js", NODE_PLUGIN),
        ],
    );
    let elsewhere = TempDir::new().unwrap();
    let audience = Arc::new(Audience::default());
    let mut options = options(&audience, elsewhere.path());
    source_plugin(&mut options, folder.path());
    let host = PluginHost::new(options);
    assert_eq!(
        host.schema(&package("fake")).await.unwrap(),
        "{\"name\":\"fake\"}"
    );
    let provider = host.load(&package("fake")).await.unwrap();
    provider.configure(configuration([])).await.unwrap();
    let request = nimbus_engine_ports::InvokeRequest {
        token: "fake:index:echo".into(),
        args: map([("word", "hello".into())]),
        preview: false,
    };
    let found = provider.invoke(request).await.unwrap();
    assert_eq!(found.properties["echo"], "hello".into());
    host.shutdown().await;
}

const NODE_PACK: &str = r#"
const { PolicyPack } = require("@pulumi/policy");
new PolicyPack("names", {
    policies: [
        {
            name: "short",
            description: "Names are short",
            enforcementLevel: "mandatory",
            configSchema: { properties: { max: { type: "number", default: 5 } } },
            validateResource: (args, report) => {
                if (args.props.name && args.props.name.length > args.getConfig().max) {
                    report(`${args.props.name} is longer than ${args.getConfig().max}`);
                }
            },
        },
        {
            name: "lower",
            description: "Names are in lower case",
            enforcementLevel: "remediate",
            remediateResource: (args) => {
                if (args.props.name !== args.props.name.toLowerCase()) {
                    return { ...args.props, name: args.props.name.toLowerCase() };
                }
            },
        },
        {
            name: "few",
            description: "There are few resources",
            enforcementLevel: "advisory",
            validateStack: (args, report) => {
                if (args.resources.length > 1) { report(`there are ${args.resources.length}`); }
            },
        },
    ],
});
"#;

fn resource(name: &str, properties: PropertyMap) -> AnalyzeRequest {
    AnalyzeRequest {
        urn: urn("fake:index:Thing", name),
        type_: "fake:index:Thing".into(),
        name: name.into(),
        properties,
        protect: false,
        ignore_changes: Vec::new(),
        delete_before_replace: None,
        additional_secret_outputs: Vec::new(),
        aliases: Vec::new(),
        custom_timeouts: CustomTimeouts::default(),
        parent: None,
        provider: None,
    }
}

fn in_stack(resource: AnalyzeRequest) -> AnalyzerResource {
    AnalyzerResource {
        resource,
        dependencies: Vec::new(),
        property_dependencies: [].into(),
    }
}

fn pack_options(folder: &Path, max: Option<u32>) -> PolicyPackOptions {
    let policies = max.map(|max| {
        let settings = serde_json::json!({ "short": { "max": max } });
        settings.as_object().unwrap().clone()
    });
    PolicyPackOptions {
        folder: folder.to_owned(),
        policies,
        stack: "dev".into(),
        project: "shop".into(),
        organization: "acme".into(),
        dry_run: true,
        ..PolicyPackOptions::default()
    }
}

#[tokio::test]
async fn a_policy_pack_of_the_node_sdk_judges_and_corrects() {
    let sdk = tool_or_skip!(Tool::NodeSdk);
    let folder = node_folder(&sdk);
    write(
        folder.path(),
        &[
            ("PulumiPolicy.yaml", "runtime: nodejs\nversion: 9.9.9\n"),
            ("package.json", r#"{"name": "names", "version": "0.0.1"}"#),
            ("index.js", NODE_PACK),
        ],
    );
    let audience = Arc::new(Audience::default());
    let host = PluginHost::new(options(&audience, folder.path()));
    let pack = host
        .start_policy_pack(pack_options(folder.path(), None))
        .await
        .unwrap();
    assert_eq!(pack.info().name, "names");
    assert_eq!(
        pack.info().version,
        "9.9.9",
        "the manifest goes before the code"
    );

    let long = resource(
        "a",
        map([("name", "overlong".into()), ("pin", secret("1234"))]),
    );
    let violations = pack.analyze(&long).await.unwrap();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].policy, "short");
    assert_eq!(violations[0].enforcement, EnforcementLevel::Mandatory);
    assert_eq!(violations[0].pack_version, "9.9.9");
    assert!(
        violations[0].message.contains("overlong is longer than 5"),
        "{violations:?}"
    );
    let good = resource("b", map([("name", "ok".into())]));
    assert_eq!(pack.analyze(&good).await.unwrap(), []);

    let shouting = resource("c", map([("name", "OK".into()), ("pin", secret("1234"))]));
    let remedies = pack.remediate(&shouting).await.unwrap();
    assert_eq!(remedies.len(), 1, "{remedies:?}");
    let expected = map([("name", "ok".into()), ("pin", secret("1234"))]);
    assert_eq!(remedies[0].properties, Some(expected));
    assert_eq!(remedies[0].policy, "lower");

    let stack = [in_stack(long.clone()), in_stack(good)];
    let violations = pack.analyze_stack(&stack).await.unwrap();
    assert_eq!(
        violations[0].message.lines().last(),
        Some("there are 2"),
        "{violations:?}"
    );
    pack.close().await;

    let relaxed = host
        .start_policy_pack(pack_options(folder.path(), Some(20)))
        .await
        .unwrap();
    assert_eq!(
        relaxed.analyze(&long).await.unwrap(),
        [],
        "configured by the user"
    );
    host.shutdown().await;
}

const PYTHON_PACK: &str = r#"
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

def short(args, report):
    if len(args.props["name"]) > 5:
        report(f"{args.props['name']} is too long")

PolicyPack(
    name="names",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[ResourceValidationPolicy(name="short", description="Names are short", validate=short)],
)
"#;

#[tokio::test]
async fn a_policy_pack_of_the_python_sdk_judges() {
    let python = tool_or_skip!(Tool::Python);
    let virtualenv: PathBuf = python.parent().unwrap().parent().unwrap().to_owned();
    let folder = TempDir::new().unwrap();
    let manifest = format!(
        "runtime:\n  name: python\n  options:\n    virtualenv: {}\n",
        virtualenv.display()
    );
    write(
        folder.path(),
        &[
            ("PulumiPolicy.yaml", &manifest),
            ("__main__.py", PYTHON_PACK),
        ],
    );
    let audience = Arc::new(Audience::default());
    let host = PluginHost::new(options(&audience, folder.path()));
    let pack = host
        .start_policy_pack(pack_options(folder.path(), None))
        .await
        .unwrap();
    let violations = pack
        .analyze(&resource("a", map([("name", "overlong".into())])))
        .await
        .unwrap();
    assert_eq!(violations.len(), 1, "{violations:?}");
    assert_eq!(violations[0].enforcement, EnforcementLevel::Mandatory);
    assert!(
        violations[0].message.contains("overlong is too long"),
        "{violations:?}"
    );
    host.shutdown().await;
}

#[tokio::test]
async fn a_policy_pack_that_cannot_run_says_why() {
    let folder = TempDir::new().unwrap();
    let audience = Arc::new(Audience::default());
    let host = PluginHost::new(options(&audience, folder.path()));
    let start = || host.start_policy_pack(pack_options(folder.path(), None));
    let code = |error| nimbus_core::Error::from(error).code().to_string();

    assert_eq!(
        code(start().await.err().unwrap()),
        "NIM-0003",
        "no manifest"
    );
    write(
        folder.path(),
        &[("PulumiPolicy.yaml", "runtime: [nodejs]\n")],
    );
    assert_eq!(
        code(start().await.err().unwrap()),
        "NIM-0007",
        "a manifest of the wrong shape"
    );
    write(folder.path(), &[("PulumiPolicy.yaml", "runtime: cobol\n")]);
    assert_eq!(
        code(start().await.err().unwrap()),
        "NIM-0302",
        "a language nobody runs"
    );
    write(folder.path(), &[("PulumiPolicy.yaml", "runtime: nodejs\n")]);
    let error = nimbus_core::Error::from(start().await.err().unwrap());
    assert!(
        error.help().unwrap().starts_with("run npm install in "),
        "{error}"
    );
}
