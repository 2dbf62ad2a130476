//! One inbox per workflow. Signals of every topic and the order to cancel come through it in one
//! sequence; what nobody waits for yet is kept until somebody does.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a runtime delivers to a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Post {
    Signal { topic: String, payload: Value },
    Cancel,
}

/// What was delivered and not taken. Rebuilt by replay, so it is never stored.
#[derive(Debug, Default)]
pub struct Mailbox {
    letters: VecDeque<(String, Value)>,
    cancelled: bool,
}

impl Mailbox {
    pub fn deliver(&mut self, post: Post) {
        match post {
            Post::Signal { topic, payload } => self.letters.push_back((topic, payload)),
            Post::Cancel => self.cancelled = true,
        }
    }

    /// The oldest signal of a topic.
    pub fn take(&mut self, topic: &str) -> Option<Value> {
        let place = self.letters.iter().position(|(about, _)| about == topic)?;
        self.letters.remove(place).map(|(_, payload)| payload)
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// From here on every wait and every step that is not shielded ends as cancelled.
    pub fn cancel(&mut self) {
        self.cancelled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(topic: &str, payload: u32) -> Post {
        Post::Signal {
            topic: topic.to_owned(),
            payload: payload.into(),
        }
    }

    #[test]
    fn topics_are_taken_in_order_and_apart() {
        let mut mailbox = Mailbox::default();
        for post in [signal("a", 1), signal("b", 2), signal("a", 3)] {
            mailbox.deliver(post);
        }
        assert_eq!(mailbox.take("b"), Some(2.into()));
        assert_eq!(mailbox.take("a"), Some(1.into()));
        assert_eq!(mailbox.take("a"), Some(3.into()));
        assert_eq!(mailbox.take("a"), None);
        assert!(!mailbox.is_cancelled());
        mailbox.deliver(Post::Cancel);
        assert!(mailbox.is_cancelled());
    }
}
