//! Older versions of the file format.

use super::sealed::SealedDeployment;
use crate::resource::ResourceState;

/// Makes what a file of this version describes look like one of the present version.
pub(super) fn upgrade(version: u64, deployment: &mut SealedDeployment) {
    if version < 3 {
        let pending = deployment
            .pending_operations
            .iter_mut()
            .map(|(_, resource)| resource);
        deployment
            .resources
            .iter_mut()
            .chain(pending)
            .for_each(upgrade_resource);
    }
}

fn upgrade_resource(resource: &mut ResourceState) {
    // Version 1 kept a provider's defaults apart. Nobody reads them any more.
    resource.extra.remove("defaults");
    // Up to version 2 nobody noted which property needs what, so all need everything.
    let dependencies = &resource.dependencies;
    resource.property_dependencies = resource
        .inputs
        .keys()
        .map(|property| (property.clone(), dependencies.clone()))
        .collect();
}
