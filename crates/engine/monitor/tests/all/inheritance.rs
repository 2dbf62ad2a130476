//! What children take over from their parents.

use nimbus_engine_monitor::{Registration, ResourceOptions};

use crate::support::{component, custom, provider_ref, rig, under, urn, with};

#[tokio::test]
async fn protection_retention_and_deletion_with_another_are_inherited() {
    let rig = rig();
    let options = ResourceOptions {
        protect: Some(true),
        retain_on_delete: Some(true),
        deleted_with: Some(urn("holder")),
        ..ResourceOptions::default()
    };
    let parent = rig.register(with(options, component("parent"))).await;
    let middle = rig.register(under(&parent, component("middle"))).await;
    rig.register(under(&middle, custom("child"))).await;

    let child = rig.goal("child");
    assert_eq!(child.protect, Some(true));
    assert_eq!(child.retain_on_delete, Some(true));
    assert_eq!(child.deleted_with, Some(urn("holder")));
}

#[tokio::test]
async fn what_a_child_says_itself_stands() {
    let rig = rig();
    let options = ResourceOptions {
        protect: Some(true),
        retain_on_delete: Some(true),
        deleted_with: Some(urn("holder")),
        ..ResourceOptions::default()
    };
    let parent = rig.register(with(options, component("parent"))).await;
    let options = ResourceOptions {
        protect: Some(false),
        retain_on_delete: Some(false),
        deleted_with: Some(urn("other")),
        ..ResourceOptions::default()
    };
    rig.register(under(&parent, with(options, custom("child"))))
        .await;

    let child = rig.goal("child");
    assert_eq!(child.protect, Some(false));
    assert_eq!(child.retain_on_delete, Some(false));
    assert_eq!(child.deleted_with, Some(urn("other")));
}

#[tokio::test]
async fn the_provider_of_a_custom_parent_serves_children_of_its_package() {
    let rig = rig();
    let explicit = provider_ref("aws", "mine");
    let options = ResourceOptions {
        provider: explicit.clone(),
        ..ResourceOptions::default()
    };
    let parent = rig.register(with(options, custom("parent"))).await;
    rig.register(under(&parent, custom("same package"))).await;
    let other = Registration {
        type_: "gcp:storage:Bucket".to_owned(),
        ..custom("other package")
    };
    rig.register(under(&parent, other)).await;

    assert_eq!(rig.goal("same package").provider, explicit);
    assert!(
        rig.goal("other package")
            .provider
            .contains("pulumi:providers:gcp::default")
    );
}

#[tokio::test]
async fn providers_of_a_component_reach_all_below_it() {
    let rig = rig();
    let explicit = provider_ref("aws", "mine");
    let options = ResourceOptions {
        providers: [("aws".to_owned(), explicit.clone())].into(),
        ..ResourceOptions::default()
    };
    let outer = rig.register(with(options, component("outer"))).await;
    let inner = rig.register(under(&outer, component("inner"))).await;
    rig.register(under(&inner, custom("deep"))).await;
    assert_eq!(rig.goal("deep").provider, explicit);

    // A component's own choice for a package wins over what it inherits.
    let own = provider_ref("aws", "own");
    let options = ResourceOptions {
        providers: [("aws".to_owned(), own.clone())].into(),
        ..ResourceOptions::default()
    };
    let second = rig
        .register(under(&outer, with(options, component("second"))))
        .await;
    rig.register(under(&second, custom("chosen"))).await;
    assert_eq!(rig.goal("chosen").provider, own);
}

#[tokio::test]
async fn a_provider_given_in_providers_serves_the_resource_itself() {
    let rig = rig();
    let explicit = provider_ref("aws", "mine");
    let options = ResourceOptions {
        providers: [("aws".to_owned(), explicit.clone())].into(),
        ..ResourceOptions::default()
    };
    rig.register(with(options, custom("bucket"))).await;
    assert_eq!(rig.goal("bucket").provider, explicit);
}

#[tokio::test]
async fn custom_resources_pass_no_providers_on() {
    let rig = rig();
    let options = ResourceOptions {
        providers: [("gcp".to_owned(), provider_ref("gcp", "g"))].into(),
        ..ResourceOptions::default()
    };
    let parent = rig.register(with(options, custom("parent"))).await;
    let child = Registration {
        type_: "gcp:storage:Bucket".to_owned(),
        ..custom("child")
    };
    rig.register(under(&parent, child)).await;
    assert!(rig.goal("child").provider.contains("::default::"));
}
