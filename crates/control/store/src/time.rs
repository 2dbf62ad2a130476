//! Points in time as the database has them.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{
    PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef, Postgres,
};
use sqlx::{Decode, Encode, Type};

/// A `timestamptz`; microseconds, as PostgreSQL keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub jiff::Timestamp);

/// 2000-01-01T00:00:00Z, where PostgreSQL's count begins, in microseconds of Unix time.
const EPOCH: i64 = 946_684_800_000_000;

impl Timestamp {
    pub fn plus(self, duration: SignedDuration) -> Self {
        Self(self.0.saturating_add(duration).unwrap_or(self.0))
    }
}

impl From<Timestamp> for jiff::Timestamp {
    fn from(timestamp: Timestamp) -> Self {
        timestamp.0
    }
}

impl Type<Postgres> for Timestamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("TIMESTAMPTZ")
    }
}

impl PgHasArrayType for Timestamp {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("_TIMESTAMPTZ")
    }
}

impl Encode<'_, Postgres> for Timestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Postgres>>::encode(self.0.as_microsecond() - EPOCH, buffer)
    }
}

impl<'r> Decode<'r, Postgres> for Timestamp {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        match value.format() {
            PgValueFormat::Binary => {
                let micros = <i64 as Decode<'_, Postgres>>::decode(value)?;
                Ok(Self(jiff::Timestamp::from_microsecond(
                    micros.saturating_add(EPOCH),
                )?))
            }
            PgValueFormat::Text => Ok(Self(value.as_str()?.parse()?)),
        }
    }
}
