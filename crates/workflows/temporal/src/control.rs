//! [`Control`] for any process that reaches the server, and the way to a worker.

use async_trait::async_trait;
use nimbus_core::Error;
use nimbus_workflows::{
    Control, Definitions, FlowFilter, FlowId, FlowPage, FlowRecord, FlowSchedule, FlowState,
    NewFlow, ScheduleView, Started,
};
use serde_json::Value;

use crate::options::TemporalOptions;
use crate::server::TemporalServer;
use crate::worker::TemporalWorker;

/// The workflows of one namespace and queue. A clone is the same.
#[derive(Clone, Debug)]
pub struct TemporalRuntime {
    server: TemporalServer,
}

impl TemporalRuntime {
    /// Connects. The server and its namespace must be there.
    pub async fn open(options: TemporalOptions) -> Result<Self, Error> {
        options.check()?;
        let client = options.connect().await?;
        let server = TemporalServer { client, options };
        server.check_namespace().await?;
        Ok(Self { server })
    }

    /// Executes workflows in this process, beside all others that do. Steps run on the runtime that this
    /// is called on.
    pub fn work(&self, definitions: Definitions) -> Result<TemporalWorker, Error> {
        TemporalWorker::start(self.server.options.clone(), definitions)
    }
}

#[async_trait]
impl Control for TemporalRuntime {
    async fn start(&self, new: NewFlow) -> Result<Started, Error> {
        self.server.start(&new).await
    }

    async fn signal(
        &self,
        id: &FlowId,
        topic: &str,
        payload: Value,
        key: Option<&str>,
    ) -> Result<(), Error> {
        self.server.signal(id, topic, &payload, key).await
    }

    async fn cancel(&self, id: &FlowId) -> Result<(), Error> {
        self.server.cancel(id).await
    }

    async fn status(&self, id: &FlowId) -> Result<FlowRecord, Error> {
        self.server.record(id).await
    }

    async fn query(&self, id: &FlowId, query: &str) -> Result<Option<Value>, Error> {
        self.server.ask(id, query).await
    }

    async fn result(&self, id: &FlowId) -> Result<FlowState, Error> {
        loop {
            if let Some(state) = self.server.end(id, true).await? {
                return Ok(state);
            }
        }
    }

    async fn list(
        &self,
        filter: &FlowFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<FlowPage, Error> {
        self.server.list(filter, cursor, limit).await
    }

    async fn put_schedule(&self, schedule: &FlowSchedule) -> Result<(), Error> {
        self.server.put_schedule(schedule).await
    }

    async fn schedules(&self) -> Result<Vec<ScheduleView>, Error> {
        self.server.schedules().await
    }

    async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        self.server.delete_schedule(name).await
    }
}
