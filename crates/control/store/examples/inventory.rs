//! Figures of the configuration management database: `cargo xtask bench control-plane` runs this and keeps what it
//! prints.
//!
//! Arguments: the folder of PostgreSQL's programs and how many items. Items come in as imports do, each with five
//! relationships, and the cluster is a durable one, as in an installation. Then one after the other: pages of the list
//! from anywhere in it, searches by the beginning of a word, and what is around an item, three steps far.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nimbus_control_cmdb::{ImportLine, ItemContent, RelationLine, kept_attributes};
use nimbus_control_store::{
    CheckedImport, GraphLimits, ItemFilter, ListPage, NamedCursor, Store, StoreError, TenantTx,
};
use nimbus_control_testing::DurableCluster;
use nimbus_core::TenantId;
use serde_json::{Value, json};
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Items of one import, which is one transaction.
const BATCH: usize = 5_000;
/// Questions of each kind.
const QUESTIONS: usize = 400;
const CLASSES: [&str; 5] = [
    "aws:ec2/instance:Instance",
    "aws:ec2/subnet:Subnet",
    "aws:s3/bucket:Bucket",
    "aws:rds/instance:Instance",
    "kubernetes:core/v1:Service",
];

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let binaries = arguments
        .next()
        .ok_or("no folder of PostgreSQL's programs")?;
    let count = arguments.next().ok_or("no number of items")?;
    let count: usize = count.to_string_lossy().parse()?;
    let cluster = DurableCluster::start(Path::new(&binaries)).await?;
    let figures = measure(&cluster, count).await;
    cluster.stop().await;
    let figures = serde_json::to_string_pretty(&figures?)?;
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

async fn measure(cluster: &DurableCluster, count: usize) -> Outcome<Value> {
    let (store, _) = Store::open(cluster.database("nimbus", 4)).await?;
    let root = store.operator_ensure("Operator").await?;
    let begun = Instant::now();
    for first in (0..count).step_by(BATCH) {
        import(&store, root, first, (first + BATCH).min(count)).await?;
    }
    let imported = begun.elapsed();
    let list = questions(&store, root, async |tx, number| {
        let page = ListPage {
            after: Some(NamedCursor {
                name: name(spread(number, count)),
                id: Uuid::nil(),
            }),
            limit: 50,
        };
        Ok(tx.item_list(&ItemFilter::default(), &page).await?.len())
    })
    .await?;
    let search = questions(&store, root, async |tx, number| {
        let filter = ItemFilter {
            words: vec![format!("host{}", spread(number, count) / 10)],
            ..ItemFilter::default()
        };
        Ok(tx.item_list(&filter, &first_page()).await?.len())
    })
    .await?;
    let narrowed = questions(&store, root, async |tx, number| {
        let filter = ItemFilter {
            class: Some(CLASSES[number % CLASSES.len()].to_owned()),
            exact_words: vec![format!("team{}", number % 40)],
            ..ItemFilter::default()
        };
        Ok(tx.item_list(&filter, &first_page()).await?.len())
    })
    .await?;
    let graph = questions(&store, root, async |tx, number| {
        let keys = [key(spread(number, count))];
        let known = tx.items_of_keys(&keys).await?;
        let Some(item) = known.first() else {
            return Err(StoreError::NotFound("item"));
        };
        let limits = GraphLimits {
            depth: 3,
            items: 500,
        };
        Ok(tx.item_graph(item.id, limits).await?.items.len())
    })
    .await?;
    Ok(json!({
        "items": count,
        "imported_per_second": (count as f64 / imported.as_secs_f64()).round(),
        "questions": [
            asked("a page of 50 from anywhere in the list", list)?,
            asked("items with a word that begins so", search)?,
            asked("items of a class with a word", narrowed)?,
            asked("what is around an item, three steps far", graph)?,
        ],
    }))
}

fn first_page() -> ListPage<NamedCursor> {
    ListPage {
        after: None,
        limit: 50,
    }
}

/// Somewhere else each time, the same places in every run.
fn spread(number: usize, count: usize) -> usize {
    number.wrapping_mul(7_919_317) % count
}

fn key(number: usize) -> String {
    format!("item-{number}")
}

fn name(number: usize) -> String {
    format!("host{number}")
}

async fn import(store: &Store, root: TenantId, first: usize, end: usize) -> Outcome<()> {
    let items: Vec<_> = (first..end)
        .map(|number| item(number, first, end))
        .collect();
    let by = Uuid::nil();
    let done: Result<_, StoreError> = store
        .tenant_tx(root, async |tx| tx.items_import(&items, &[], by).await)
        .await;
    done?;
    Ok(())
}

/// An item with five relationships to others of its import.
fn item(number: usize, first: usize, end: usize) -> CheckedImport {
    let attributes = json!({
        "region": format!("region-{}", number % 12),
        "owner": format!("team{}", number % 40),
        "size": number % 7,
    });
    let none = serde_json::Map::new();
    let length = end - first;
    let near = |step: usize| first + (number - first + step) % length;
    let relation = |step: usize| RelationLine {
        relationship: "depends_on".to_owned(),
        target: key(near(step)),
    };
    CheckedImport {
        line: ImportLine {
            line: u64::try_from(number).unwrap_or_default() + 1,
            key: key(number),
            content: ItemContent {
                class: CLASSES[number % CLASSES.len()].to_owned(),
                name: name(number),
                cloud_resource_id: Some(format!("i-{number:08x}")),
                attributes: kept_attributes(attributes.as_object().unwrap_or(&none)),
                external: false,
            },
            compartment: None,
            active: true,
            relations: [1, 2, 17, 101, 997].into_iter().map(relation).collect(),
        },
        compartment: None,
    }
}

/// How long each took, and how much it found on average.
struct QuestionTimes {
    times: Vec<Duration>,
    found: usize,
}

async fn questions(
    store: &Store,
    root: TenantId,
    ask: impl AsyncFn(&mut TenantTx, usize) -> Result<usize, StoreError>,
) -> Outcome<QuestionTimes> {
    let mut asked = QuestionTimes {
        times: Vec::new(),
        found: 0,
    };
    for number in 0..QUESTIONS {
        let began = Instant::now();
        let found: Result<usize, StoreError> = store
            .tenant_tx(root, async |tx| ask(tx, number).await)
            .await;
        asked.found += found?;
        asked.times.push(began.elapsed());
    }
    asked.times.sort();
    Ok(asked)
}

fn asked(what: &str, asked: QuestionTimes) -> Outcome<Value> {
    let at = |part: usize| {
        let index = asked.times.len() * part / 100;
        asked.times.get(index).map_or(0, Duration::as_micros)
    };
    Ok(json!({
        "what": what,
        "found": asked.found / QUESTIONS,
        "p50_us": u64::try_from(at(50))?,
        "p99_us": u64::try_from(at(99))?,
    }))
}
