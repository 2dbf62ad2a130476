use std::sync::Arc;

use super::*;
use crate::integrity::verify;
use crate::package::ProviderRef;
use crate::snapshot::SnapshotManifest;
use crate::value::PropertyValue;

fn urn(parent: Option<&str>, type_: &str, name: &str) -> Urn {
    Urn::new("dev", "shop", parent, type_, name)
}

/// A stack with a provider, a component with a bucket in it, and an object in the bucket.
fn shop() -> Snapshot {
    let root = Urn::root_stack("dev", "shop");
    let provider = urn(None, "pulumi:providers:aws", "default");
    let component = urn(None, "my:mod:Site", "site");
    let bucket = urn(Some("my:mod:Site"), "aws:s3:Bucket", "bucket");
    let object = urn(None, "aws:s3:Object", "object");
    let used = ProviderRef {
        urn: provider.clone(),
        id: "p1".to_owned(),
    }
    .to_string();
    let state = |urn: &Urn, custom: bool, parent: Option<&Urn>| {
        let mut state = ResourceState::new(urn.clone(), custom);
        state.parent = parent.cloned();
        state.id = custom.then(|| format!("id-{}", urn.name()));
        state
    };
    let mut resources = vec![
        state(&root, false, None),
        state(&provider, true, Some(&root)),
    ];
    resources[1].id = Some("p1".to_owned());
    resources.push(state(&component, false, Some(&root)));
    resources.push(state(&bucket, true, Some(&component)));
    resources.push(state(&object, true, Some(&root)));
    for resource in &mut resources[3..] {
        resource.provider.clone_from(&used);
    }
    resources[3].protect = true;
    resources[4].dependencies = vec![bucket.clone()];
    resources[4]
        .property_dependencies
        .insert("bucket".to_owned(), vec![bucket]);
    Snapshot {
        manifest: SnapshotManifest::new("v1.0.0", jiff::Timestamp::UNIX_EPOCH),
        resources: resources.into_iter().map(Arc::new).collect(),
        ..Snapshot::default()
    }
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot
        .resources
        .iter()
        .map(|one| one.urn.name())
        .collect()
}

#[test]
fn what_others_need_is_forgotten_only_with_them_and_protection_counts() {
    let shop = shop();
    let bucket = shop.resources[3].urn.clone();
    let refused = delete_resource(&shop, &bucket, DeleteRules::default());
    let object = shop.resources[4].urn.clone();
    assert_eq!(
        refused,
        Err(EditError::Dependents {
            urn: bucket.clone(),
            dependents: vec![object.clone()]
        })
    );
    let all = DeleteRules {
        with_dependents: true,
        protected: false,
    };
    let refused = delete_resource(&shop, &bucket, all);
    assert_eq!(
        refused,
        Err(EditError::Protected {
            urn: bucket.clone()
        })
    );
    let forced = DeleteRules {
        protected: true,
        ..all
    };
    let edited = delete_resource(&shop, &bucket, forced).expect("nothing stands in the way");
    assert_eq!(names(&edited), ["shop-dev", "default", "site"]);
    assert_eq!(verify(&edited), []);
    let alone = delete_resource(&shop, &object, DeleteRules::default()).expect("nobody needs it");
    assert_eq!(names(&alone), ["shop-dev", "default", "site", "bucket"]);
    let unknown = urn(None, "a:b:C", "x");
    let refused = delete_resource(&shop, &unknown, DeleteRules::default());
    assert_eq!(refused, Err(EditError::Unknown { urn: unknown }));
}

#[test]
fn a_new_name_reaches_everything_that_refers_to_it() {
    let shop = shop();
    let bucket = shop.resources[3].urn.clone();
    let edited = rename_resource(&shop, &bucket, "store").expect("the name is free");
    let renamed = urn(Some("my:mod:Site"), "aws:s3:Bucket", "store");
    assert_eq!(edited.resources[3].urn, renamed);
    assert_eq!(
        edited.resources[4].dependencies,
        std::slice::from_ref(&renamed)
    );
    assert_eq!(
        edited.resources[4].property_dependencies["bucket"],
        [renamed]
    );
    assert_eq!(verify(&edited), []);
    let provider = rename_resource(&shop, &shop.resources[1].urn, "mine").expect("free");
    assert!(provider.resources[3].provider.contains("::mine::p1"));
    assert_eq!(verify(&provider), []);

    let taken = rename_resource(&shop, &bucket, "bucket");
    assert_eq!(
        taken,
        Err(EditError::Taken {
            urn: bucket.clone()
        })
    );
    let root = rename_resource(&shop, &shop.resources[0].urn, "x");
    assert!(matches!(root, Err(EditError::Root { .. })));
    assert!(matches!(
        rename_resource(&shop, &bucket, "a\0"),
        Err(EditError::Name { .. })
    ));
}

#[test]
fn protection_goes_from_one_or_all() {
    let mut shop = shop();
    Arc::make_mut(&mut shop.resources[4]).protect = true;
    let protected =
        |snapshot: &Snapshot| snapshot.resources.iter().filter(|one| one.protect).count();
    let one = unprotect(&shop, Some(&shop.resources[3].urn)).expect("it is there");
    assert_eq!(protected(&one), 1);
    assert_eq!(protected(&unprotect(&shop, None).expect("all")), 0);
}

#[test]
fn resources_move_with_children_and_a_copy_of_their_provider() {
    let shop = shop();
    let site = [shop.resources[2].urn.clone()];
    let request = MoveRequest {
        resources: &site,
        with_parents: false,
        to_stack: "prod",
        to_project: "web",
    };
    let moved = move_resources(&shop, &Snapshot::default(), request).expect("it can go");
    assert_eq!(names(&moved.source), ["shop-dev", "default", "object"]);
    assert_eq!(
        names(&moved.destination),
        ["web-prod", "default", "site", "bucket"]
    );
    assert_eq!(verify(&moved.source), []);
    assert_eq!(verify(&moved.destination), []);
    let bucket = &moved.destination.resources[3];
    assert_eq!(
        bucket.urn,
        Urn::new(
            "prod",
            "web",
            Some("my:mod:Site"),
            "aws:s3:Bucket",
            "bucket"
        )
    );
    assert!(bucket.provider.starts_with("urn:pulumi:prod::web::"));
    let crossed = (shop.resources[4].urn.clone(), shop.resources[3].urn.clone());
    assert_eq!(moved.forgotten, [crossed]);

    // The bucket alone leaves its component, and its type.
    let bucket = [shop.resources[3].urn.clone()];
    let alone = MoveRequest {
        resources: &bucket,
        ..request
    };
    let moved_alone = move_resources(&shop, &Snapshot::default(), alone).expect("it can go");
    let new = Urn::new("prod", "web", None, "aws:s3:Bucket", "bucket");
    assert_eq!(moved_alone.moved[0].1, new);
    assert_eq!(verify(&moved_alone.destination), []);
    let with_parents = MoveRequest {
        with_parents: true,
        ..alone
    };
    let together = move_resources(&shop, &Snapshot::default(), with_parents).expect("both go");
    assert_eq!(together.moved.len(), 2);

    // Twice is refused, another configuration of the provider too.
    let again = move_resources(&shop, &moved.destination, request);
    assert!(matches!(again, Err(EditError::Taken { .. })), "{again:?}");
    let mut other = moved.destination.clone();
    other.resources.truncate(2);
    Arc::make_mut(&mut other.resources[1])
        .inputs
        .insert("region".into(), PropertyValue::from("eu-west-1"));
    let differs = move_resources(&shop, &other, request);
    assert!(
        matches!(differs, Err(EditError::ProviderDiffers { .. })),
        "{differs:?}"
    );
    // A provider that somebody else needs stays.
    let provider = [shop.resources[1].urn.clone()];
    let needed = MoveRequest {
        resources: &provider,
        ..request
    };
    let refused = move_resources(&shop, &Snapshot::default(), needed);
    assert!(
        matches!(refused, Err(EditError::Dependents { .. })),
        "{refused:?}"
    );
}
