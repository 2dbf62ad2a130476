//! Credentials of a cloud that end at a known time.
//!
//! A run whose credentials end in the middle would fail at whatever it does then, and what it asked for last would be
//! unknown. So it is asked to stop before: steps that run come to their end, no new one begins, and the run can be gone on
//! with once the account has new credentials. A run that would begin after their end does not begin.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use nimbus_core::{Error, ErrorCode};
use nimbus_engine_operations::Cancellation;

/// As the command line of AWS calls it, and many tools after it: RFC 3339.
pub(crate) const EXPIRATION: &str = "AWS_CREDENTIAL_EXPIRATION";
/// What a step may need to come to its end.
const MARGIN: Duration = Duration::from_secs(60);

/// When the first of these credentials ends, if anybody knows.
pub(crate) fn end_of_credentials(credentials: &BTreeMap<String, String>) -> Option<Timestamp> {
    credentials.get(EXPIRATION)?.parse().ok()
}

/// Refuses to begin with credentials that have ended, or are about to.
pub(crate) fn require_time(end: Option<Timestamp>, now: Timestamp) -> Result<(), Error> {
    match end {
        Some(end) if until_stop(end, now).is_zero() => Err(credentials_ended(end)),
        _ => Ok(()),
    }
}

pub(crate) fn credentials_ended(end: Timestamp) -> Error {
    let message = format!(
        "the credentials of the tenant's cloud account end at {end}, and nothing new is begun shortly before"
    );
    Error::new(ErrorCode::CREDENTIALS_ENDED, message)
        .with_help("give the account new credentials, then go on with the run")
}

fn until_stop(end: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
    left.saturating_sub(MARGIN)
}

/// Does the work, and asks it to stop when its credentials are about to end. Whether it was asked.
pub(crate) async fn with_credentials<T>(
    end: Option<Timestamp>,
    cancellation: &Cancellation,
    work: impl Future<Output = T>,
) -> (T, bool) {
    let mut work = std::pin::pin!(work);
    let Some(end) = end else {
        return (work.await, false);
    };
    let stop = tokio::time::sleep(until_stop(end, Timestamp::now()));
    tokio::select! {
        biased;
        done = &mut work => return (done, false),
        () = stop => {}
    }
    if !cancellation.is_stopping() {
        cancellation.request();
    }
    (work.await, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a step every ten seconds until it is asked to stop; at what times they began.
    async fn steps(cancellation: &Cancellation, most: usize) -> Vec<u64> {
        let begun = tokio::time::Instant::now();
        let mut began = Vec::new();
        while began.len() < most && !cancellation.is_stopping() {
            began.push(begun.elapsed().as_secs());
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        began
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_new_begins_when_credentials_are_about_to_end() {
        let cancellation = Cancellation::new();
        let end = Timestamp::now() + Duration::from_secs(5 * 60);
        let work = steps(&cancellation, 1000);
        let (began, asked) = with_credentials(Some(end), &cancellation, work).await;
        assert!(asked);
        let last = *began.last().unwrap();
        assert!((220..=240).contains(&last), "{began:?}");
        // The same work with time enough comes to its own end.
        let cancellation = Cancellation::new();
        let work = steps(&cancellation, 5);
        let (began, asked) = with_credentials(Some(end), &cancellation, work).await;
        assert_eq!((began.len(), asked), (5, false));
    }

    #[test]
    fn credentials_that_have_ended_begin_nothing() {
        let now = Timestamp::now();
        let of = |text: &str| {
            let given = BTreeMap::from([(EXPIRATION.to_owned(), text.to_owned())]);
            end_of_credentials(&given)
        };
        let soon = now + Duration::from_secs(30);
        let later = now + Duration::from_secs(3600);
        assert!(require_time(of(&soon.to_string()), now).is_err());
        assert!(require_time(of("2020-01-01T00:00:00Z"), now).is_err());
        require_time(of(&later.to_string()), now).unwrap();
        require_time(None, now).unwrap();
    }
}
