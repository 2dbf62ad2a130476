//! Parts of lists: what is asked for, and the connection that it is answered with.

use async_graphql::connection::{Connection, Edge, EmptyFields};
use async_graphql::{InputObject, OutputType};
use nimbus_control_app::{Failure, ListPage};

/// The most items of one page, and how many there are unless somebody says so.
pub(crate) const LARGEST: u32 = 500;
const USUAL: u32 = 50;
/// So many items of a list cost as much as one field.
const ITEMS_PER_COST: u32 = 25;
/// A list without pages is taken to have so many.
const WHOLE: u32 = 250;

/// Which part of a list.
#[derive(Clone, Debug, Default, InputObject)]
#[graphql(name = "Pagination")]
pub(crate) struct PageArgs {
    /// So many at once, 1 to 500; 50 when absent.
    first: Option<u32>,
    /// The `endCursor` of the page before.
    after: Option<String>,
}

pub(crate) type Listed<N> = Connection<String, N, EmptyFields, EmptyFields>;

/// The part that is asked for, which is never silently another one.
pub(crate) fn page<C: std::str::FromStr>(asked: Option<PageArgs>) -> Result<ListPage<C>, Failure> {
    let PageArgs { first, after } = asked.unwrap_or_default();
    let after = after.map(|text| text.parse()).transpose();
    Ok(ListPage {
        after: after
            .map_err(|_| Failure::field("after", "this is not the `endCursor` of a page"))?,
        limit: size(first)?,
    })
}

/// How many of each, where a list has a list in each of its items.
pub(crate) fn size(first: Option<u32>) -> Result<u32, Failure> {
    let first = first.unwrap_or(USUAL);
    if (1..=LARGEST).contains(&first) {
        Ok(first)
    } else {
        Err(Failure::field("first", format!("give 1 to {LARGEST}")))
    }
}

/// What a list costs: everything that is asked of an item, more often the more items there are.
pub(crate) fn list_cost(asked: Option<&PageArgs>, of_item: usize) -> usize {
    items_cost(asked.and_then(|asked| asked.first), of_item)
}

pub(crate) fn items_cost(first: Option<u32>, of_item: usize) -> usize {
    let first = first.unwrap_or(USUAL).min(LARGEST);
    let times = usize::try_from(first.div_ceil(ITEMS_PER_COST)).unwrap_or(1);
    of_item.saturating_mul(times.max(1)).saturating_add(1)
}

/// What a list costs that is given whole.
pub(crate) fn whole_cost(of_item: usize) -> usize {
    items_cost(Some(WHOLE), of_item)
}

/// Rows as a connection. A page that is full may have another one after it.
pub(crate) fn connection<R, N: OutputType>(
    rows: Vec<R>,
    limit: u32,
    place: impl Fn(&R) -> String,
    node: impl Fn(R) -> N,
) -> Listed<N> {
    let full = rows.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
    listed(rows, full, place, node)
}

pub(crate) fn listed<R, N: OutputType>(
    rows: Vec<R>,
    more: bool,
    place: impl Fn(&R) -> String,
    node: impl Fn(R) -> N,
) -> Listed<N> {
    let mut listed = Connection::new(false, more);
    listed.edges = rows
        .into_iter()
        .map(|row| Edge::new(place(&row), node(row)))
        .collect();
    listed
}
