//! Resource options on the wire.

use std::collections::BTreeMap;

use nimbus_engine_model::{Alias, AliasParent, AliasSpec, HookKind, PropertyValue, Urn};
use nimbus_engine_proto::alias::spec::Parent as WireParent;
use nimbus_engine_proto::alias::{Alias as WireAliasKind, Spec as WireSpec};
use nimbus_engine_proto::register_resource_request::{CustomTimeouts, ResourceHooksBinding};
use nimbus_engine_proto::{
    Alias as WireAlias, TransformInvokeOptions, TransformResourceOptions, Value,
};
use nimbus_engine_wire::{
    Accept, AcceptedValues, Outputs, UnknownEncoding, decode_value, encode_value,
};

use crate::error::MonitorError;
use crate::options::{InvokeOptions, ResourceOptions, Timeouts};

pub(super) fn urn(what: &str, text: &str) -> Result<Urn, MonitorError> {
    Urn::parse(text).map_err(|error| MonitorError::bad_urn(what, error))
}

/// Empty stands for none.
pub(super) fn optional_urn(what: &str, text: &str) -> Result<Option<Urn>, MonitorError> {
    if text.is_empty() {
        return Ok(None);
    }
    urn(what, text).map(Some)
}

pub(super) fn urns(what: &str, texts: &[String]) -> Result<Vec<Urn>, MonitorError> {
    texts.iter().map(|text| urn(what, text)).collect()
}

pub(super) fn texts(urns: &[Urn]) -> Vec<String> {
    urns.iter().map(ToString::to_string).collect()
}

/// How to read alias specs. Node.js SDKs once sent "no parent" and "the same parent" the wrong way
/// round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AliasDialect {
    Proper,
    OldNode,
}

pub(super) fn alias(alias: WireAlias, dialect: AliasDialect) -> Result<Alias, MonitorError> {
    match alias.alias {
        Some(WireAliasKind::Spec(spec)) => alias_spec(spec, dialect).map(Alias::Spec),
        Some(WireAliasKind::Urn(text)) => urn("alias", &text).map(Alias::Urn),
        None => Err(MonitorError::BadUrn {
            what: "alias".to_owned(),
            text: String::new(),
        }),
    }
}

fn alias_spec(spec: WireSpec, dialect: AliasDialect) -> Result<AliasSpec, MonitorError> {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let parent = match (spec.parent, dialect) {
        (Some(WireParent::ParentUrn(text)), _) if !text.is_empty() => {
            AliasParent::Urn(urn("parent of an alias", &text)?)
        }
        (Some(WireParent::NoParent(true)), AliasDialect::Proper)
        | (Some(WireParent::ParentUrn(_)) | None, AliasDialect::OldNode) => AliasParent::None,
        // Some SDKs send an empty parent and mean the present one.
        (Some(WireParent::ParentUrn(_)) | None, AliasDialect::Proper)
        | (Some(WireParent::NoParent(_)), _) => AliasParent::Same,
    };
    Ok(AliasSpec {
        name: some(spec.name),
        type_: some(spec.r#type),
        stack: some(spec.stack),
        project: some(spec.project),
        parent,
    })
}

fn wire_alias(alias: &Alias) -> WireAlias {
    let kind = match alias {
        Alias::Urn(urn) => WireAliasKind::Urn(urn.to_string()),
        Alias::Spec(spec) => WireAliasKind::Spec(WireSpec {
            name: spec.name.clone().unwrap_or_default(),
            r#type: spec.type_.clone().unwrap_or_default(),
            stack: spec.stack.clone().unwrap_or_default(),
            project: spec.project.clone().unwrap_or_default(),
            parent: match &spec.parent {
                AliasParent::Same => None,
                AliasParent::None => Some(WireParent::NoParent(true)),
                AliasParent::Urn(urn) => Some(WireParent::ParentUrn(urn.to_string())),
            },
        }),
    };
    WireAlias { alias: Some(kind) }
}

pub(super) fn hooks(binding: Option<ResourceHooksBinding>) -> BTreeMap<HookKind, Vec<String>> {
    let binding = binding.unwrap_or_default();
    let kinds = [
        (HookKind::BeforeCreate, binding.before_create),
        (HookKind::AfterCreate, binding.after_create),
        (HookKind::BeforeUpdate, binding.before_update),
        (HookKind::AfterUpdate, binding.after_update),
        (HookKind::BeforeDelete, binding.before_delete),
        (HookKind::AfterDelete, binding.after_delete),
        (HookKind::OnError, binding.on_error),
    ];
    kinds
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .collect()
}

fn wire_hooks(hooks: &BTreeMap<HookKind, Vec<String>>) -> Option<ResourceHooksBinding> {
    if hooks.is_empty() {
        return None;
    }
    let names = |kind| hooks.get(&kind).cloned().unwrap_or_default();
    Some(ResourceHooksBinding {
        before_create: names(HookKind::BeforeCreate),
        after_create: names(HookKind::AfterCreate),
        before_update: names(HookKind::BeforeUpdate),
        after_update: names(HookKind::AfterUpdate),
        before_delete: names(HookKind::BeforeDelete),
        after_delete: names(HookKind::AfterDelete),
        on_error: names(HookKind::OnError),
    })
}

pub(super) fn timeouts(timeouts: Option<CustomTimeouts>) -> Timeouts {
    let timeouts = timeouts.unwrap_or_default();
    Timeouts {
        create: timeouts.create,
        update: timeouts.update,
        delete: timeouts.delete,
        read: timeouts.read,
    }
}

fn wire_timeouts(timeouts: &Timeouts) -> Option<CustomTimeouts> {
    if *timeouts == Timeouts::default() {
        return None;
    }
    Some(CustomTimeouts {
        create: timeouts.create.clone(),
        update: timeouts.update.clone(),
        delete: timeouts.delete.clone(),
        read: timeouts.read.clone(),
    })
}

pub(super) fn trigger(value: Option<Value>) -> Result<PropertyValue, MonitorError> {
    let Some(value) = value else {
        return Ok(PropertyValue::Null);
    };
    let expect = AcceptedValues {
        unknowns: UnknownEncoding::Keep,
        outputs: Outputs::Keep,
    };
    let decoded = decode_value(value, expect);
    let decoded = decoded.map_err(|e| MonitorError::unreadable("replacementTrigger", &e))?;
    Ok(decoded.unwrap_or_default())
}

fn wire_trigger(value: &PropertyValue, accept: Accept) -> Result<Option<Value>, MonitorError> {
    if *value == PropertyValue::Null {
        return Ok(None);
    }
    let encoded = encode_value(value, accept);
    encoded.map_err(|e| MonitorError::unsendable("replacementTrigger", &e))
}

pub(super) fn for_transform(
    options: &ResourceOptions,
    accept: Accept,
) -> Result<TransformResourceOptions, MonitorError> {
    Ok(TransformResourceOptions {
        depends_on: texts(&options.depends_on),
        protect: options.protect,
        ignore_changes: options.ignore_changes.clone(),
        replace_on_changes: options.replace_on_changes.clone(),
        version: options.version.clone(),
        aliases: options.aliases.iter().map(wire_alias).collect(),
        provider: options.provider.clone(),
        custom_timeouts: wire_timeouts(&options.timeouts),
        plugin_download_url: options.plugin_download_url.clone(),
        retain_on_delete: options.retain_on_delete,
        deleted_with: options
            .deleted_with
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        delete_before_replace: options.delete_before_replace,
        additional_secret_outputs: options.additional_secret_outputs.clone(),
        providers: options.providers.clone(),
        plugin_checksums: options.plugin_checksums.clone(),
        hooks: wire_hooks(&options.hooks),
        import: options.import_id.clone(),
        hide_diff: options.hide_diff.clone(),
        replace_with: texts(&options.replace_with),
        replacement_trigger: wire_trigger(&options.replacement_trigger, accept)?,
    })
}

pub(super) fn from_transform(
    options: TransformResourceOptions,
) -> Result<ResourceOptions, MonitorError> {
    let aliases = options.aliases.into_iter();
    Ok(ResourceOptions {
        depends_on: urns("dependsOn", &options.depends_on)?,
        protect: options.protect,
        ignore_changes: options.ignore_changes,
        replace_on_changes: options.replace_on_changes,
        aliases: aliases
            .map(|wire| alias(wire, AliasDialect::Proper))
            .collect::<Result<_, _>>()?,
        provider: options.provider,
        providers: options.providers,
        version: options.version,
        plugin_download_url: options.plugin_download_url,
        plugin_checksums: options.plugin_checksums,
        timeouts: timeouts(options.custom_timeouts),
        retain_on_delete: options.retain_on_delete,
        deleted_with: optional_urn("deletedWith", &options.deleted_with)?,
        replace_with: urns("replaceWith", &options.replace_with)?,
        replacement_trigger: trigger(options.replacement_trigger)?,
        delete_before_replace: options.delete_before_replace,
        additional_secret_outputs: options.additional_secret_outputs,
        hooks: hooks(options.hooks),
        import_id: options.import,
        hide_diff: options.hide_diff,
    })
}

pub(super) fn for_invoke_transform(options: &InvokeOptions) -> TransformInvokeOptions {
    TransformInvokeOptions {
        provider: options.provider.clone(),
        plugin_download_url: options.plugin_download_url.clone(),
        version: options.version.clone(),
        plugin_checksums: options.plugin_checksums.clone(),
    }
}

pub(super) fn from_invoke_transform(options: TransformInvokeOptions) -> InvokeOptions {
    InvokeOptions {
        provider: options.provider,
        version: options.version,
        plugin_download_url: options.plugin_download_url,
        plugin_checksums: options.plugin_checksums,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(wire: Option<WireParent>, dialect: AliasDialect) -> AliasParent {
        let spec = WireSpec {
            parent: wire,
            ..WireSpec::default()
        };
        alias_spec(spec, dialect).expect("a valid spec").parent
    }

    #[test]
    fn old_node_sdks_mean_the_opposite() {
        let empty = || Some(WireParent::ParentUrn(String::new()));
        let none = |flag| Some(WireParent::NoParent(flag));
        use AliasDialect::{OldNode, Proper};
        for (wire, dialect, expected) in [
            (None, Proper, AliasParent::Same),
            (empty(), Proper, AliasParent::Same),
            (none(false), Proper, AliasParent::Same),
            (none(true), Proper, AliasParent::None),
            (None, OldNode, AliasParent::None),
            (empty(), OldNode, AliasParent::None),
            (none(false), OldNode, AliasParent::Same),
            (none(true), OldNode, AliasParent::Same),
        ] {
            assert_eq!(
                parent(wire.clone(), dialect),
                expected,
                "{wire:?} {dialect:?}"
            );
        }
        let urn = "urn:pulumi:dev::shop::a:b:C::n";
        let given = Some(WireParent::ParentUrn(urn.to_owned()));
        let expected = AliasParent::Urn(Urn::parse(urn).expect("a URN"));
        assert_eq!(parent(given.clone(), Proper), expected);
        assert_eq!(parent(given, OldNode), expected);
    }

    #[test]
    fn options_survive_a_transform_that_changes_nothing() {
        let urn = |name: &str| Urn::new("dev", "shop", None, "a:b:C", name);
        let options = ResourceOptions {
            depends_on: vec![urn("d")],
            protect: Some(false),
            ignore_changes: vec!["a.b".to_owned()],
            replace_on_changes: vec!["*".to_owned()],
            aliases: vec![
                Alias::Urn(urn("old")),
                Alias::Spec(AliasSpec {
                    name: Some("n".to_owned()),
                    parent: AliasParent::None,
                    ..AliasSpec::default()
                }),
                Alias::Spec(AliasSpec {
                    stack: Some("s".to_owned()),
                    parent: AliasParent::Urn(urn("p")),
                    ..AliasSpec::default()
                }),
            ],
            provider: "p::1".to_owned(),
            providers: BTreeMap::from([("aws".to_owned(), "p::2".to_owned())]),
            version: "1.2.3".to_owned(),
            plugin_download_url: "https://x".to_owned(),
            plugin_checksums: BTreeMap::from([("linux-amd64".to_owned(), vec![1, 2])]),
            timeouts: Timeouts {
                create: "5m".to_owned(),
                ..Timeouts::default()
            },
            retain_on_delete: Some(true),
            deleted_with: Some(urn("w")),
            replace_with: vec![urn("r")],
            replacement_trigger: PropertyValue::secret("t".into()),
            delete_before_replace: Some(false),
            additional_secret_outputs: vec!["s".to_owned()],
            hooks: BTreeMap::from([(HookKind::AfterDelete, vec!["h".to_owned()])]),
            import_id: "i".to_owned(),
            hide_diff: vec!["x".to_owned()],
        };
        let accept = Accept {
            unknowns: UnknownEncoding::Keep,
            secrets: true,
            ..Accept::default()
        };
        let sent = for_transform(&options, accept).expect("sendable");
        assert_eq!(from_transform(sent), Ok(options));
    }
}
