use std::fs;

use nimbus_engine_deploy::{GoalPlan, PlannedDiff, ResourcePlan};
use nimbus_engine_model::secrets::Base64Crypter;
use nimbus_engine_model::{
    Alias, AliasParent, AliasSpec, CustomTimeouts, PropertyMap, PropertyValue, StepOp,
};

use super::*;

fn seal() -> Seal {
    Seal {
        project: "shop".into(),
        stack: "dev".into(),
        state: "7 (abc)".into(),
        config: "c".into(),
        program: "p".into(),
    }
}

fn urn(name: &str) -> Urn {
    Urn::new("dev", "shop", None, "a:b:C", name)
}

fn plan() -> DeploymentPlan {
    let values: PropertyMap = [
        (
            "password".to_owned(),
            PropertyValue::secret("hunter2".into()),
        ),
        ("later".to_owned(), PropertyValue::Computed),
        ("size".to_owned(), 3.0.into()),
    ]
    .into();
    let aliases = [
        AliasParent::Same,
        AliasParent::None,
        AliasParent::Urn(urn("old")),
    ];
    let mut aliases: Vec<Alias> = aliases
        .into_iter()
        .map(|parent| {
            Alias::Spec(AliasSpec {
                parent,
                name: Some("was".into()),
                ..AliasSpec::default()
            })
        })
        .collect();
    aliases.push(Alias::Urn(urn("older")));
    let goal = GoalPlan {
        type_: "a:b:C".into(),
        name: "new".into(),
        custom: true,
        inputs: PlannedDiff {
            adds: values.clone(),
            deletes: vec!["gone".into()],
            updates: PropertyMap::new(),
        },
        outputs: PlannedDiff::default(),
        parent: Some(urn("parent")),
        protect: true,
        dependencies: vec![urn("dep")],
        provider: "p::id".into(),
        property_dependencies: [("size".to_owned(), vec![urn("dep")])].into(),
        delete_before_replace: Some(false),
        ignore_changes: vec!["x".into()],
        additional_secret_outputs: vec!["y".into()],
        aliases,
        import_id: Some("i".into()),
        custom_timeouts: CustomTimeouts {
            create: 60.0,
            ..CustomTimeouts::default()
        },
    };
    let deleted = ResourcePlan {
        ops: vec![StepOp::Delete],
        ..ResourcePlan::default()
    };
    let made = ResourcePlan {
        goal: Some(goal),
        ops: vec![
            StepOp::CreateReplacement,
            StepOp::Replace,
            StepOp::DeleteReplaced,
        ],
        outputs: values,
        seed: Some([9; 32]),
    };
    DeploymentPlan {
        base_serial: seal().state,
        resources: [(urn("new"), made), (urn("gone"), deleted)].into(),
    }
}

#[test]
fn a_plan_comes_back_as_it_was_and_keeps_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    save(
        &path,
        &plan(),
        &seal(),
        Timestamp::UNIX_EPOCH,
        &Base64Crypter,
    )
    .unwrap();
    assert_eq!(load(&path, &seal(), &Base64Crypter).unwrap(), plan());
    assert!(!fs::read_to_string(&path).unwrap().contains("hunter2"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others may not read it");
    }
}

#[test]
fn a_plan_for_another_world_is_refused_with_what_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    save(
        &path,
        &plan(),
        &seal(),
        Timestamp::UNIX_EPOCH,
        &Base64Crypter,
    )
    .unwrap();
    let now = Seal {
        state: "8 (def)".into(),
        config: "d".into(),
        ..seal()
    };
    let error: Error = load(&path, &now, &Base64Crypter).unwrap_err().into();
    assert_eq!(error.code(), ErrorCode::PLAN_MOVED);
    assert!(
        error
            .message()
            .ends_with("the recorded state has changed, and the stack's configuration has changed"),
        "{}",
        error.message()
    );
}

#[test]
fn what_is_no_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    for text in [
        "",
        "{}",
        "[]",
        r#"{"schema":"nimbus/plan/2"}"#,
        r#"{"schema":"nimbus/plan/1"}"#,
    ] {
        fs::write(&path, text).unwrap();
        let error: Error = load(&path, &seal(), &Base64Crypter).unwrap_err().into();
        assert_eq!(error.code(), ErrorCode::PLAN_UNREADABLE, "{text}");
    }
    let missing: Error = load(&folder.path().join("no"), &seal(), &Base64Crypter)
        .unwrap_err()
        .into();
    assert_eq!(missing.code(), ErrorCode::FILE_UNREADABLE);
}
