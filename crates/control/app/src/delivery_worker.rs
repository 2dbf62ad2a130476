//! Sends what is to be sent: goes to the tenants that are due, takes some of what each has, sends it and notes the outcome.
//!
//! Every server does this. A delivery belongs to one of them for the time of a lease; a server that dies delays what it
//! had. A slow receiver takes places of its tenant alone: a tenant has a few of a server's places, and a customer, with all
//! tenants that it makes below its own, has never all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nimbus_control_delivery::{
    Mail, SendOutcome, SendVerdict, WebhookMessage, WebhookSecret, WebhookSender, delay_before_next,
};
use nimbus_control_store::{
    AttemptEnd, DeliveryChannels, DeliveryEnd, StoreError, StoredWebhook, TakenDelivery, TenantTx,
    WorkTurn,
};
use nimbus_core::{Error, ErrorCode, TenantId};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};
use tracing::warn;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::mail_text::mail_of;

/// How often tenants that are due are looked for when nobody of this server rang: others write as well.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Tenants that are looked at in one round.
const TENANTS_AT_ONCE: i32 = 256;
/// What a server sends at once, of one customer with everything below it, and of one tenant.
const PLACES: usize = 64;
const PLACES_PER_CUSTOMER: usize = 8;
const PLACES_PER_TENANT: usize = 4;
/// What a lease lasts beyond the longest time that sending may take.
const MARGIN: Duration = Duration::from_secs(60);

/// What sends, until it is stopped or dropped.
#[derive(Debug)]
pub struct DeliveryWorker {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl DeliveryWorker {
    /// Takes nothing more and waits for what is being sent.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            warn!(%error, "the worker of deliveries went wrong");
        }
    }
}

/// A delivery with everything that is needed to send it.
struct ReadyDelivery {
    taken: TakenDelivery,
    secrets: Vec<WebhookSecret>,
}

impl App {
    /// Sends what waits, here and from then on.
    pub fn start_deliveries(&self) -> DeliveryWorker {
        let (stop, stopped) = watch::channel(false);
        let app = self.clone();
        let task = tokio::spawn(async move { app.deliver(stopped).await });
        DeliveryWorker { stop, task }
    }

    async fn deliver(&self, mut stopped: watch::Receiver<bool>) {
        let store = &self.inner.store;
        let wakeup = store.delivery_wakeup();
        let mut works = match store.delivery_note_all().await {
            Ok(()) => true,
            Err(error) => {
                warn!(%error, "nobody knows which tenants have something to send");
                false
            }
        };
        let mut sending = SendingTasks::default();
        loop {
            let pause = match self.begin_due(&mut sending).await {
                Ok(()) => {
                    works = true;
                    PAUSE
                }
                Err(failure) => {
                    if std::mem::replace(&mut works, false) {
                        let error = failure.error.log_text();
                        warn!(%error, "notifications wait: the database does not give them");
                    }
                    PAUSE_AFTER_FAILURE
                }
            };
            tokio::select! {
                // An error is a server that was dropped.
                _ = stopped.wait_for(|stop| *stop) => break,
                () = sending.one_ended() => {}
                () = next_look(&wakeup, pause) => {}
            }
        }
        sending.all_ended().await;
    }

    /// Sends everything that is due now and waits for it. How many there were.
    pub async fn deliver_due(&self) -> Result<usize> {
        let mut sending = SendingTasks::default();
        loop {
            let before = sending.begun;
            self.begin_due(&mut sending).await?;
            sending.all_ended().await;
            if sending.begun == before {
                return Ok(sending.begun);
            }
        }
    }

    async fn begin_due(&self, sending: &mut SendingTasks) -> Result<()> {
        for turn in self.inner.store.delivery_due(TENANTS_AT_ONCE).await? {
            let tenant = turn.tenant;
            let places = sending.places(&turn);
            if places == 0 {
                continue;
            }
            let lease = Uuid::new_v4();
            let ready = match self.take_due(tenant, lease, places).await {
                Ok(ready) => ready,
                Err(failure) if failure.error.code() == ErrorCode::RESOURCE_NOT_FOUND => {
                    self.inner.store.delivery_forget(tenant).await?;
                    continue;
                }
                // One tenant's failure keeps no other's notifications back.
                Err(failure) => {
                    let error = failure.error.log_text();
                    warn!(%error, %tenant, "what a tenant has to send was not taken");
                    continue;
                }
            };
            for delivery in ready {
                let app = self.clone();
                sending.begin(&turn, async move {
                    app.send_one(tenant, lease, delivery).await;
                });
            }
        }
        Ok(())
    }

    /// Makes mails of the digests whose hour has come, which are then sent as everything else. How many people there were.
    pub async fn gather_digests(&self) -> Result<u64> {
        if self.inner.mailer.is_none() {
            return Ok(0);
        }
        let mut gathered = 0;
        for tenant in self.every_tenant().await? {
            loop {
                let store = &self.inner.store;
                let some = store.tenant_tx(tenant, async |tx| tx.digests_gather().await);
                match some.await {
                    // Deleted since, or nobody is left.
                    Ok(0) | Err(StoreError::TenantUnknown) => break,
                    Ok(count) => gathered += count as u64,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(gathered)
    }

    async fn take_due(
        &self,
        tenant: TenantId,
        lease: Uuid,
        most: usize,
    ) -> Result<Vec<ReadyDelivery>> {
        let channels = self.delivery_channels();
        let seconds = (self.inner.settings.webhooks.timeout + MARGIN).as_secs_f64();
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.inner
            .store
            .tenant_tx(tenant, async |tx| {
                if !tx.delivery_turn().await? {
                    return Ok(Vec::new());
                }
                let taken = tx.deliveries_take(channels, lease, seconds, most).await?;
                let mut ready = Vec::with_capacity(taken.len());
                for taken in taken {
                    let secrets = self.secrets_of(tx, &taken).await?;
                    ready.push(ReadyDelivery { taken, secrets });
                }
                tx.delivery_next(channels).await?;
                Ok(ready)
            })
            .await
    }

    fn delivery_channels(&self) -> DeliveryChannels {
        DeliveryChannels {
            webhook: self.inner.settings.webhooks.enabled,
            email: self.inner.mailer.is_some(),
        }
    }

    /// What a webhook's message is signed with. A secret that does not open signs nothing, and the delivery fails.
    async fn secrets_of(
        &self,
        tx: &mut TenantTx,
        taken: &TakenDelivery,
    ) -> Result<Vec<WebhookSecret>> {
        let Some(webhook) = taken.webhook else {
            return Ok(Vec::new());
        };
        let mut secrets = Vec::new();
        for sealed in [&taken.secret, &taken.previous_secret]
            .into_iter()
            .flatten()
        {
            let opened = self
                .unseal(tx, &StoredWebhook::secret_field(webhook), sealed)
                .await;
            match opened.and_then(read_secret) {
                Ok(secret) => secrets.push(secret),
                Err(failure) => {
                    let error = failure.error.log_text();
                    warn!(%error, %webhook, "the secret of a webhook cannot be read");
                    return Ok(Vec::new());
                }
            }
        }
        Ok(secrets)
    }

    async fn send_one(&self, tenant: TenantId, lease: Uuid, ready: ReadyDelivery) {
        let taken = &ready.taken;
        let sent = match taken.channel.as_str() {
            "webhook" => self.send_webhook(&ready).await,
            _ => self.send_mail(taken).await,
        };
        let gone = sent
            .as_ref()
            .is_some_and(|sent| sent.verdict == SendVerdict::Gone);
        let ended = attempt_end(sent, taken.tries, rand::random());
        let noted = self
            .inner
            .store
            .tenant_tx(tenant, async |tx| {
                let ours = tx.delivery_end(taken, lease, &ended).await?;
                if let (true, true, Some(webhook)) = (ours, gone, taken.webhook) {
                    tx.webhook_disable(webhook, "it answered 410 Gone").await?;
                }
                Ok::<_, StoreError>(())
            })
            .await;
        if let Err(error) = noted {
            // It is sent again when the lease ends; its receiver knows it by its id.
            warn!(%error, %tenant, delivery = %taken.id, "the outcome of a delivery was not noted");
        }
    }

    async fn send_webhook(&self, ready: &ReadyDelivery) -> Option<SendOutcome> {
        let taken = &ready.taken;
        // Deleted after it was taken.
        let url = taken.url.clone()?;
        let fails = |problem: &str| SendOutcome::unanswered(SendVerdict::Retry, problem);
        if ready.secrets.is_empty() {
            return Some(fails("the secret of the webhook cannot be read"));
        }
        let sender = match self.webhook_sender() {
            Ok(sender) => sender,
            Err(problem) => return Some(fails(&problem)),
        };
        let message = WebhookMessage {
            id: taken.id.to_string(),
            url,
            body: taken.payload.clone(),
            secrets: ready.secrets.clone(),
            timestamp: jiff::Timestamp::from(taken.began_at).as_second(),
        };
        Some(sender.send(&message).await)
    }

    /// Made when the first webhook is called: it reads the machine's certificates.
    fn webhook_sender(&self) -> std::result::Result<&WebhookSender, String> {
        if let Some(sender) = self.inner.webhook_sender.get() {
            return Ok(sender);
        }
        let made = WebhookSender::new(&self.inner.settings.webhooks);
        let made = made.map_err(|error| error.to_string())?;
        Ok(self.inner.webhook_sender.get_or_init(|| made))
    }

    async fn send_mail(&self, taken: &TakenDelivery) -> Option<SendOutcome> {
        // Nobody who is gone or disabled is written to.
        let to = taken.address.clone()?;
        let Some(mailer) = &self.inner.mailer else {
            let problem = "this server sends no mail";
            return Some(SendOutcome::unanswered(SendVerdict::Retry, problem));
        };
        let url = self.inner.settings.public_url.as_deref();
        let Some((subject, text)) = mail_of(&taken.kind, &taken.payload, url) else {
            let problem = "what is to be sent cannot be read";
            return Some(SendOutcome::unanswered(SendVerdict::Refused, problem));
        };
        let mail = Mail {
            id: taken.id.to_string(),
            to,
            subject,
            text,
        };
        Some(mailer.send(&mail).await)
    }
}

fn read_secret(opened: Zeroizing<Vec<u8>>) -> Result<WebhookSecret> {
    let text = std::str::from_utf8(&opened).ok();
    let secret = text.and_then(|text| WebhookSecret::from_text(text).ok());
    secret.ok_or_else(|| {
        let error = Error::new(
            ErrorCode::VAULT_VALUE_DAMAGED,
            "this is no secret of a webhook",
        );
        Failure::from(error)
    })
}

/// What is noted of an attempt. Nobody to send it to is an end, and so is the last try.
fn attempt_end(sent: Option<SendOutcome>, tries: i32, chance: f64) -> AttemptEnd {
    let Some(sent) = sent else {
        return AttemptEnd {
            end: DeliveryEnd::Dropped,
            status: None,
            problem: Some("there is nobody any more whom this was for".to_owned()),
        };
    };
    let tries = u32::try_from(tries).unwrap_or_default();
    let end = match sent.verdict {
        SendVerdict::Delivered => DeliveryEnd::Delivered,
        SendVerdict::Refused | SendVerdict::Gone => DeliveryEnd::Dead,
        SendVerdict::Retry => match delay_before_next(tries, chance) {
            Some(after) => DeliveryEnd::Retry { after },
            None => DeliveryEnd::Dead,
        },
    };
    AttemptEnd {
        end,
        status: sent.status,
        problem: sent.problem,
    }
}

async fn next_look(wakeup: &Arc<Notify>, pause: Duration) {
    tokio::select! {
        () = wakeup.notified() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// What is being sent, and for whom.
#[derive(Default)]
struct SendingTasks {
    tasks: JoinSet<()>,
    /// Whose each is; a task that panicked is known by its id alone.
    turns: HashMap<tokio::task::Id, WorkTurn>,
    begun: usize,
}

impl SendingTasks {
    /// How many more of a tenant can be sent now.
    fn places(&self, turn: &WorkTurn) -> usize {
        let under_way = self.turns.values();
        let customers = under_way.filter(|other| other.customer == turn.customer);
        let (mut customer, mut own) = (0, 0);
        for other in customers {
            customer += 1;
            own += usize::from(other.tenant == turn.tenant);
        }
        PLACES
            .saturating_sub(self.tasks.len())
            .min(PLACES_PER_CUSTOMER.saturating_sub(customer))
            .min(PLACES_PER_TENANT.saturating_sub(own))
    }

    fn begin(&mut self, turn: &WorkTurn, work: impl Future<Output = ()> + Send + 'static) {
        self.begun += 1;
        let task = self.tasks.spawn(work);
        self.turns.insert(task.id(), *turn);
    }

    /// Ready when one ended; never while there is none.
    async fn one_ended(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(ended) => self.note(ended),
            None => std::future::pending().await,
        }
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.note(ended);
        }
    }

    fn note(&mut self, ended: std::result::Result<(tokio::task::Id, ()), tokio::task::JoinError>) {
        let task = match &ended {
            Ok((task, ())) => *task,
            Err(error) => {
                warn!(%error, "a delivery went wrong; it is sent again when its lease ends");
                error.id()
            }
        };
        self.turns.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use nimbus_control_delivery::MOST_TRIES;

    use super::*;

    #[test]
    fn a_tenant_has_some_of_the_places_and_never_all() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut sending = SendingTasks::default();
            let of = |customer: TenantId| WorkTurn {
                tenant: Uuid::new_v4().into(),
                customer,
            };
            let (greedy, other) = (Uuid::new_v4().into(), Uuid::new_v4().into());
            // A customer that makes tenants below its own has the places of one.
            let turns: Vec<WorkTurn> = (0..100).map(|_| of(greedy)).collect();
            for turn in &turns {
                for _ in 0..sending.places(turn) {
                    sending.begin(turn, async {});
                }
            }
            assert_eq!(sending.begun, PLACES_PER_CUSTOMER);
            assert_eq!(sending.places(&of(greedy)), 0);
            assert_eq!(sending.places(&of(other)), PLACES_PER_TENANT);
            let broken = of(other);
            sending.begin(&broken, async {
                panic!("as a task does that has a mistake")
            });
            sending.all_ended().await;
            assert_eq!(sending.places(&broken), PLACES_PER_TENANT);
            assert_eq!(sending.places(&turns[0]), PLACES_PER_TENANT);
        });
    }

    #[test]
    fn a_delivery_ends_with_its_last_try_or_where_it_will_never_work() {
        let failed = || Some(SendOutcome::unanswered(SendVerdict::Retry, "late"));
        let last = i32::try_from(MOST_TRIES).unwrap();
        let end = |sent, tries| attempt_end(sent, tries, 0.5).end;
        assert!(matches!(end(failed(), 1), DeliveryEnd::Retry { .. }));
        assert!(matches!(end(failed(), last - 1), DeliveryEnd::Retry { .. }));
        assert_eq!(end(failed(), last), DeliveryEnd::Dead);
        let refused = Some(SendOutcome::unanswered(
            SendVerdict::Refused,
            "no such address",
        ));
        assert_eq!(end(refused, 1), DeliveryEnd::Dead);
        assert_eq!(end(None, 1), DeliveryEnd::Dropped);
    }
}
