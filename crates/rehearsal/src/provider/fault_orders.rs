//! Orders come first: how long a call takes, and what goes wrong with it.

use std::time::Duration;

use nimbus_engine_model::Urn;
use nimbus_engine_ports::{FailureCause, ProviderError};

use super::calls::refused;
use super::{RehearsalProvider, SharedRehearsal};
use crate::forecast::{Timing, What};
use crate::orders::{CloudCall, OrderedEffect};

/// So often a provider tries again when there are too many requests.
const MOST_RETRIES: u32 = 25;
/// And so long it waits at most before it does.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// Who asks for what.
#[derive(Clone, Copy)]
pub(super) struct ProviderCall<'a> {
    pub(super) call: CloudCall,
    pub(super) urn: Option<&'a Urn>,
    pub(super) type_: &'a str,
    pub(super) name: &'a str,
    /// The engine has a record of the object.
    pub(super) recorded: bool,
}

impl ProviderCall<'_> {
    fn urn_text(&self) -> &str {
        self.urn.map(Urn::as_str).unwrap_or_default()
    }
}

impl RehearsalProvider {
    /// Waits as long as the call takes and carries out what orders say. `Ok(Some(…))` is for the
    /// caller to act on.
    pub(super) async fn obey(
        &self,
        asked: &ProviderCall<'_>,
    ) -> Result<Option<OrderedEffect>, ProviderError> {
        let mut timing = Timing::begin();
        let order = self.take_time(asked, &mut timing).await;
        let what = What {
            urn: asked.urn_text(),
            type_: asked.type_,
            name: asked.name,
            call: asked.call,
            recorded: asked.recorded,
        };
        timing.end(what, &self.observer);
        order
    }

    async fn take_time(
        &self,
        asked: &ProviderCall<'_>,
        timing: &mut Timing,
    ) -> Result<Option<OrderedEffect>, ProviderError> {
        let SharedRehearsal { orders, .. } = self.shared.as_ref();
        let order = orders.action(asked.call, asked.type_, asked.name);
        let takes = orders
            .latencies
            .of(asked.call, asked.type_, asked.urn_text());
        self.pass(takes, timing).await;
        match order {
            Some(OrderedEffect::Fail { message }) => Err(ProviderError::Failed {
                // As with a real cloud: its codes say the cause, its sentences do not.
                cause: FailureCause::of_provider_text(&message),
                message: format!("rehearsal: {message}"),
            }),
            Some(OrderedEffect::Stall(time)) => {
                self.pass(time, timing).await;
                Ok(None)
            }
            Some(OrderedEffect::Throttle { times }) => self.retry(asked, times, timing).await,
            other => Ok(other),
        }
    }

    /// Lets simulated time pass.
    async fn pass(&self, time: Duration, timing: &mut Timing) {
        let wait = self.shared.orders.latencies.scaled(time);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        timing.pass(time, wait);
    }

    /// What providers do when a cloud says that there are too many requests: they wait, longer
    /// each time, and in the end give up.
    async fn retry(
        &self,
        asked: &ProviderCall<'_>,
        times: u32,
        timing: &mut Timing,
    ) -> Result<Option<OrderedEffect>, ProviderError> {
        let mut waited = Duration::ZERO;
        for attempt in 0..times.min(MOST_RETRIES) {
            let pause = LONGEST_PAUSE.min(Duration::from_secs(1) * 2_u32.pow(attempt.min(10)));
            self.pass(pause, timing).await;
            waited += pause;
        }
        if times > MOST_RETRIES {
            let message = format!("ThrottlingException: Rate exceeded, {MOST_RETRIES} times");
            return Err(refused(message));
        }
        let message = format!(
            "rehearsal: ThrottlingException: Rate exceeded; {} {} went through after {times} more \
             attempts in {} s",
            asked.call.word(),
            asked.name,
            waited.as_secs(),
        );
        self.observer.warn(asked.urn, message);
        Ok(None)
    }
}
