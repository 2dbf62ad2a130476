//! The truth: what a cloud holds and everything that was ever done to it.

use std::collections::BTreeMap;

use nimbus_engine_model::{PropertyMap, Urn};
use parking_lot::Mutex;

/// Objects that providers made. Shared by all providers of a rig, and by every run on it.
#[derive(Default)]
pub struct Cloud {
    world: Mutex<CloudContent>,
    observer: Option<CloudObserver>,
}

/// Hears of every act, before and after it: to write it down outside of this process, or to end the process
/// there.
pub type CloudObserver = Box<dyn Fn(CloudMoment<'_>) + Send + Sync>;

/// Where in an act somebody looks.
#[derive(Clone, Copy, Debug)]
pub enum CloudMoment<'a> {
    /// It was asked for and has not happened.
    Before,
    /// It has happened, to the object of this resource; nobody was told yet.
    After(&'a CloudAct, Option<&'a Urn>),
}

#[derive(Default)]
struct CloudContent {
    objects: BTreeMap<String, CloudObject>,
    log: Vec<CloudAct>,
    next_id: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CloudObject {
    pub type_: String,
    pub urn: Option<Urn>,
    pub inputs: PropertyMap,
}

/// Something that really happened, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum CloudAct {
    Created { id: String },
    Updated { id: String },
    Deleted { id: String },
}

impl Cloud {
    pub fn observed(observer: CloudObserver) -> Self {
        Self {
            observer: Some(observer),
            ..Self::default()
        }
    }

    fn observe(&self, moment: CloudMoment<'_>) {
        if let Some(observer) = &self.observer {
            observer(moment);
        }
    }

    pub fn create(&self, type_: &str, urn: Option<&Urn>, inputs: PropertyMap) -> String {
        self.observe(CloudMoment::Before);
        let mut world = self.world.lock();
        world.next_id += 1;
        let id = format!("id-{}", world.next_id);
        let object = CloudObject {
            type_: type_.to_owned(),
            urn: urn.cloned(),
            inputs,
        };
        world.objects.insert(id.clone(), object);
        let act = CloudAct::Created { id: id.clone() };
        self.observe(CloudMoment::After(&act, urn));
        world.log.push(act);
        id
    }

    /// Whether there was something to change.
    pub fn update(&self, id: &str, inputs: PropertyMap) -> bool {
        self.observe(CloudMoment::Before);
        let mut world = self.world.lock();
        let Some(object) = world.objects.get_mut(id) else {
            return false;
        };
        object.inputs = inputs;
        let act = CloudAct::Updated { id: id.to_owned() };
        self.observe(CloudMoment::After(&act, object.urn.as_ref()));
        world.log.push(act);
        true
    }

    pub fn delete(&self, id: &str) -> bool {
        self.observe(CloudMoment::Before);
        let mut world = self.world.lock();
        let Some(object) = world.objects.remove(id) else {
            return false;
        };
        let act = CloudAct::Deleted { id: id.to_owned() };
        self.observe(CloudMoment::After(&act, object.urn.as_ref()));
        world.log.push(act);
        true
    }

    /// Somebody else made an object, outside of any run.
    pub fn plant(&self, id: &str, type_: &str, inputs: PropertyMap) {
        let object = CloudObject {
            type_: type_.to_owned(),
            urn: None,
            inputs,
        };
        self.world.lock().objects.insert(id.to_owned(), object);
    }

    /// Somebody else removed an object, outside of any run.
    pub fn vanish(&self, id: &str) {
        self.world.lock().objects.remove(id);
    }

    pub fn get(&self, id: &str) -> Option<CloudObject> {
        self.world.lock().objects.get(id).cloned()
    }

    pub fn ids(&self) -> Vec<String> {
        self.world.lock().objects.keys().cloned().collect()
    }

    pub fn log(&self) -> Vec<CloudAct> {
        self.world.lock().log.clone()
    }
}
