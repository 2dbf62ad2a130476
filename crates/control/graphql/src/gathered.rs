//! Loads that wait until a document has nothing left to do without them.
//!
//! The library begins a load a moment after its first key. A long list is resolved in many short turns, between which
//! that moment may pass: the slower the machine and the longer the list, the more parts it is read in. Here it is not
//! time that counts: a load begins when every field of the document waits for something, so that all items of a list
//! have named what they need.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::Stream;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::Instrument as _;

/// A load that has not begun.
pub(crate) type HeldLoad = BoxFuture<'static, ()>;

/// Loads of one document, from those who ask for them to who begins them.
pub(crate) fn held_loads() -> (UnboundedSender<HeldLoad>, UnboundedReceiver<HeldLoad>) {
    unbounded_channel()
}

/// Whether a document was woken while it had its turn: then it goes on by itself.
#[derive(Default)]
struct TurnWaker {
    woken: AtomicBool,
    outer: AtomicWaker,
}

impl Wake for TurnWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        self.outer.wake();
    }
}

/// A document that is carried out, with the loads that it waits for.
pub(crate) struct GatheredLoads<T> {
    document: T,
    turn: Arc<TurnWaker>,
    held: UnboundedReceiver<HeldLoad>,
}

impl<T> GatheredLoads<T> {
    pub(crate) fn new(document: T, held: UnboundedReceiver<HeldLoad>) -> Self {
        Self {
            document,
            turn: Arc::default(),
            held,
        }
    }

    fn turn<R>(
        &mut self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<R> {
        self.turn.outer.register(cx.waker());
        self.turn.woken.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.turn));
        let polled = poll(&mut self.document, &mut Context::from_waker(&waker));
        // Long lists wake themselves to let others have a turn, and have more to name in their next one.
        if polled.is_pending() && !self.turn.woken.load(Ordering::SeqCst) {
            while let Ok(load) = self.held.try_recv() {
                tokio::spawn(load.in_current_span());
            }
        }
        polled
    }
}

impl<T: Future + Unpin> Future for GatheredLoads<T> {
    type Output = T::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T::Output> {
        let poll = |document: &mut T, cx: &mut Context<'_>| Pin::new(document).poll(cx);
        self.get_mut().turn(cx, poll)
    }
}

impl<T: Stream + Unpin> Stream for GatheredLoads<T> {
    type Item = T::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T::Item>> {
        let poll = |document: &mut T, cx: &mut Context<'_>| Pin::new(document).poll_next(cx);
        self.get_mut().turn(cx, poll)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use async_graphql::dataloader::{DataLoader, Loader, NoCache};
    use async_graphql::{EmptyMutation, EmptySubscription, Object, Schema};
    use futures::StreamExt as _;
    use tokio::sync::mpsc::error::TryRecvError;

    use super::*;

    const ITEMS: u32 = 200;

    /// Tells how many keys each load had.
    struct CountedLoads(UnboundedSender<usize>);

    impl Loader<u32> for CountedLoads {
        type Value = u32;
        type Error = Arc<str>;

        async fn load(&self, keys: &[u32]) -> Result<HashMap<u32, u32>, Arc<str>> {
            let _ = self.0.send(keys.len());
            Ok(keys.iter().map(|key| (*key, key + 1_000)).collect())
        }
    }

    struct ListedItem(u32);

    #[Object]
    impl ListedItem {
        async fn next(&self, ctx: &async_graphql::Context<'_>) -> Option<ListedItem> {
            // As slow as a machine that does other things beside this.
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_micros(100) {
                std::hint::spin_loop();
            }
            let loader = ctx.data_unchecked::<DataLoader<CountedLoads, NoCache>>();
            loader.load_one(self.0).await.unwrap().map(ListedItem)
        }

        async fn number(&self) -> u32 {
            self.0
        }
    }

    struct ListedRoot;

    #[Object]
    impl ListedRoot {
        async fn items(&self) -> Vec<ListedItem> {
            (0..ITEMS).map(ListedItem).collect()
        }
    }

    const QUERY: &str = "{ items { next { next { number } } } }";

    type LoadCounts = UnboundedReceiver<usize>;

    fn asked() -> (
        async_graphql::Request,
        UnboundedReceiver<HeldLoad>,
        LoadCounts,
    ) {
        let (hold, held) = held_loads();
        let (count, counted) = unbounded_channel();
        let spawn = move |load: HeldLoad| hold.send(load);
        let loader = DataLoader::new(CountedLoads(count), spawn).delay(Duration::ZERO);
        (
            async_graphql::Request::new(QUERY).data(loader),
            held,
            counted,
        )
    }

    fn schema() -> Schema<ListedRoot, EmptyMutation, EmptySubscription> {
        Schema::new(ListedRoot, EmptyMutation, EmptySubscription)
    }

    fn counts(mut counted: LoadCounts) -> Vec<usize> {
        let mut counts = Vec::new();
        loop {
            match counted.try_recv() {
                Ok(count) => counts.push(count),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return counts,
            }
        }
    }

    async fn one_load_for_each_level() {
        let schema = schema();
        let (request, held, counted) = asked();
        let document = Box::pin(schema.execute(request));
        let answer = GatheredLoads::new(document, held).await;
        assert!(answer.is_ok(), "{:?}", answer.errors);
        let answer = answer.data.into_json().unwrap();
        assert_eq!(answer["items"][199]["next"]["next"]["number"], 2_199);
        assert_eq!(counts(counted), [200, 200]);

        let (request, held, counted) = asked();
        let mut answers = GatheredLoads::new(schema.execute_stream(request), held);
        assert!(answers.next().await.unwrap().is_ok());
        assert!(answers.next().await.is_none());
        assert_eq!(counts(counted), [200, 200]);
    }

    #[tokio::test]
    async fn a_long_list_is_loaded_at_once() {
        one_load_for_each_level().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_long_list_is_loaded_at_once_beside_other_threads() {
        for _ in 0..5 {
            one_load_for_each_level().await;
        }
    }
}
