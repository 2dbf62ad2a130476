//! Names that documents of the product have and that are no settings, because nothing would read them.
//!
//! Whoever sets one must not believe that it works: a variable is told at every start and by `nimbus doctor`, a key in the
//! file is refused with the same words. What gets a reader becomes a setting and goes from here; a test sees that no name
//! is in both lists.

/// Keys in the file with their variables.
pub(crate) static UNUSED: &[(&str, &str)] = &[
    ("app.version", "NIMBUS_APP_VERSION"),
    ("app.env", "NIMBUS_ENV"),
    ("app.debug", "NIMBUS_DEBUG"),
    ("s3.bucket", "NIMBUS_S3_BUCKET"),
    (
        "drift_detection.default_schedule",
        "NIMBUS_DRIFT_DETECTION_DEFAULT_SCHEDULE",
    ),
    (
        "notifications.email.provider",
        "NIMBUS_NOTIFICATIONS_EMAIL_PROVIDER",
    ),
];

/// Whether a key of the file, or one above it, is such a name.
pub(crate) fn is_unused_key(path: &str) -> bool {
    UNUSED.iter().any(|(key, _)| {
        key.strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::REGISTRY;

    #[test]
    fn no_name_is_a_setting_and_unused() {
        for (path, variable) in UNUSED {
            for setting in REGISTRY {
                assert_ne!(*path, setting.path);
                assert_ne!(*variable, setting.variable);
            }
        }
    }

    #[test]
    fn a_section_without_settings_is_unused_and_one_that_looks_alike_is_not() {
        for path in ["drift_detection", "app.env", "notifications.email.provider"] {
            assert!(is_unused_key(path), "{path}");
        }
        for path in ["drift", "app.environment", "notifications.sms", "logging"] {
            assert!(!is_unused_key(path), "{path}");
        }
    }
}
