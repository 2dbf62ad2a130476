//! What every command says without a program to run: a success where there can be one and a typical
//! failure, to people and as JSON.

use std::sync::LazyLock;

use regex::Regex;

use crate::support::{WorkspaceSite, without_trace};

/// What differs from run to run.
static VARIES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pattern = |text: &str| Regex::new(text).expect("a constant expression");
    vec![
        (
            pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?"),
            "TIME",
        ),
        (pattern(r"\d{8}-\d{6}"), "STAMP"),
        (pattern(r"Wrote \d+ files"), "Wrote N files"),
        (pattern(r#""(files|written)": \d+"#), "\"$1\": N"),
        (pattern(r"trace [0-9a-f]{32}"), "trace ID"),
    ]
});

/// One act in both forms. Each form has a workspace of its own, as if it were the only one.
fn both(arguments: &[&str]) -> String {
    let site = WorkspaceSite::with_deployment;
    let human = site().run(arguments).shown();
    let ran = site().run(&[arguments, &["--json"]].concat());
    let lines = ran.stdout.lines().map(|line| {
        let whole = serde_json::from_str(line).map(without_trace);
        whole.map_or_else(|_| line.to_owned(), |value| format!("{value:#}"))
    });
    // Most documents are spread over lines; those of runs are one line each.
    let json = match serde_json::from_str(&ran.stdout) {
        Ok(value) => format!("{:#}", without_trace(value)),
        Err(_) => lines.collect::<Vec<_>>().join("\n"),
    };
    let mut text = format!(
        "$ {}\n{human}--- json (exit {})\n{json}\n",
        arguments.join(" "),
        ran.code
    );
    for (pattern, instead) in VARIES.iter() {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    text
}

macro_rules! words {
    ($($name:ident: $($arguments:expr),+;)*) => {$(
        #[test]
        fn $name() {
            let acts = [$(both(&$arguments)),+];
            insta::assert_snapshot!(acts.join("\n"));
        }
    )*};
}

words! {
    new: ["new", "elsewhere"], ["new", "cloud/stacks/web/src/index.ts"];
    init: ["init", "D2", "--org", "o", "--project", "p", "--template", "small"],
          ["init", "D1BRV40", "--org", "o", "--project", "p", "--template", "small"];
    list: ["list"], ["list", "--verbosely"];
    list_environments: ["list-environments", "D1BRV40"], ["list-environments", "D9"];
    enable_environment: ["enable-environment", "D1BRV40", "prod"],
                        ["enable-environment", "D1BRV40", "staging"];
    disable_environment: ["disable-environment", "D1BRV40", "dev"],
                         ["disable-environment", "D1BRV40", "stage"];
    validate: ["validate", "D1BRV40"], ["validate", "D9"];
    validate_stack: ["validate-stack", "D1BRV40", "web", "--environment", "dev"],
                    ["validate-stack", "D1BRV40", "wbe", "--environment", "dev"];
    validate_dependencies: ["validate-dependencies", "D1BRV40"], ["validate-dependencies", "D9"];
    graph: ["graph", "D1BRV40"], ["graph", "D1BRV40", "--format", "png"];
    status: ["status", "D1BRV40"], ["status", "D9"];
    logs: ["logs", "D1BRV40", "--environment", "dev"];
    locks: ["locks", "D1BRV40"], ["locks", "D9"];
    unlock: ["unlock", "D1BRV40", "--environment", "dev", "--yes"],
            ["unlock", "D9", "--environment", "dev", "--yes"];
    gate: ["gate", "D1BRV40", "--environment", "dev"],
          ["gate", "D1BRV40", "--environment", "dev", "--pass", "luck"];
    workspace_backup: ["workspace", "backup", "--output", "b.tgz"],
                      ["workspace", "backup", "--output", "no/such/folder/b.tgz"];
    workspace_restore: ["workspace", "restore", "absent.tgz"];
    why: ["why", "D1BRV40", "network", "--environment", "dev"],
         ["why", "D1BRV40", "ntework", "--environment", "dev"];
    export_state: ["export-state", "D1BRV40", "--environment", "dev"],
                  ["export-state", "D9", "--environment", "dev"];
    rotate: ["rotate", "D1BRV40", "web", "--environment", "dev"],
            ["rotate", "D1BRV40", "wbe", "--environment", "dev"];
    discover: ["discover"], ["discover", "extra"];
    discover_resources: ["discover-resources", "D1BRV40"], ["discover-resources", "D9"];
    list_stacks: ["list-stacks"], ["list-stacks", "extra"];
    list_templates: ["list-templates"], ["list-templates", "extra"];
    show_template: ["show-template", "small"], ["show-template", "smal"];
    validate_template: ["validate-template", "small"], ["validate-template", "smal"];
    create_template: ["create-template", "ours", "--from-deployment", "D1BRV40"],
                     ["create-template", "ours", "--from-deployment", "D9"];
    update_template: ["update-template", "small", "--disable-stack", "web"],
                     ["update-template", "small", "--disable-stack", "wbe"];
    register_stack: ["register-stack", "queue"], ["register-stack", "network"];
    update_stack: ["update-stack", "web", "--priority", "7"],
                  ["update-stack", "wbe", "--priority", "7"];
    unregister_stack: ["unregister-stack", "web"], ["unregister-stack", "wbe"];
    register_all_stacks: ["register-all-stacks", "--from-discovery"], ["register-all-stacks"];
    new_stack: ["new-stack", "topic", "--description", "Topics"], ["new-stack", "network"];
    migrate: ["migrate"];
    migrate_environment_names: ["migrate-environment-names", "--from", "staging", "--to", "stage"],
                               ["migrate-environment-names", "--from", "staging", "--to", "live"];
    migrate_stack_scripts: ["migrate-stack-scripts", "--from", "a.ts", "--to", "b.ts"],
                           ["migrate-stack-scripts", "--from", "../a.ts", "--to", "b.ts"];
    migrate_undo: ["migrate-undo"];
    explain: ["explain", "NIM-0758"], ["explain", "NIM-9999"];
    deploy: ["deploy", "D1BRV40", "--environment", "prod", "--confirm"];
    deploy_stack: ["deploy-stack", "D1BRV40", "web", "--environment", "dev"];
    preview: ["preview", "D9", "--environment", "dev"];
    destroy: ["destroy", "D1BRV40", "--environment", "dev"];
    resume: ["resume", "D1BRV40", "--environment", "dev"];
    rollback: ["rollback", "D1BRV40", "--environment", "dev", "--list"],
              ["rollback", "D1BRV40", "--environment", "dev", "--to-version", "5", "--yes"];
}
