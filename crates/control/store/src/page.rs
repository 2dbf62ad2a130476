//! Where a list goes on. A list has no end that nobody is told of: whoever reads gets a page and the place
//! after which the next one begins.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::Timestamp;

/// Part of a list.
#[derive(Clone, Debug)]
pub struct ListPage<C> {
    /// The last row of the page before; none is the beginning.
    pub after: Option<C>,
    pub limit: u32,
}

/// A row of a list that is ordered by time. It names a place and not a row, so that a list goes on where it
/// was when that row is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    pub at: Timestamp,
    pub id: Uuid,
}

impl RowPlace {
    pub(crate) fn parts(place: Option<Self>) -> (Option<Timestamp>, Option<Uuid>) {
        place.map(|place| (place.at, place.id)).unzip()
    }
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.0.as_microsecond(), self.id)
    }
}

/// This is not the `next` of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the `next` of a page")]
pub struct NotARowPlace;

impl FromStr for RowPlace {
    type Err = NotARowPlace;

    fn from_str(text: &str) -> Result<Self, NotARowPlace> {
        let (at, id) = text.split_once('.').ok_or(NotARowPlace)?;
        let micros: u64 = at.parse().map_err(|_| NotARowPlace)?;
        let micros = i64::try_from(micros).map_err(|_| NotARowPlace)?;
        let at = jiff::Timestamp::from_microsecond(micros).map_err(|_| NotARowPlace)?;
        Ok(Self {
            at: Timestamp(at),
            id: id.parse().map_err(|_| NotARowPlace)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is() {
        let place = RowPlace {
            at: Timestamp(jiff::Timestamp::from_microsecond(1_800_000_000_123_456).unwrap()),
            id: Uuid::new_v4(),
        };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in [
            "",
            ".",
            "1",
            "x.y",
            "-1.00000000-0000-0000-0000-000000000000",
            "9223372036854775807.00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(text.parse::<RowPlace>(), Err(NotARowPlace), "{text}");
        }
    }
}
