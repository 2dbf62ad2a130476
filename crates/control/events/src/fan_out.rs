//! How servers tell each other that there is something new.

use std::fmt;

use async_trait::async_trait;
use nimbus_core::{Result, TenantId};
use uuid::Uuid;

/// What there is news of. News say where to look and nothing else: what is new is read where row-level security
/// holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoticeTopic {
    /// The tenant's log has something new.
    Tenant(TenantId),
    /// Something about the run changed.
    Run(Uuid),
}

impl fmt::Display for NoticeTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "t{}", Uuid::from(*tenant).simple()),
            Self::Run(run) => write!(f, "r{}", run.simple()),
        }
    }
}

/// Everything that one announcement says. An empty one is a sign of life.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveNotice {
    pub topics: Vec<NoticeTopic>,
}

impl LiveNotice {
    /// Texts of at most so many bytes that say it all, at least one.
    pub fn texts(&self, most_bytes: usize) -> Vec<String> {
        let mut texts = vec![String::new()];
        for topic in &self.topics {
            let topic = topic.to_string();
            let full = |text: &String| !text.is_empty() && text.len() + topic.len() >= most_bytes;
            if texts.last().is_none_or(full) {
                texts.push(String::new());
            }
            if let Some(last) = texts.last_mut() {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(&topic);
            }
        }
        texts
    }

    /// What a text says. Anybody who may connect may publish; what is no topic is nobody's news.
    pub fn parse(text: &str) -> Self {
        let topic = |word: &str| {
            let id = Uuid::try_parse(word.get(1..)?).ok()?;
            match word.get(..1)? {
                "t" => Some(NoticeTopic::Tenant(id.into())),
                "r" => Some(NoticeTopic::Run(id)),
                _ => None,
            }
        };
        Self {
            topics: text.split(' ').filter_map(topic).collect(),
        }
    }
}

/// Where news of all servers come in.
#[async_trait]
pub trait NoticeSource: Send {
    /// The next news. `None` when some may have been missed.
    async fn next(&mut self) -> Result<Option<LiveNotice>>;
}

/// What stands between servers: the database's notifications, or a broker.
#[async_trait]
pub trait FanOut: fmt::Debug + Send + Sync {
    /// As metrics and logs call it.
    fn name(&self) -> &'static str;

    /// Tells every server that listens, this one as well. Nobody is waited for.
    ///
    /// # Errors
    ///
    /// When it was not taken over. Servers look by themselves then.
    async fn announce(&self, news: &LiveNotice) -> Result<()>;

    /// Hears everything that is announced from now on.
    ///
    /// # Errors
    ///
    /// When nothing can be heard.
    async fn listen(&self) -> Result<Box<dyn NoticeSource>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_survive_text_in_as_many_parts_as_it_takes() {
        let topics: Vec<_> = (0..500)
            .map(|number| match number % 2 {
                0 => NoticeTopic::Tenant(Uuid::new_v4().into()),
                _ => NoticeTopic::Run(Uuid::new_v4()),
            })
            .collect();
        let news = LiveNotice { topics };
        let texts = news.texts(1000);
        assert!(texts.len() > 10);
        assert!(texts.iter().all(|text| text.len() <= 1000));
        let heard = texts.iter().flat_map(|text| LiveNotice::parse(text).topics);
        assert_eq!(heard.collect::<Vec<_>>(), news.topics);
        assert_eq!(LiveNotice::default().texts(10), [""]);
        assert_eq!(
            LiveNotice::parse("x ä tnothing r ré"),
            LiveNotice::default()
        );
    }
}
