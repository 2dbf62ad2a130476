//! What resources pass on to their children.
//!
//! A child takes over protection, retention, deletion together with another resource, and the
//! provider of its parent; a component passes its providers to components below it and serves its
//! other children from them; transforms apply to everything below the resource that has them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nimbus_engine_model::{ProviderRef, Urn, provider_package};
use parking_lot::Mutex;

use crate::options::ResourceOptions;
use crate::packages::package_of;
use crate::transforms::ResourceTransform;

pub(crate) type Transforms = Vec<Arc<dyn ResourceTransform>>;

#[derive(Default)]
pub(crate) struct Inheritance {
    members: Mutex<HashMap<Urn, InheritedOptions>>,
}

#[derive(Default)]
struct InheritedOptions {
    parent: Option<Urn>,
    transforms: Transforms,
    /// `None` for custom resources: they serve nobody.
    providers: Option<BTreeMap<String, String>>,
    legacy: Legacy,
}

/// The options that a goal leaves to its children. A remote component has none until the code
/// that constructs it registers it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Legacy {
    pub(crate) protect: Option<bool>,
    pub(crate) retain_on_delete: Option<bool>,
    pub(crate) deleted_with: Option<Urn>,
    pub(crate) provider: String,
}

/// What about a child decides which provider it may inherit.
#[derive(Clone, Copy)]
pub(crate) struct Child<'a> {
    pub(crate) type_: &'a str,
    pub(crate) custom: bool,
    pub(crate) remote: bool,
}

impl Inheritance {
    pub(crate) fn record_goal(&self, urn: &Urn, legacy: Legacy) {
        self.members.lock().entry(urn.clone()).or_default().legacy = legacy;
    }

    pub(crate) fn record(
        &self,
        urn: &Urn,
        parent: Option<Urn>,
        transforms: Transforms,
        providers: Option<BTreeMap<String, String>>,
    ) {
        let mut members = self.members.lock();
        let member = members.entry(urn.clone()).or_default();
        member.parent = parent;
        member.transforms = transforms;
        member.providers = providers;
    }

    /// The provider of a resource that was registered in this run; empty if it has none.
    pub(crate) fn provider_of(&self, urn: &Urn) -> Option<String> {
        let members = self.members.lock();
        members
            .get(urn)
            .map(|member| member.legacy.provider.clone())
    }

    pub(crate) fn inherit(&self, options: &mut ResourceOptions, child: Child<'_>, parent: &Urn) {
        let members = self.members.lock();
        if let Some(member) = members.get(parent) {
            inherit(options, child, &member.legacy);
        }
    }

    /// Transforms of the ancestors, nearest first.
    pub(crate) fn transforms_above(&self, parent: Option<&Urn>) -> Transforms {
        let members = self.members.lock();
        let mut found = Vec::new();
        let mut current = parent;
        while let Some(member) = current.and_then(|urn| members.get(urn)) {
            found.extend(member.transforms.iter().cloned());
            current = member.parent.as_ref();
        }
        found
    }

    /// Adds the providers of the parent to those of a component.
    pub(crate) fn inherit_providers(&self, options: &mut ResourceOptions, parent: &Urn) {
        let members = self.members.lock();
        let inherited = members.get(parent).and_then(|m| m.providers.as_ref());
        for (package, reference) in inherited.into_iter().flatten() {
            let own = options.providers.entry(package.clone());
            own.or_insert_with(|| reference.clone());
        }
    }

    /// The provider that was chosen for a package: explicitly, by the options' providers, or by
    /// the parent's.
    pub(crate) fn choose_provider(
        &self,
        explicit: &str,
        providers: &BTreeMap<String, String>,
        parent: Option<&Urn>,
        package: &str,
    ) -> String {
        if !explicit.is_empty() {
            return explicit.to_owned();
        }
        if let Some(own) = providers.get(package) {
            return own.clone();
        }
        let members = self.members.lock();
        let inherited = parent
            .and_then(|urn| members.get(urn))
            .and_then(|member| member.providers.as_ref()?.get(package));
        inherited.cloned().unwrap_or_default()
    }
}

fn inherit(options: &mut ResourceOptions, child: Child<'_>, parent: &Legacy) {
    if options.deleted_with.is_none() {
        options.deleted_with.clone_from(&parent.deleted_with);
    }
    if options.protect.is_none() {
        options.protect = parent.protect;
    }
    if options.retain_on_delete.is_none() {
        options.retain_on_delete = parent.retain_on_delete;
    }
    if options.provider.is_empty() && may_inherit_provider(child, &parent.provider) {
        options.provider.clone_from(&parent.provider);
    }
}

/// A local component takes any provider, to pass it on; others only one of their own package.
fn may_inherit_provider(child: Child<'_>, provider: &str) -> bool {
    if !child.custom && !child.remote {
        return true;
    }
    ProviderRef::parse(provider).is_ok_and(|reference| {
        provider_package(reference.urn.type_()) == Some(package_of(child.type_))
    })
}
