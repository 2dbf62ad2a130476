//! Every URN that a recorded resource has in it.

use crate::package::ProviderRef;
use crate::resource::ResourceState;
use crate::urn::Urn;
use crate::value::{PropertyMap, PropertyValue};

impl ResourceState {
    /// Shows every URN to `change`, its own one and those of its properties included. What is sealed
    /// stays as it is.
    pub fn each_urn(&mut self, change: &mut dyn FnMut(&mut Urn)) {
        change(&mut self.urn);
        let lists = [
            &mut self.dependencies,
            &mut self.replace_with,
            &mut self.aliases,
        ];
        let single = [&mut self.parent, &mut self.deleted_with, &mut self.view_of];
        lists.into_iter().flatten().for_each(&mut *change);
        single.into_iter().flatten().for_each(&mut *change);
        let by_property = self.property_dependencies.values_mut().flatten();
        by_property.for_each(&mut *change);
        if let Ok(mut provider) = ProviderRef::parse(&self.provider) {
            change(&mut provider.urn);
            self.provider = provider.to_string();
        }
        each_in_map(&mut self.inputs, change);
        each_in_map(&mut self.outputs, change);
        each_in_value(&mut self.replacement_trigger, change);
    }
}

fn each_in_map(map: &mut PropertyMap, change: &mut dyn FnMut(&mut Urn)) {
    map.values_mut()
        .for_each(|value| each_in_value(value, change));
}

fn each_in_value(value: &mut PropertyValue, change: &mut dyn FnMut(&mut Urn)) {
    match value {
        PropertyValue::ResourceReference(reference) => change(&mut reference.urn),
        PropertyValue::Output(output) => output.dependencies.iter_mut().for_each(&mut *change),
        _ => {}
    }
    value
        .parts_mut()
        .for_each(|part| each_in_value(part, change));
}
