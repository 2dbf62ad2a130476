//! Python programs.

use std::time::Duration;

use nimbus_engine_language::{
    LaunchError, ProgramEnvironment, ProjectTrust, Runtime, required_packages,
};
use nimbus_engine_model::{HookKind, PropertyMap, PropertyValue};
use nimbus_engine_monitor::Listen;
use nimbus_engine_ports::{
    HookRequest, HookRunner, ProgramError, RegisterError, RegisterStatus, Severity,
};
use nimbus_engine_testing::RegistrationAnswer;

use crate::support::{LifeLine, all_gone, python, python_program, secret};

#[tokio::test(flavor = "multi_thread")]
async fn a_python_program_with_config_secrets_and_components() {
    let Some(interpreter) = python("a_python_program_with_config_secrets_and_components") else {
        return;
    };
    let ready = python_program(
        &interpreter,
        r#"
import sys
import pulumi
from thing import Thing

class Site(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("my:index:Site", name)
        Thing("inner", "i", pulumi.ResourceOptions(parent=self))
        self.register_outputs({"done": True})

config = pulumi.Config()
first = Thing("first", config.require_secret("password"), pulumi.ResourceOptions(protect=True))
second = Thing("second", first.value.apply(lambda v: v + "!"))
Site("site")
print("hello from python", pulumi.get_stack(), sys.argv[1:])
print("a note", file=sys.stderr)
pulumi.export("size", config.require_int("size"))
pulumi.export("shout", second.value)
pulumi.export("id", first.id)
"#,
    )
    .config(
        &[("shop:size", "3"), ("shop:password", "p")],
        &["shop:password"],
    )
    .ready()
    .await;
    ready.succeed().await;
    assert_eq!(ready.goal("first").properties["value"], secret("p"));
    assert_eq!(ready.goal("first").protect, Some(true));
    assert_eq!(ready.goal("second").properties["value"], secret("p!"));
    assert_eq!(
        ready.goal("inner").parent.expect("a parent").type_(),
        "my:index:Site"
    );
    let outputs = ready.stack_outputs();
    assert_eq!(outputs["size"], 3.0.into());
    assert_eq!(outputs["shout"], secret("p!"));
    assert_eq!(outputs["id"], "first-id".into());
    let info = ready.audience.messages(Severity::Info);
    assert!(
        info.contains(&"hello from python dev []".to_owned()),
        "{info:?}"
    );
    assert!(info.contains(&"a note".to_owned()), "{info:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_in_a_python_preview_stays_unknown() {
    let Some(interpreter) = python("what_is_not_known_in_a_python_preview_stays_unknown") else {
        return;
    };
    let mut bench = python_program(
        &interpreter,
        r#"
import pulumi
from thing import Thing
first = Thing("first", "v")
Thing("second", {"of": first.id, "known": first.value})
pulumi.export("id", first.id)
"#,
    );
    bench.spec.listen = Listen::UnixSocket(bench.directory.path().join("m.sock"));
    let ready = bench.dry_run().ready().await;
    ready.succeed().await;
    let expected = PropertyMap::from([
        ("of".to_owned(), PropertyValue::Computed),
        ("known".to_owned(), "v".into()),
    ]);
    assert_eq!(
        ready.goal("second").properties["value"],
        PropertyValue::Object(expected)
    );
    assert_eq!(ready.stack_outputs()["id"], PropertyValue::Computed);
}

#[tokio::test(flavor = "multi_thread")]
async fn transforms_and_hooks_of_a_python_program_are_called() {
    let Some(interpreter) = python("transforms_and_hooks_of_a_python_program_are_called") else {
        return;
    };
    let ready = python_program(
        &interpreter,
        r#"
import pulumi
from thing import Thing

def tag(args):
    if args.type_ != "test:index:Thing":
        return None
    return pulumi.ResourceTransformResult(props={**args.props, "tag": "t"}, opts=args.opts)

pulumi.runtime.register_resource_transform(tag)
watch = pulumi.ResourceHook("watch", lambda args: print("hook saw", args.name, flush=True))
Thing("thing", pulumi.Output.secret("s"), pulumi.ResourceOptions(
    hooks=pulumi.ResourceHookBinding(before_create=[watch])))
"#,
    )
    .ready()
    .await;
    let run = ready.run().await;
    assert!(run.is_ok(), "{run:?}: {}", ready.audience.errors());
    let thing = ready.goal("thing");
    assert_eq!(thing.properties["tag"], "t".into());
    assert_eq!(thing.properties["value"], secret("s"));
    assert_eq!(thing.hooks[&HookKind::BeforeCreate], ["watch"]);
    let request = HookRequest {
        hook: "watch".to_owned(),
        kind: HookKind::BeforeCreate,
        urn: thing.parent.expect("a parent"),
        id: None,
        name: "thing".to_owned(),
        type_: thing.type_,
        new_inputs: Some(thing.properties),
        old_inputs: None,
        new_outputs: None,
        old_outputs: None,
    };
    ready.hooks.run(request).await.expect("it runs");
    ready.audience.heard("hook saw thing").await;
    ready.finish().await.expect("it ends when it may");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_a_python_program_are_never_successes() {
    let Some(interpreter) = python("failures_of_a_python_program_are_never_successes") else {
        return;
    };
    const ONE: &str = "from thing import Thing\nThing('first', 1)\n";
    for answer in [
        RegistrationAnswer::Status(RegisterStatus::Failed),
        RegistrationAnswer::Error(RegisterError::Invalid {
            message: "refused".to_owned(),
        }),
    ] {
        let ready = python_program(&interpreter, ONE)
            .answering(move |goal| match goal.name.as_str() {
                "first" => answer.clone(),
                _ => RegistrationAnswer::Usual,
            })
            .ready()
            .await;
        let run = ready.run().await;
        assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_exception_is_shown_from_where_the_program_begins() {
    let Some(interpreter) = python("a_python_exception_is_shown_from_where_the_program_begins")
    else {
        return;
    };
    let ready = python_program(
        &interpreter,
        "def f():\n    raise ValueError('boom')\nf()\n",
    )
    .ready()
    .await;
    let run = ready.run().await;
    assert!(matches!(run, Err(ProgramError::AlreadyReported)), "{run:?}");
    let errors = ready.audience.errors();
    assert!(
        errors.contains("ValueError: boom") && errors.contains("__main__.py"),
        "{errors}"
    );
    assert!(!errors.contains("runpy"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_by_sys_exit_is_an_end_like_any_other() {
    let Some(interpreter) = python("leaving_by_sys_exit_is_an_end_like_any_other") else {
        return;
    };
    let program = "import sys\nfrom thing import Thing\nThing('thing')\nsys.exit(0)\n";
    let ready = python_program(&interpreter, program).ready().await;
    ready.succeed().await;
    assert!(ready.registrar.goal("thing").is_some());

    let failing = "import sys\nsys.exit(3)\n";
    let ready = python_program(&interpreter, failing).ready().await;
    let Err(ProgramError::Failed { message }) = ready.run().await else {
        panic!("it failed");
    };
    assert!(message.contains("exit code 3"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_program_that_kills_itself_early_is_not_complete() {
    let Some(interpreter) = python("a_python_program_that_kills_itself_early_is_not_complete")
    else {
        return;
    };
    let program = "import os\nfrom thing import Thing\n\
                   Thing('first').id.apply(lambda _: os._exit(0))\n";
    let ready = python_program(&interpreter, program).ready().await;
    let Err(ProgramError::Failed { message }) = ready.run().await else {
        panic!("it must not count as complete");
    };
    assert!(
        message.contains("before it had asked for everything"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_python_program_is_ended_when_cancelled() {
    let Some(interpreter) = python("a_hanging_python_program_is_ended_when_cancelled") else {
        return;
    };
    let mut bench = python_program(
        &interpreter,
        "import time\nline = open('alive', 'w')\nprint('up and running')\ntime.sleep(1000)\n",
    );
    bench.spec.grace = Duration::from_secs(2);
    let line = LifeLine::new(bench.directory.path());
    let line = line.open();
    let ready = bench.ready().await;
    ready
        .cancelled_at(ready.audience.heard("up and running"))
        .await;
    all_gone(line).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_named_like_standard_modules_do_not_confuse_the_launcher() {
    let Some(interpreter) = python("files_named_like_standard_modules_do_not_confuse_the_launcher")
    else {
        return;
    };
    let bench = python_program(&interpreter, "print('fine')\n");
    for name in ["argparse.py", "traceback.py", "pulumi.py"] {
        std::fs::write(bench.directory.path().join(name), "raise SystemExit(9)").expect("a file");
    }
    let ready = bench.ready().await;
    ready.succeed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_sees_the_environment_that_it_is_given_and_no_other() {
    let Some(interpreter) = python("a_program_sees_the_environment_that_it_is_given_and_no_other")
    else {
        return;
    };
    let program = "import os, pulumi\npulumi.export('names', sorted(os.environ))\n";
    let mut bench = python_program(&interpreter, program);
    bench.spec.environment = ProgramEnvironment::Only([("GIVEN".into(), "1".into())].into());
    let ready = bench.ready().await;
    ready.succeed().await;
    let PropertyValue::Array(names) = ready.stack_outputs()["names"].clone() else {
        unreachable!("a list was exported");
    };
    let names: Vec<_> = names.iter().filter_map(PropertyValue::as_str).collect();
    assert!(
        names.contains(&"GIVEN") && names.contains(&"VIRTUAL_ENV"),
        "{names:?}"
    );
    assert!(
        !names.contains(&"HOME") && !names.contains(&"CARGO_PKG_NAME"),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_file_finds_the_modules_beside_it() {
    let Some(interpreter) = python("a_single_file_finds_the_modules_beside_it") else {
        return;
    };
    let mut bench = python_program(&interpreter, "raise SystemExit(9)");
    let source = bench.directory.path().join("src");
    std::fs::create_dir(&source).expect("a directory");
    std::fs::write(source.join("helper.py"), "NAME = 'from beside'\n").expect("a file");
    let program = "import os, pulumi\nfrom helper import NAME\n\
                   pulumi.export('name', NAME)\npulumi.export('cwd', os.path.basename(os.getcwd()))\n";
    std::fs::write(source.join("app.py"), program).expect("a file");
    bench.spec.main = Some("src/app.py".to_owned());
    let ready = bench.ready().await;
    ready.succeed().await;
    assert_eq!(ready.stack_outputs()["name"], "from beside".into());
    assert_eq!(ready.stack_outputs()["cwd"], "src".into());
}

#[tokio::test]
async fn a_python_program_without_main_is_refused() {
    let Some(interpreter) = python("a_python_program_without_main_is_refused") else {
        return;
    };
    let bench = python_program(&interpreter, "");
    std::fs::remove_file(bench.directory.path().join("__main__.py")).expect("it was there");
    let options = bench.spec.options.clone();
    let root = bench.directory.path().to_owned();
    let found = required_packages(Runtime::Python, &options, &root, None, &ProjectTrust::Own).await;
    assert!(
        found.is_ok(),
        "packages belong to the environment, not to the program"
    );
    let refused = bench.prepare().await;
    assert!(matches!(
        refused.err(),
        Some(LaunchError::EntryMissing { .. })
    ));
}
