//! What somebody wants to be told and how. A choice is its person's alone; nobody else sees or makes it.

use nimbus_control_auth::operation;
use nimbus_control_store::{NOTIFICATION_KINDS, StoredDigest, StoredPreference, TenantTx};
use nimbus_control_wire::{
    DigestSchedule, KindPreference, NotificationPreferences, SetPreference, SetPreferences,
};
use serde_json::json;

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};
use crate::webhooks::{is_kind, unknown_kind};

/// Every kind that has no choice of its own.
const EVERY_KIND: &str = "*";
const USUAL: &str = "instant";
/// More choices than there are kinds and channels are a mistake.
const MOST_CHOICES: usize = 100;

impl App {
    /// The caller's own.
    pub async fn preferences_get(&self, call: &Call) -> Result<NotificationPreferences> {
        self.note_read(call, operation::GET_PREFERENCES).await?;
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| self.preferences(tx, call).await)
            .await
    }

    /// Changes what is named; the rest stays.
    pub async fn preferences_set(
        &self,
        call: &Call,
        input: SetPreferences,
    ) -> Result<NotificationPreferences> {
        if input.set.len() > MOST_CHOICES {
            let message = format!("give at most {MOST_CHOICES}");
            return Err(Failure::field("set", message));
        }
        input.set.iter().try_for_each(check_choice)?;
        let digest = input.digest.as_ref().map(check_digest).transpose()?;
        let person = call.who.user;
        self.inner
            .store
            .tenant_tx(call.who.home, async |tx| {
                for choice in &input.set {
                    let mode = Some(choice.mode.as_str()).filter(|mode| *mode != "default");
                    tx.preference_set(person, &choice.kind, &choice.channel, mode)
                        .await?;
                }
                if let Some(digest) = &digest {
                    tx.digest_set(person, digest).await?;
                }
                let record = self
                    .record_of(call, operation::SET_PREFERENCES.id, "notifications")
                    .on(person)
                    .after(json!({"set": input.set, "digest": input.digest}));
                self.audit(tx, &call.context, record).await?;
                self.preferences(tx, call).await
            })
            .await
    }

    async fn preferences(&self, tx: &mut TenantTx, call: &Call) -> Result<NotificationPreferences> {
        let chosen = tx.preference_list(call.who.user).await?;
        let digest = tx.digest_get(call.who.user).await?;
        let kinds = NOTIFICATION_KINDS.iter().copied().chain([EVERY_KIND]);
        let number = |given: i16| u8::try_from(given).unwrap_or_default();
        Ok(NotificationPreferences {
            kinds: kinds
                .map(|kind| KindPreference {
                    kind: kind.to_owned(),
                    in_app: mode_of(&chosen, kind, "in_app"),
                    email: mode_of(&chosen, kind, "email"),
                })
                .collect(),
            digest: DigestSchedule {
                period: digest.period,
                hour: number(digest.hour),
                weekday: number(digest.weekday),
            },
            digest_due_at: digest.due_at.map(|at| at.0.to_string()),
            mail: self.inner.mailer.is_some(),
        })
    }
}

/// What holds for a kind, as the statement that tells people has it.
fn mode_of(chosen: &[StoredPreference], kind: &str, channel: &str) -> String {
    let of = |kind: &str| {
        let mut found = chosen.iter();
        found.find(|one| one.kind == kind && one.channel == channel)
    };
    let found = of(kind).or_else(|| of(EVERY_KIND));
    found.map_or(USUAL, |one| one.mode.as_str()).to_owned()
}

fn check_choice(choice: &SetPreference) -> Result<()> {
    if choice.kind != EVERY_KIND && !is_kind(&choice.kind) {
        return Err(Failure::field("kind", unknown_kind(&choice.kind)));
    }
    let modes: &[&str] = match choice.channel.as_str() {
        "in_app" => &["off", "instant", "default"],
        "email" => &["off", "instant", "digest", "default"],
        _ => return Err(Failure::field("channel", "give in_app or email")),
    };
    match modes.contains(&choice.mode.as_str()) {
        true => Ok(()),
        false => {
            let message = format!("give one of {}", modes.join(", "));
            Err(Failure::field("mode", message))
        }
    }
}

fn check_digest(given: &DigestSchedule) -> Result<StoredDigest> {
    if !matches!(given.period.as_str(), "daily" | "weekly") {
        return Err(Failure::field("digest.period", "give daily or weekly"));
    }
    if given.hour > 23 {
        return Err(Failure::field("digest.hour", "give an hour from 0 to 23"));
    }
    if !(1..=7).contains(&given.weekday) {
        let message = "give a day from 1, Monday, to 7";
        return Err(Failure::field("digest.weekday", message));
    }
    Ok(StoredDigest {
        period: given.period.clone(),
        hour: given.hour.into(),
        weekday: given.weekday.into(),
        due_at: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(kind: &str, channel: &str, mode: &str) -> SetPreference {
        SetPreference {
            kind: kind.to_owned(),
            channel: channel.to_owned(),
            mode: mode.to_owned(),
        }
    }

    #[test]
    fn what_is_said_of_a_kind_goes_before_what_is_said_of_all() {
        let stored = |kind: &str, mode: &str| StoredPreference {
            kind: kind.to_owned(),
            channel: "email".to_owned(),
            mode: mode.to_owned(),
        };
        let chosen = [stored("*", "off"), stored("run_failed", "digest")];
        assert_eq!(mode_of(&chosen, "run_failed", "email"), "digest");
        assert_eq!(mode_of(&chosen, "approval_required", "email"), "off");
        assert_eq!(mode_of(&chosen, "run_failed", "in_app"), "instant");
    }

    #[test]
    fn choices_that_mean_nothing_are_refused() {
        assert!(check_choice(&choice("*", "email", "digest")).is_ok());
        assert!(check_choice(&choice("run_failed", "in_app", "default")).is_ok());
        for (kind, channel, mode) in [
            ("nothing", "email", "off"),
            ("", "email", "off"),
            ("run_failed", "sms", "off"),
            ("run_failed", "in_app", "digest"),
            ("run_failed", "email", "later"),
        ] {
            assert!(
                check_choice(&choice(kind, channel, mode)).is_err(),
                "{mode}"
            );
        }
        let schedule = |period: &str, hour, weekday| DigestSchedule {
            period: period.to_owned(),
            hour,
            weekday,
        };
        assert!(check_digest(&schedule("weekly", 23, 7)).is_ok());
        for wrong in [
            schedule("hourly", 7, 1),
            schedule("daily", 24, 1),
            schedule("weekly", 7, 0),
            schedule("weekly", 7, 8),
        ] {
            assert!(check_digest(&wrong).is_err(), "{wrong:?}");
        }
    }
}
