//! Time and chance, as ports: with both injected, an operation is a function of its inputs.

use jiff::Timestamp;
use uuid::Uuid;

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// Where ids of provider resources and seeds for generated names come from.
pub trait IdSource: Send + Sync {
    fn uuid(&self) -> Uuid;
    /// 32 bytes that make a provider's generated names unlike any other's.
    fn seed(&self) -> [u8; 32];
}

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

pub struct RandomIds;

impl IdSource for RandomIds {
    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        seed[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        seed
    }
}
