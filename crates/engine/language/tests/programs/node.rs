//! TypeScript and JavaScript programs that do what they should.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_engine_model::{HookKind, PropertyMap, PropertyValue};
use nimbus_engine_monitor::{
    BuiltinProvider, Listen, RunningResources, StackReadError, StackReader,
};
use nimbus_engine_ports::{HookRequest, HookRunner, InvokeResponse, Severity};
use nimbus_engine_testing::{AnsweringProvider, RegistrationAnswer};

use crate::support::{esm, node_sdk, secret, typescript};

#[tokio::test(flavor = "multi_thread")]
async fn a_typescript_program_of_several_files_with_config_secrets_and_components() {
    let Some(sdk) = node_sdk("a_typescript_program_of_several_files") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing";

class Site extends pulumi.ComponentResource {
    constructor(name: string, opts?: pulumi.ComponentResourceOptions) {
        super("my:index:Site", name, {}, opts);
        new Thing("inner", "i", { parent: this });
        this.registerOutputs({ done: true });
    }
}

const config = new pulumi.Config();
const first = new Thing("first", config.requireSecret("password"), { protect: true });
const second = new Thing("second", first.value.apply(v => `${v}!`), { dependsOn: [first] });
new Site("site");
console.log("hello from node", pulumi.getStack(), pulumi.getProject());
console.error("a note");
export const size = config.requireNumber("size");
export const shout = second.value;
export const id = first.id;
"#,
    )
    .config(
        &[("shop:size", "3"), ("shop:password", "p")],
        &["shop:password"],
    )
    .ready()
    .await;
    ready.succeed().await;

    let stack = ready.goal("shop-dev");
    let first = ready.goal("first");
    assert_eq!(first.properties["value"], secret("p"));
    assert_eq!(first.protect, Some(true));
    let parent = first.parent.expect("the stack is its parent");
    assert_eq!(parent.name(), "shop-dev");
    assert!(!stack.custom);
    assert!(
        first.source_position.starts_with("project:///index.ts#"),
        "{}",
        first.source_position
    );
    let second = ready.goal("second");
    assert_eq!(second.properties["value"], secret("p!"));
    assert_eq!(second.dependencies.len(), 1);
    assert_eq!(second.property_dependencies["value"].len(), 1);
    assert_eq!(
        ready.goal("inner").parent.expect("a parent").type_(),
        "my:index:Site"
    );
    assert!(
        ready
            .goal("inner")
            .provider
            .contains("pulumi:providers:test::default")
    );
    let outputs = ready.stack_outputs();
    assert_eq!(outputs["size"], 3.0.into());
    assert_eq!(outputs["shout"], secret("p!"));
    assert_eq!(outputs["id"], "first-id".into());
    let info = ready.audience.messages(Severity::Info);
    assert!(
        info.contains(&"hello from node dev shop".to_owned()),
        "{info:?}"
    );
    assert!(info.contains(&"a note".to_owned()), "{info:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_es_module() {
    let Some(sdk) = node_sdk("an_es_module") else {
        return;
    };
    let ready = esm(
        &sdk,
        r#"
import pulumi from "@pulumi/pulumi";
class Thing extends pulumi.CustomResource {
    constructor(name, value) { super("test:index:Thing", name, { value }); }
}
const thing = new Thing("thing", [1, { a: null }]);
await new Promise(resolve => setTimeout(resolve, 10));
export const late = pulumi.output(2);
export const value = thing.value;
"#,
    )
    .ready()
    .await;
    ready.succeed().await;
    let value = PropertyValue::Array(vec![
        1.0.into(),
        PropertyValue::Object([("a".to_owned(), PropertyValue::Null)].into()),
    ]);
    assert_eq!(ready.goal("thing").properties["value"], value);
    assert_eq!(ready.stack_outputs()["late"], 2.0.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_in_a_preview_stays_unknown() {
    let Some(sdk) = node_sdk("what_is_not_known_in_a_preview_stays_unknown") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing";
const first = new Thing("first", "v");
new Thing("second", { of: first.id, known: first.value });
export const dry = pulumi.runtime.isDryRun();
export const id = first.id;
"#,
    )
    .dry_run()
    .ready()
    .await;
    ready.succeed().await;
    let value = ready.goal("second").properties["value"].clone();
    let expected = PropertyMap::from([
        ("of".to_owned(), PropertyValue::Computed),
        ("known".to_owned(), "v".into()),
    ]);
    assert_eq!(value, PropertyValue::Object(expected));
    let outputs = ready.stack_outputs();
    assert_eq!(outputs["dry"], true.into());
    assert_eq!(outputs["id"], PropertyValue::Computed);
}

#[tokio::test(flavor = "multi_thread")]
async fn transforms_of_the_program_change_what_it_asks_for() {
    let Some(sdk) = node_sdk("transforms_of_the_program_change_what_it_asks_for") else {
        return;
    };
    let provider = Arc::new(AnsweringProvider::default().on_invoke(|request| {
        Ok(InvokeResponse {
            properties: request.args,
            failures: Vec::new(),
        })
    }));
    let mut bench = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing";
pulumi.runtime.registerResourceTransform(args =>
    args.type === "test:index:Thing"
        ? { props: { ...args.props, stack: "s" }, opts: { ...args.opts, protect: true } }
        : undefined);
pulumi.runtime.registerInvokeTransform(args => ({ args: { ...args.args, added: 1 }, opts: args.opts }));
const secret = pulumi.secret("hidden");
new Thing("thing", secret, {
    transforms: [async args => ({ props: { ...args.props, own: args.props.value }, opts: args.opts })],
});
export const answer = pulumi.runtime.invokeOutput("test:index:get", { asked: true });
"#,
    );
    bench.registrar = bench.registrar.with_provider("test", provider.clone());
    let ready = bench.ready().await;
    ready.succeed().await;
    let thing = ready.goal("thing");
    assert_eq!(thing.properties["stack"], "s".into());
    assert_eq!(thing.properties["own"], secret("hidden"));
    assert_eq!(thing.protect, Some(true));
    assert_eq!(provider.invokes()[0].args["added"], 1.0.into());
    let answer = &ready.stack_outputs()["answer"];
    let answer = answer.as_object().expect("an object");
    assert_eq!(answer["asked"], true.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_run_in_the_program_even_after_it_asked_for_everything() {
    let Some(sdk) = node_sdk("hooks_run_in_the_program") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing";
const watch = new pulumi.ResourceHook("watch", async args => {
    console.log("hook saw", args.name, JSON.stringify(args.newInputs));
});
const gate = new pulumi.ResourceHook("gate", () => { throw new Error("not today"); });
new Thing("thing", 1, { hooks: { beforeCreate: [watch], afterDelete: [gate] } });
"#,
    )
    .ready()
    .await;
    let run = ready.run().await;
    assert!(run.is_ok(), "{run:?}: {}", ready.audience.errors());
    let thing = ready.goal("thing");
    assert_eq!(thing.hooks[&HookKind::BeforeCreate], ["watch"]);
    assert_eq!(thing.hooks[&HookKind::AfterDelete], ["gate"]);

    let request = |hook: &str| HookRequest {
        hook: hook.to_owned(),
        kind: HookKind::BeforeCreate,
        urn: thing.parent.clone().expect("a parent"),
        id: None,
        name: "thing".to_owned(),
        type_: thing.type_.clone(),
        new_inputs: Some(thing.properties.clone()),
        old_inputs: None,
        new_outputs: None,
        old_outputs: None,
    };
    ready.hooks.run(request("watch")).await.expect("it runs");
    ready.audience.heard(r#"hook saw thing {"value":1}"#).await;
    let refused = ready
        .hooks
        .run(request("gate"))
        .await
        .expect_err("it throws");
    assert!(refused.to_string().contains("not today"), "{refused}");
    ready.finish().await.expect("it ends when it may");
}

struct OtherStacks;

#[async_trait]
impl StackReader for OtherStacks {
    async fn outputs(&self, name: &str) -> Result<PropertyMap, StackReadError> {
        assert_eq!(name, "organization/net/dev");
        Ok([
            ("vpc".to_owned(), "vpc-1".into()),
            ("key".to_owned(), secret("k")),
        ]
        .into())
    }

    async fn resource_outputs(&self, _: &str) -> Result<PropertyMap, StackReadError> {
        Ok(PropertyMap::new())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_references_and_resource_references_are_answered() {
    let Some(sdk) = node_sdk("stack_references_and_resource_references_are_answered") else {
        return;
    };
    let mut bench = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
import { Thing } from "./thing";
pulumi.runtime.registerResourceModule("test", "index", {
    version: "1.0.0",
    construct: (name: string, type: string, urn: string) => new Thing(name, undefined, { urn } as any),
});
const net = new pulumi.StackReference("organization/net/dev");
const first = new Thing("first", "f");
const second = new Thing("second", first);
export const vpc = net.getOutput("vpc");
export const key = net.getOutput("key");
export const through = second.value.apply((t: Thing) => t.value);
"#,
    );
    let resources = Arc::new(RunningResources::default());
    let builtin = BuiltinProvider::new(Arc::new(OtherStacks), Arc::clone(&resources));
    bench.registrar = bench.registrar.with_provider("pulumi", Arc::new(builtin));
    let ready = bench
        .prepare_with(resources)
        .await
        .expect("everything is installed");
    ready.succeed().await;
    let outputs = ready.stack_outputs();
    assert_eq!(outputs["vpc"], "vpc-1".into());
    assert_eq!(outputs["key"], secret("k"));
    assert_eq!(outputs["through"], "f".into());
    assert_eq!(
        ready.registrar.reads()[0].type_,
        "pulumi:pulumi:StackReference"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_network_talks_over_a_socket() {
    let Some(sdk) = node_sdk("a_program_without_network_talks_over_a_socket") else {
        return;
    };
    let mut bench = typescript(
        &sdk,
        r#"import { Thing } from "./thing"; new Thing("thing");"#,
    );
    bench.spec.listen = Listen::UnixSocket(bench.directory.path().join("m.sock"));
    let ready = bench.ready().await;
    ready.succeed().await;
    assert!(ready.registrar.goal("thing").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_invoke_can_be_caught() {
    let Some(sdk) = node_sdk("a_failed_invoke_can_be_caught") else {
        return;
    };
    let ready = typescript(
        &sdk,
        r#"
import * as pulumi from "@pulumi/pulumi";
export = async () => {
    try {
        await pulumi.runtime.invoke("test:index:get", {});
    } catch (error: any) {
        return { caught: error.message };
    }
};
"#,
    )
    .answering(|_| RegistrationAnswer::Usual)
    .ready()
    .await;
    ready.succeed().await;
    let outputs = ready.stack_outputs();
    let caught = outputs["caught"].as_str().expect("a message");
    assert!(caught.contains("there is no provider"), "{caught}");
}
