use nimbus_orchestrator::validate::validate;

use super::*;
use crate::workspace::Workspace;

fn tree() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (file, text) in [
        (
            "admin/v2/docs/Guide.md",
            "Programs are in ./aws/build/network/v2/src.\n",
        ),
        (
            "aws/build/package.json",
            "{\"workspaces\": [\"*/v2/resources\"]}\n",
        ),
        (
            "aws/build/network/v2/resources/Pulumi.yaml",
            "name: net\nruntime: {name: nodejs, options: {typescript: true}}\nmain: index.2.2.ts\ndescription: Networks\n",
        ),
        (
            "aws/build/network/v2/resources/index.2.2.ts",
            "export const vpcId = 'vpc-1';\n",
        ),
        (
            "aws/build/network/v2/resources/package.json",
            "{\"main\": \"index.2.2.ts\"}\n",
        ),
        (
            "aws/build/web/v2/src/index.ts",
            "// deployed from ./aws/deploy\n",
        ),
        ("aws/build/web/v2/docs/Web.md", "See admin/v2/docs.\n"),
        (
            "aws/deploy/D1BRV40-Company-shop/src/Deployment_Manifest.yaml",
            "metadata: {deploymentId: D1BRV40, organization: Company, project: shop}\nspec:\n  environments:\n    \
             dev: {account: '111111111111', region: eu-west-1}\n    staging: {enabled: false, account: '222222222222', region: eu-west-1}\n  \
             stacks:\n    network: {priority: 20}\n    web: {dependencies: [network], config: {dev: {vpc: '{{RUNTIME:network:vpcId}}'}, staging: {size: 1}}}\n",
        ),
        (
            "aws/deploy/D1BRV40-Company-shop/config/web.dev.yaml",
            "old\n",
        ),
    ] {
        files_write(&temp.path().join(file), text);
    }
    temp
}

fn files_write(path: &Path, text: &str) {
    crate::files::replace(path, text).unwrap();
}

fn everything(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(next) = open.pop() {
        if next.is_dir() {
            open.extend(sorted(&next));
        } else {
            files.insert(below(root, &next), fs::read_to_string(&next).unwrap());
        }
    }
    files
}

#[test]
fn a_tree_of_2_3_becomes_a_workspace_that_is_valid() {
    let temp = tree();
    let migration = plan_tree(temp.path()).unwrap();
    migration
        .apply(temp.path(), "migrate", "2026-01-02T03:04:05Z")
        .unwrap();
    let read = |file: &str| fs::read_to_string(temp.path().join(file)).unwrap();
    assert_eq!(
        read("cloud/stacks/network/src/Pulumi.yaml"),
        "name: network\nruntime: nodejs\ndescription: Networks\n"
    );
    assert_eq!(
        read("cloud/stacks/network/src/package.json"),
        "{\"main\": \"index.ts\"}\n"
    );
    assert!(read("cloud/stacks/network/src/index.ts").contains("vpcId"));
    assert_eq!(
        read("cloud/stacks/package.json"),
        "{\"workspaces\": [\"*/src\"]}\n"
    );
    assert_eq!(
        read("cloud/stacks/web/docs/Web.md"),
        "See cloud/tools/docs.\n"
    );
    assert_eq!(
        read("cloud/tools/docs/Guide.md"),
        "Programs are in ./cloud/stacks/network/src.\n"
    );
    assert!(
        read("aws/deploy/D1BRV40-Company-shop.v2.3.backup/src/Deployment_Manifest.yaml")
            .contains("staging")
    );

    let workspace = Workspace::find(&temp.path().join("cloud")).unwrap();
    let library = workspace.library().unwrap();
    assert!(library.stacks["web"].dependencies.contains("network"));
    assert!(library.stacks["network"].outputs.contains_key("vpcId"));
    let manifest = workspace.deployment("D1BRV40").unwrap().manifest;
    let environments: Vec<_> = manifest.environments.keys().copied().collect();
    assert_eq!(environments, ["dev", "stage"]);
    let findings = validate(&manifest, &library, &environments);
    assert!(findings.is_empty(), "{findings:?}");
    for stack in ["network", "web"] {
        workspace.project_file(&stack.parse().unwrap()).unwrap();
    }
    assert!(
        plan_tree(temp.path()).unwrap().is_empty(),
        "a second migration has nothing to do"
    );
}

#[test]
fn an_undo_brings_the_tree_back() {
    let temp = tree();
    let before = everything(temp.path());
    plan_tree(temp.path())
        .unwrap()
        .apply(temp.path(), "migrate", "now")
        .unwrap();
    let (path, record) = super::super::AppliedMigration::newest(temp.path()).unwrap();
    record.undo(temp.path(), &path).unwrap();
    let mut after = everything(temp.path());
    after.retain(|path, _| {
        !path.starts_with(".nimbus") && !path.to_string_lossy().contains(".backup")
    });
    assert_eq!(after, before);
}

#[test]
fn old_and_new_names_of_units() {
    let temp = tree();
    plan_tree(temp.path())
        .unwrap()
        .apply(temp.path(), "migrate", "now")
        .unwrap();
    let workspace = Workspace::find(&temp.path().join("cloud")).unwrap();
    let moves = StateMove::of_deployment(&workspace.deployment("D1BRV40").unwrap().manifest);
    let expected = StateMove {
        from: ("web".to_owned(), "staging".to_owned()),
        to: ("shop".to_owned(), "D1BRV40-web-stage".to_owned()),
    };
    assert!(moves.contains(&expected), "{moves:?}");
}

#[test]
fn another_directory_is_not_migrated() {
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(
        plan_tree(temp.path()).unwrap_err().code(),
        ErrorCode::MIGRATION_UNKNOWN
    );
}
