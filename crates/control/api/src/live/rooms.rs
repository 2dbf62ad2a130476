//! The rooms of a connection: which events it gets, and each of them once.

use nimbus_control_app::{LiveCursor, LiveEvent, LiveFeed, LiveRoom};

/// A room and since when.
#[derive(Debug)]
struct JoinedRoom {
    name: String,
    room: LiveRoom,
    /// Events after this number are told in it.
    from: i64,
}

impl JoinedRoom {
    fn tells(&self, event: &LiveEvent) -> bool {
        event.cursor.seq > self.from && self.room.has(event)
    }
}

/// The rooms of a connection in one tenant, and what its log is read with.
#[derive(Debug)]
pub(super) struct TenantRooms {
    pub(super) feed: LiveFeed,
    pub(super) told: ToldRooms,
}

impl TenantRooms {
    pub(super) fn new(feed: LiveFeed) -> Self {
        let told = ToldRooms::new(feed.cursor());
        Self { feed, told }
    }
}

/// Rooms, and how far the log was told in them.
#[derive(Debug)]
pub(super) struct ToldRooms {
    rooms: Vec<JoinedRoom>,
    /// The log was told up to this number. What has come so far does not come again, whatever is read.
    mark: i64,
}

impl ToldRooms {
    fn new(known: LiveCursor) -> Self {
        Self {
            rooms: Vec::new(),
            mark: known.seq,
        }
    }

    /// Whether the connection gets an event that the log has next, in however many of its rooms it is.
    pub(super) fn take(&mut self, event: &LiveEvent) -> bool {
        if event.cursor.seq <= self.mark {
            return false;
        }
        self.mark = event.cursor.seq;
        self.has_told(event)
    }

    /// Whether an event of before is one that the connection got.
    pub(super) fn has_told(&self, event: &LiveEvent) -> bool {
        self.rooms.iter().any(|room| room.tells(event))
    }

    /// The log goes on here: what rooms know ends with the log that they knew.
    pub(super) fn skip_to(&mut self, place: LiveCursor) {
        self.mark = place.seq;
        for room in &mut self.rooms {
            room.from = place.seq;
        }
    }

    /// Events after this number are told in the room as well.
    pub(super) fn enter(&mut self, name: String, room: LiveRoom, from: i64) {
        if !self.has(&name) {
            self.rooms.push(JoinedRoom { name, room, from });
        }
    }

    pub(super) fn leave(&mut self, name: &str) -> bool {
        let before = self.rooms.len();
        self.rooms.retain(|room| room.name != name);
        self.rooms.len() < before
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.rooms.iter().any(|room| room.name == name)
    }

    pub(super) fn count(&self) -> usize {
        self.rooms.len()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.rooms.iter().map(|room| room.name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use nimbus_core::TenantId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn place(seq: i64) -> LiveCursor {
        LiveCursor {
            epoch: Uuid::nil(),
            seq,
        }
    }

    fn event(tenant: TenantId, subject: &str, seq: i64) -> LiveEvent {
        LiveEvent {
            kind: "tenant.updated".into(),
            tenant_id: tenant,
            data: json!({}),
            timestamp: "2026-01-01T00:00:00Z".into(),
            trace_id: None,
            id: Uuid::new_v4(),
            cursor: place(seq),
            subjects: vec![subject.into()],
            environment: None,
            person: None,
        }
    }

    #[test]
    fn what_was_told_is_not_told_again_in_any_room() {
        let tenant = TenantId::from(Uuid::new_v4());
        let mut told = ToldRooms::new(place(4));
        told.enter("tenant".into(), LiveRoom::Tenant(tenant), 4);
        told.enter("resource".into(), LiveRoom::Resource("D1".into()), 2);
        // The log is read from a place before the one that the client has, and then again.
        let read = [3, 4, 5, 6, 5, 6, 7];
        let heard: Vec<_> = read
            .into_iter()
            .filter(|seq| told.take(&event(tenant, "D1", *seq)))
            .collect();
        assert_eq!(heard, [5, 6, 7]);
        // Nor in a room that is joined later.
        told.enter("later".into(), LiveRoom::Resource("D1".into()), 0);
        assert!(!told.take(&event(tenant, "D1", 7)));
        assert!(told.take(&event(tenant, "D1", 8)));
    }

    #[test]
    fn a_room_tells_what_is_in_it_after_its_place() {
        let tenant = TenantId::from(Uuid::new_v4());
        let mut told = ToldRooms::new(place(0));
        // It was joined with a place that the log was not read to yet.
        told.enter("resource".into(), LiveRoom::Resource("D1".into()), 2);
        assert!(!told.take(&event(tenant, "D1", 1)));
        assert!(!told.take(&event(tenant, "D1", 2)));
        assert!(!told.take(&event(tenant, "D2", 3)));
        assert!(told.take(&event(tenant, "D1", 4)));
        assert!(told.has_told(&event(tenant, "D1", 4)));
        assert!(!told.has_told(&event(tenant, "D1", 2)));
    }

    #[test]
    fn a_log_that_begins_anew_is_told_from_where_it_goes_on() {
        let tenant = TenantId::from(Uuid::new_v4());
        let mut told = ToldRooms::new(place(100));
        told.enter("tenant".into(), LiveRoom::Tenant(tenant), 100);
        told.skip_to(place(3));
        assert!(!told.take(&event(tenant, "x", 3)));
        assert!(told.take(&event(tenant, "x", 4)));
    }
}
