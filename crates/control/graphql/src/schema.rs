//! The schema, and documents that are carried out on it.

use std::sync::LazyLock;
use std::time::Duration;

use async_graphql::dataloader::{DataLoader, HashMapCache};
use async_graphql::{MergedObject, Request, Response, Schema};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::act::{AskedRequest, GraphqlCaller, LiveCaller};
use crate::gathered::{GatheredLoads, HeldLoad, held_loads};
use crate::loaders::Loads;
use crate::mutations::{
    ApprovalChanges, CatalogChanges, CmdbChanges, DeliveryChanges, DeploymentChanges,
    LibraryChanges, NotificationChanges, PeopleChanges, ResolverChanges, ReviewChanges,
    RoleChanges, SignInChanges, TenantChanges, UpgradeChanges, ZoneChanges,
};
use crate::queries::{
    ApprovalQueries, AuditQueries, CatalogQueries, CmdbQueries, DeliveryQueries, DeploymentQueries,
    LibraryQueries, NotificationQueries, PeopleQueries, ResolverQueries, ReviewQueries,
    RoleQueries, RunQueries, TenantQueries, UpgradeQueries, ZoneQueries,
};
use crate::request::{GraphqlAnswer, GraphqlBatch};
use crate::subscriptions::LiveQueries;

/// What a document may cost: a field costs one, and a list as much as its items.
const MOST_COMPLEX: usize = 1000;
/// Of one field.
const MOST_DIRECTIVES: usize = 10;

#[derive(MergedObject, Default)]
#[graphql(name = "Query")]
pub(crate) struct QueryRoot(
    TenantQueries,
    PeopleQueries,
    NotificationQueries,
    DeliveryQueries,
    RoleQueries,
    DeploymentQueries,
    RunQueries,
    ApprovalQueries,
    LibraryQueries,
    CatalogQueries,
    UpgradeQueries,
    CmdbQueries,
    ZoneQueries,
    ResolverQueries,
    ReviewQueries,
    AuditQueries,
);

#[derive(MergedObject, Default)]
#[graphql(name = "Mutation")]
pub(crate) struct MutationRoot(
    SignInChanges,
    TenantChanges,
    PeopleChanges,
    RoleChanges,
    DeploymentChanges,
    ApprovalChanges,
    NotificationChanges,
    DeliveryChanges,
    LibraryChanges,
    CatalogChanges,
    UpgradeChanges,
    CmdbChanges,
    ZoneChanges,
    ResolverChanges,
    ReviewChanges,
);

type NimbusSchema = Schema<QueryRoot, MutationRoot, LiveQueries>;

static SCHEMA: LazyLock<NimbusSchema> = LazyLock::new(|| {
    Schema::build(QueryRoot::default(), MutationRoot::default(), LiveQueries)
        .limit_complexity(MOST_COMPLEX)
        .limit_directives(MOST_DIRECTIVES)
        .disable_suggestions()
        .finish()
});

/// The schema in its own language, as it is checked in and served.
pub fn sdl() -> String {
    let mut text = SCHEMA.sdl();
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn with_data(request: Request, caller: GraphqlCaller) -> (Request, UnboundedReceiver<HeldLoad>) {
    let loads = Loads {
        app: caller.app.clone(),
        call: caller.call.clone(),
    };
    let (hold, held) = held_loads();
    // Nobody begins the loads of a document that is not carried out any more.
    let spawn = move |load| hold.send(load);
    let loader = DataLoader::with_cache(loads, spawn, HashMapCache::default());
    let loader = loader.delay(Duration::ZERO);
    let request = request.data(loader).data(AskedRequest::new(caller));
    (request, held)
}

/// Carries out the documents of a request, one after the other.
pub async fn execute(caller: GraphqlCaller, mut batch: GraphqlBatch) -> GraphqlAnswer {
    let trace_id = caller.context.trace_id;
    let mut responses: Vec<Response> = Vec::new();
    for request in std::mem::take(&mut batch.requests) {
        let (request, held) = with_data(request, caller.clone());
        let document = Box::pin(SCHEMA.execute(request));
        responses.push(GatheredLoads::new(document, held).await);
    }
    batch.answer(responses, trace_id)
}

/// Answers a document of a socket for as long as there is something to answer.
pub(crate) fn stream(
    caller: GraphqlCaller,
    live: LiveCaller,
    request: Request,
) -> BoxStream<'static, Response> {
    let (request, held) = with_data(request, caller);
    GatheredLoads::new(SCHEMA.execute_stream(request.data(live)), held).boxed()
}
