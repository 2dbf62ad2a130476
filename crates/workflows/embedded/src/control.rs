//! [`Control`] for any process that reaches the database, and the way to a worker.

use std::sync::Arc;

use async_trait::async_trait;
use nimbus_core::Error;
use nimbus_workflows::{
    Control, Definitions, FlowFilter, FlowId, FlowPage, FlowRecord, FlowSchedule, FlowState,
    NewFlow, Post, ScheduleView, Started,
};
use secrecy::ExposeSecret as _;
use serde_json::Value;

use crate::options::{APPLICATION, EmbeddedOptions, INBOX, QUEUE};
use crate::store::{WorkflowStore, unavailable};
use crate::worker::EmbeddedWorker;

/// The workflows of one schema. A clone is the same.
#[derive(Clone)]
pub struct EmbeddedRuntime {
    options: Arc<EmbeddedOptions>,
    store: WorkflowStore,
    client: dbos::Client,
}

impl std::fmt::Debug for EmbeddedRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedRuntime")
            .field("schema", &self.options.schema)
            .finish()
    }
}

impl EmbeddedRuntime {
    /// Makes or renews the schema and connects.
    pub async fn open(options: EmbeddedOptions) -> Result<Self, Error> {
        options.check()?;
        let url = options.url.expose_secret();
        let mut config = dbos::sysdb::postgres::Config::new(url);
        config.settings.schema = &options.schema;
        config.max_connections = 1;
        let migrated = dbos::sysdb::postgres::PostgresSystemDatabase::connect(&config);
        let migrated = Box::pin(migrated).await.map_err(unavailable)?;
        dbos::sysdb::SystemDatabase::close(&migrated).await;
        let store = WorkflowStore::connect(&options)?;
        Box::pin(store.prepare()).await?;
        let client = dbos::Client::connect(dbos::ClientConfig {
            app_name: Some(APPLICATION.to_owned()),
            schema: options.schema.clone(),
            max_connections: 2,
            ..dbos::ClientConfig::new(url)
        });
        let client = Box::pin(client).await.map_err(unavailable)?;
        let queue = dbos::QueueOptions {
            polling_interval: options.poll,
            ..dbos::QueueOptions::default()
        };
        let registered = client.register_queue(QUEUE, queue, dbos::QueueConflict::AlwaysUpdate);
        Box::pin(registered).await.map_err(unavailable)?;
        Ok(Self {
            options: Arc::new(options),
            store,
            client,
        })
    }

    /// Executes workflows in this process, now or as soon as no other process does.
    pub fn work(&self, definitions: Definitions) -> EmbeddedWorker {
        EmbeddedWorker::start(
            (*self.options).clone(),
            self.store.clone(),
            self.client.clone(),
            definitions,
        )
    }

    /// Gives the connections back.
    pub async fn close(self) {
        self.client.close().await;
        self.store.close().await;
    }

    async fn send(&self, id: &str, post: &Post, key: Option<&str>) -> Result<(), Error> {
        // Keys are unique in the whole table.
        let key = key.map(|key| format!("{id}:{key}"));
        let options = dbos::SendOptions {
            topic: Some(INBOX),
            idempotency_key: key.as_deref(),
            ..dbos::SendOptions::default()
        };
        self.client
            .send_with(id, post, options)
            .await
            .map_err(unavailable)
    }
}

#[async_trait]
impl Control for EmbeddedRuntime {
    async fn start(&self, new: NewFlow) -> Result<Started, Error> {
        self.store.start(&new).await
    }

    async fn signal(
        &self,
        id: &FlowId,
        topic: &str,
        payload: Value,
        key: Option<&str>,
    ) -> Result<(), Error> {
        self.status(id).await?;
        let post = Post::Signal {
            topic: topic.to_owned(),
            payload,
        };
        let key = key.map(|key| format!("signal:{key}"));
        self.send(id.as_str(), &post, key.as_deref()).await
    }

    async fn cancel(&self, id: &FlowId) -> Result<(), Error> {
        if self.status(id).await?.state.is_ended() {
            return Ok(());
        }
        for member in self.store.cancel(id).await? {
            self.send(&member, &Post::Cancel, Some("cancel")).await?;
        }
        Ok(())
    }

    async fn status(&self, id: &FlowId) -> Result<FlowRecord, Error> {
        let found = self.store.find(id).await?;
        found.ok_or_else(|| FlowRecord::unknown(id))
    }

    async fn query(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error> {
        self.status(id).await?;
        self.store.answer(id, query).await
    }

    async fn result(&self, id: &FlowId) -> Result<FlowState, Error> {
        loop {
            let state = self.status(id).await?.state;
            if state.is_ended() {
                return Ok(state);
            }
            tokio::time::sleep(self.options.poll).await;
        }
    }

    async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error> {
        self.store.list(filter, cursor, limit).await
    }

    async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error> {
        self.store.put_schedule(schedule).await
    }

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        self.store.schedules().await
    }

    async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        self.store.delete_schedule(name).await
    }
}
