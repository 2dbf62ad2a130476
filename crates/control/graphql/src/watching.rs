//! How something is watched: read when its reader is ready, for as long as they may.
//!
//! A stream keeps nothing for anybody. Whether they still may is asked before what is read is told, at most
//! [`ASKED_AGAIN`] earlier, and while nothing happens as well.

use std::collections::VecDeque;
use std::time::Duration;

use async_graphql::Context;
use futures::Stream;
use futures::stream;
use jiff::Timestamp;
use nimbus_control_app::{Failure, RequestContext};
use nimbus_core::{ErrorCode, TraceId};
use tokio::time::{Instant, timeout};
use zeroize::Zeroizing;

use crate::act::{FieldResult, LiveCaller, asked};
use crate::refusal::refused;

/// How often it is asked again whether they may: somebody who may not any more hears nothing after five seconds.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
/// Whoever watches a run hears something this often.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Something that is watched.
pub(crate) trait Feed: Send {
    type Item: Send;

    /// What is new, and whether nothing will ever follow.
    fn read(&mut self) -> impl Future<Output = Result<(Vec<Self::Item>, bool), Failure>> + Send;

    /// Returns when there may be more.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;

    /// Whether whoever watches still may, asked again now.
    fn ensure_allowed(
        &mut self,
        context: &RequestContext,
        credential: &str,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether they may still hear something that was read before.
    fn may_tell(&mut self, _item: &Self::Item) -> bool {
        true
    }

    /// Told when nothing happens for a while.
    fn heartbeat(&self) -> Option<Self::Item> {
        None
    }
}

struct Watching<F: Feed> {
    feed: F,
    context: RequestContext,
    credential: Zeroizing<String>,
    trace_id: TraceId,
    asked: Option<Instant>,
    told: Instant,
    waiting: VecDeque<F::Item>,
    over: bool,
}

impl<F: Feed> Watching<F> {
    /// What is told next; nothing at the end.
    async fn next(&mut self) -> Result<Option<F::Item>, Failure> {
        loop {
            // Also what waits to be told was read for somebody who may no longer hear it.
            if self
                .asked
                .is_none_or(|asked| asked.elapsed() >= ASKED_AGAIN)
            {
                self.ask_again().await?;
            }
            while let Some(item) = self.waiting.pop_front() {
                if self.feed.may_tell(&item) {
                    self.told = Instant::now();
                    return Ok(Some(item));
                }
            }
            if self.over {
                return Ok(None);
            }
            let (items, over) = self.feed.read().await?;
            self.over = over;
            if !items.is_empty() || over {
                // What was read decides what one needs for it, such as an environment.
                self.ask_again().await?;
                self.waiting.extend(items);
                continue;
            }
            let _ = timeout(ASKED_AGAIN, self.feed.changed()).await;
            if self.told.elapsed() >= HEARTBEAT
                && let Some(item) = self.feed.heartbeat()
            {
                self.waiting.push_back(item);
            }
        }
    }

    async fn ask_again(&mut self) -> Result<(), Failure> {
        self.context.now = Timestamp::now();
        let question = self.feed.ensure_allowed(&self.context, &self.credential);
        match timeout(ASKED_AGAIN, question).await {
            Ok(Ok(())) => {
                self.asked = Some(Instant::now());
                Ok(())
            }
            Ok(Err(failure)) => Err(failure),
            // A database that does not answer lets nobody watch on for longer.
            Err(_) => Err(Failure::new(
                ErrorCode::SERVER_UNREACHABLE,
                "it cannot be found out whether you may",
            )),
        }
    }
}

pub(crate) fn watch<F: Feed + 'static>(
    ctx: &Context<'_>,
    feed: F,
) -> FieldResult<impl Stream<Item = FieldResult<F::Item>> + use<F>> {
    let live = ctx.data::<LiveCaller>()?;
    let watching = Watching {
        feed,
        context: live.context.clone(),
        credential: live.credential.clone(),
        trace_id: asked(ctx)?.caller.context.trace_id,
        asked: None,
        told: Instant::now(),
        waiting: VecDeque::new(),
        over: false,
    };
    Ok(stream::unfold(Some(watching), |watching| async move {
        let mut watching = watching?;
        match watching.next().await {
            Ok(Some(item)) => Some((Ok(item), Some(watching))),
            Ok(None) => None,
            Err(failure) => Some((Err(refused(&failure, watching.trace_id)), None)),
        }
    }))
}
