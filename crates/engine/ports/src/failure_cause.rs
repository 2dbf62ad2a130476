//! Why a provider did not do what was asked, as far as anybody can act on it.
//!
//! Some causes undo a run by themselves, so a cause is never read out of prose: a program that talks
//! about quotas has not met one. It comes from the status of a call, or from an error code of a cloud
//! that stands where clouds put their codes.

use std::fmt;

/// What a failure goes back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureCause {
    /// The cloud allows no more of something: a quota is used up, or there is no capacity.
    ServiceLimit,
    /// Too many requests at once. The same request may go well later.
    Throttled,
    /// Whoever asks may not do this.
    AccessDenied,
    /// Something that the request names does not exist.
    NotFound,
    /// Everything else, and what nobody can tell.
    #[default]
    Other,
}

impl FailureCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServiceLimit => "service-limit",
            Self::Throttled => "throttled",
            Self::AccessDenied => "access-denied",
            Self::NotFound => "not-found",
            Self::Other => "other",
        }
    }

    /// What an error code of a cloud stands for.
    pub fn of_code(code: &str) -> Self {
        let any = |codes: &[&str]| codes.contains(&code);
        // Before limits: some codes of throttling end like those of quotas.
        if any(THROTTLED) || code.ends_with("ThrottlingException") {
            return Self::Throttled;
        }
        let exceeded = ["LimitExceeded", "QuotaExceeded", "limitExceeded"];
        let bare = code.strip_suffix("Exception").unwrap_or(code);
        let bare = bare.strip_suffix("Fault").unwrap_or(bare);
        let limit = exceeded.iter().any(|ending| bare.ends_with(ending))
            || code.starts_with("QuotaExceeded")
            || code.starts_with("Insufficient") && code.contains("Capacity")
            || any(LIMITS);
        if limit {
            return Self::ServiceLimit;
        }
        if any(DENIED) {
            return Self::AccessDenied;
        }
        let absent = bare.ends_with("NotFound") || code.starts_with("NoSuch") || code == "notFound";
        if absent {
            return Self::NotFound;
        }
        Self::Other
    }

    /// The cause that a cloud's own code in an error text stands for. Only codes that stand where
    /// clouds put them count: after `api error` (AWS), as `Code="…"` (Azure), between two colons
    /// (AWS, older), and as the last word of an error of Google's API. Words in a sentence are never
    /// read.
    pub fn of_provider_text(text: &str) -> Self {
        let known = |code: &str| Some(Self::of_code(code)).filter(|cause| *cause != Self::Other);
        codes(text).find_map(known).unwrap_or_default()
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const THROTTLED: &[&str] = &[
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestThrottled",
    "RequestThrottledException",
    // What EC2 says when one asks too often; no quota of resources.
    "RequestLimitExceeded",
    "BandwidthLimitExceeded",
    "TooManyRequests",
    "TooManyRequestsException",
    "SlowDown",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "rateLimitExceeded",
    "userRateLimitExceeded",
    "RATE_LIMIT_EXCEEDED",
];

/// Limits whose codes do not say so in the usual form.
const LIMITS: &[&str] = &[
    "TooManyBuckets",
    "MaxSpotInstanceCountExceeded",
    "SkuNotAvailable",
    "ZonalAllocationFailed",
    "AllocationFailed",
    "quotaExceeded",
    "QUOTA_EXCEEDED",
    "ZONE_RESOURCE_POOL_EXHAUSTED",
];

const DENIED: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "UnauthorizedOperation",
    "AuthFailure",
    "AuthorizationFailed",
    "AuthorizationError",
    "Forbidden",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "forbidden",
    "PERMISSION_DENIED",
];

/// Texts that stand where clouds put their error codes.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let introduced = ["api error ", "Code=", "Code: "].into_iter();
    let introduced = introduced.flat_map(move |before| {
        let found = text.match_indices(before);
        found.map(move |(at, _)| word(text[at + before.len()..].trim_start_matches('"')))
    });
    let between_colons = text.lines().flat_map(|line| {
        let mut parts: Vec<&str> = line.split(": ").collect();
        // What follows the last colon is a sentence.
        parts.pop();
        parts.into_iter().map(str::trim)
    });
    let google = text
        .lines()
        .filter(|line| line.contains("googleapi: Error "));
    let last_word = google.filter_map(|line| line.rsplit_once(", ").map(|(_, last)| last.trim()));
    let all = introduced.chain(between_colons).chain(last_word);
    all.filter(|code| !code.is_empty() && word(code).len() == code.len())
}

/// The code that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::FailureCause::{AccessDenied, NotFound, Other, ServiceLimit, Throttled};
    use super::*;

    #[test]
    fn codes_are_read_where_clouds_put_them() {
        let cases = [
            (
                "creating EC2 VPC: operation error EC2: CreateVpc, https response error StatusCode: \
                 400, RequestID: 1, api error VpcLimitExceeded: The maximum number of VPCs has been \
                 reached.",
                ServiceLimit,
            ),
            (
                "Error creating VPC: VpcLimitExceeded: The maximum number\n\tstatus code: 400",
                ServiceLimit,
            ),
            ("api error ServiceQuotaExceededException: no", ServiceLimit),
            ("api error InsufficientInstanceCapacity: none", ServiceLimit),
            (
                "Status=409 Code=\"QuotaExceeded\" Message=\"x\"",
                ServiceLimit,
            ),
            (
                "googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0, quotaExceeded",
                ServiceLimit,
            ),
            ("googleapi: Error 403: slow, rateLimitExceeded", Throttled),
            (
                "api error RequestLimitExceeded: Request limit exceeded.",
                Throttled,
            ),
            ("api error UnauthorizedOperation: You are not", AccessDenied),
            ("api error InvalidVpcID.NotFound: The vpc", NotFound),
            ("api error NoSuchBucket: The bucket", NotFound),
            (
                "rehearsal: LimitExceeded: no more than 2 of a:b:C",
                ServiceLimit,
            ),
        ];
        for (text, cause) in cases {
            assert_eq!(FailureCause::of_provider_text(text), cause, "{text}");
        }
    }

    #[test]
    fn words_in_a_sentence_are_no_codes() {
        for text in [
            "the quota of this team is described in quota.md",
            "tag `quota exceeded` is not valid",
            "QuotaExceeded is what we would like to see",
            "property reason: it must not say LimitExceeded",
            "expected Code=\"fine\" and no quotaExceeded",
            "",
        ] {
            assert_eq!(FailureCause::of_provider_text(text), Other, "{text}");
        }
    }
}
