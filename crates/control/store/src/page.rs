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
pub struct RowCursor {
    pub at: Timestamp,
    pub id: Uuid,
}

impl RowCursor {
    pub(crate) fn parts(place: Option<Self>) -> (Option<Timestamp>, Option<Uuid>) {
        place.map(|place| (place.at, place.id)).unzip()
    }
}

impl fmt::Display for RowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.0.as_microsecond(), self.id)
    }
}

/// This is not the `next` of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the `next` of a page")]
pub struct NotARowCursor;

impl FromStr for RowCursor {
    type Err = NotARowCursor;

    fn from_str(text: &str) -> Result<Self, NotARowCursor> {
        let (at, id) = text.split_once('.').ok_or(NotARowCursor)?;
        let micros: u64 = at.parse().map_err(|_| NotARowCursor)?;
        let micros = i64::try_from(micros).map_err(|_| NotARowCursor)?;
        let at = jiff::Timestamp::from_microsecond(micros).map_err(|_| NotARowCursor)?;
        Ok(Self {
            at: Timestamp(at),
            id: id.parse().map_err(|_| NotARowCursor)?,
        })
    }
}

/// A mark of a list that is ordered by what was looked at, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkCursor {
    pub item: String,
    pub person: Uuid,
}

impl fmt::Display for MarkCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The item comes last: it has letters of any kind.
        write!(f, "{}.{}", self.person, self.item)
    }
}

impl FromStr for MarkCursor {
    type Err = NotARowCursor;

    fn from_str(text: &str) -> Result<Self, NotARowCursor> {
        let (person, item) = text.split_once('.').ok_or(NotARowCursor)?;
        Ok(Self {
            item: item.to_owned(),
            person: person.parse().map_err(|_| NotARowCursor)?,
        })
    }
}

/// A row of a list that is ordered by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCursor {
    pub name: String,
    pub id: Uuid,
}

impl fmt::Display for NamedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name comes last: it has letters of any kind.
        write!(f, "{}.{}", self.id, self.name)
    }
}

impl FromStr for NamedCursor {
    type Err = NotARowCursor;

    fn from_str(text: &str) -> Result<Self, NotARowCursor> {
        let (id, name) = text.split_once('.').ok_or(NotARowCursor)?;
        Ok(Self {
            name: name.to_owned(),
            id: id.parse().map_err(|_| NotARowCursor)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_again_whatever_was_marked() {
        for item in ["unit:network", "risk:a.b.c", ".", "ä"] {
            let place = MarkCursor {
                item: item.to_owned(),
                person: Uuid::new_v4(),
            };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["", "unit:network", "x.unit:network"] {
            assert_eq!(wrong.parse::<MarkCursor>(), Err(NotARowCursor), "{wrong}");
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is() {
        let place = RowCursor {
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
            assert_eq!(text.parse::<RowCursor>(), Err(NotARowCursor), "{text}");
        }
    }
}
