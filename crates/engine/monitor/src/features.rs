//! Which parts of the protocol the monitor speaks. Only what works is claimed: an SDK that is told
//! of a feature relies on it.

use nimbus_engine_proto::ResourceMonitorFeature as Feature;

/// Features with the names by which older SDKs ask for them one at a time.
const NAMED: [(&str, Feature); 12] = [
    ("secrets", Feature::Secrets),
    ("resourceReferences", Feature::ResourceReferences),
    ("outputValues", Feature::OutputValues),
    ("aliasSpecs", Feature::AliasSpecs),
    ("replacementTrigger", Feature::ReplacementTrigger),
    ("deletedWith", Feature::DeletedWith),
    ("replaceWith", Feature::ReplaceWith),
    ("transforms", Feature::Transforms),
    ("invokeTransforms", Feature::InvokeTransforms),
    ("parameterization", Feature::Parameterization),
    ("resourceHooks", Feature::ResourceHooks),
    ("errorHooks", Feature::ErrorHooks),
];

/// Features that are only ever listed.
const LISTED: [Feature; 3] = [
    Feature::ByteString,
    Feature::InvokeDependsOn,
    Feature::InvokeParent,
];

pub(crate) fn supports(name: &str) -> bool {
    NAMED.iter().any(|(known, _)| *known == name)
}

pub(crate) fn all() -> impl Iterator<Item = Feature> {
    NAMED.into_iter().map(|(_, feature)| feature).chain(LISTED)
}
