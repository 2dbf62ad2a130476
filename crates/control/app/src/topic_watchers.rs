//! Who on this server waits for news, and of what.

use std::collections::HashMap;
use std::sync::Arc;

use nimbus_control_events::{LiveNotice, NoticeTopic};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Those who watch on this server.
#[derive(Debug, Default)]
pub(crate) struct TopicWatchers {
    /// How often there was news.
    topics: Mutex<HashMap<NoticeTopic, watch::Sender<u64>>>,
}

impl TopicWatchers {
    /// Hears of everything about the topic that is announced after this returns.
    pub(crate) fn join(self: &Arc<Self>, topic: NoticeTopic) -> TopicWatch {
        let mut topics = self.topics.lock();
        let sender = topics.entry(topic).or_insert_with(|| watch::channel(0).0);
        TopicWatch {
            topic,
            news: sender.subscribe(),
            watchers: Arc::clone(self),
        }
    }

    pub(crate) fn tell(&self, news: &LiveNotice) {
        let topics = self.topics.lock();
        for sender in news.topics.iter().filter_map(|topic| topics.get(topic)) {
            sender.send_modify(|count| *count += 1);
        }
    }

    /// News may have been missed: everybody looks.
    pub(crate) fn tell_all(&self) {
        for sender in self.topics.lock().values() {
            sender.send_modify(|count| *count += 1);
        }
    }
}

/// One who watches a topic.
#[derive(Debug)]
pub(crate) struct TopicWatch {
    topic: NoticeTopic,
    news: watch::Receiver<u64>,
    watchers: Arc<TopicWatchers>,
}

impl TopicWatch {
    /// Returns when there was news since the last time.
    pub(crate) async fn changed(&mut self) {
        // An error is a server that ends, and whoever waits is told so by others.
        if self.news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How often there was news: what was read before it rose may be old.
    pub(crate) fn count(&self) -> u64 {
        *self.news.borrow()
    }
}

impl Drop for TopicWatch {
    fn drop(&mut self) {
        let mut topics = self.watchers.topics.lock();
        // This one still counts.
        if topics
            .get(&self.topic)
            .is_some_and(|sender| sender.receiver_count() <= 1)
        {
            topics.remove(&self.topic);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_who_watches_the_topic_is_told_and_nobody_is_remembered() {
        let watchers = Arc::new(TopicWatchers::default());
        let (one, two) = (
            NoticeTopic::Run(Uuid::new_v4()),
            NoticeTopic::Run(Uuid::new_v4()),
        );
        let (mut first, mut second) = (watchers.join(one), watchers.join(two));
        watchers.tell(&LiveNotice { topics: vec![one] });
        assert!(first.changed().now_or_never().is_some());
        assert!(second.changed().now_or_never().is_none());
        assert_eq!((first.count(), second.count()), (1, 0));
        watchers.tell_all();
        assert!(second.changed().now_or_never().is_some());
        drop((first, second));
        assert!(watchers.topics.lock().is_empty());
    }
}
