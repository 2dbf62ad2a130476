//! Requests that may come twice: an idempotency key makes the second one have the answer of the first.
//!
//! A deployment and a run keep their answer in the transaction that makes them. For everything else the key is taken
//! before the request is carried out and its answer is kept afterwards: a server that dies in between leaves a key that
//! is refused, so that nothing happens twice. Requests are remembered by a code that only the server can make, for
//! passwords are in some of them.

use nimbus_control_auth::operation::Operation;
use nimbus_control_store::TenantTx;
use nimbus_core::{Error, ErrorCode};
use serde_json::{Value, json};

use crate::app::App;
use crate::call::Call;
use crate::failure::{Failure, Result};

/// A request that may come twice.
#[derive(Clone, Debug)]
pub struct RequestKey {
    pub key: String,
    /// Everything that was asked.
    pub request: Value,
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptAnswer {
    pub status: u16,
    /// None for an answer with a secret in it, which is given once.
    pub body: Option<Value>,
}

impl App {
    fn request_code(&self, operation: Operation, key: &RequestKey) -> Vec<u8> {
        let text = format!("{}\n{}", operation.id, key.request);
        self.server_keys().active().request_code(text.as_bytes())
    }

    /// What was answered to the same request before.
    pub(crate) async fn answered(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        operation: Operation,
        key: Option<&RequestKey>,
    ) -> Result<Option<Value>> {
        let Some(key) = key else {
            return Ok(None);
        };
        match tx.answer_find(call.who.user, &key.key).await? {
            Some(earlier) if earlier.request == self.request_code(operation, key) => {
                Ok(Some(earlier.answer))
            }
            Some(_) => Err(Error::new(
                ErrorCode::REQUEST_KEY_REUSED,
                "the idempotency key came with another request before",
            )
            .with_help("use a new key for each request")
            .into()),
            None => Ok(None),
        }
    }

    pub(crate) async fn keep_answer(
        &self,
        tx: &mut TenantTx,
        call: &Call,
        operation: Operation,
        key: Option<&RequestKey>,
        answer: &Value,
    ) -> Result<()> {
        if let Some(key) = key {
            let code = self.request_code(operation, key);
            tx.answer_keep(call.who.user, &key.key, &code, answer)
                .await?;
        }
        Ok(())
    }

    /// Takes a key for a request that is about to be carried out. Its answer, if it was carried out before.
    pub async fn request_begin(
        &self,
        call: &Call,
        operation: Operation,
        key: &RequestKey,
    ) -> Result<Option<KeptAnswer>> {
        let earlier = self.inner.store.tenant_tx(call.who.home, async |tx| {
            let earlier = self.answered(tx, call, operation, Some(key)).await?;
            if earlier.is_none() {
                self.keep_answer(tx, call, operation, Some(key), &under_way())
                    .await?;
            }
            Ok::<_, Failure>(earlier)
        });
        let Some(earlier) = earlier.await? else {
            return Ok(None);
        };
        if earlier == under_way() {
            let message =
                "a request with this idempotency key is under way, or its answer was lost";
            return Err(Error::new(ErrorCode::REQUEST_UNDER_WAY, message)
                .with_help("look whether it was done; use a new key if it was not")
                .into());
        }
        let status = earlier["status"]
            .as_u64()
            .and_then(|status| status.try_into().ok());
        Ok(Some(KeptAnswer {
            status: status.unwrap_or(200),
            body: earlier.get("body").cloned(),
        }))
    }

    /// Keeps the answer to a request that was carried out, or gives its key back if it was not.
    pub async fn request_end(
        &self,
        call: &Call,
        key: &RequestKey,
        answer: Option<KeptAnswer>,
    ) -> Result<()> {
        let user = call.who.user;
        let ended = self.inner.store.tenant_tx(call.who.home, async |tx| {
            let Some(answer) = answer else {
                return tx.answer_forget(user, &key.key).await;
            };
            let mut kept = json!({"status": answer.status});
            if let Some(body) = answer.body {
                kept["body"] = body;
            }
            tx.answer_replace(user, &key.key, &kept).await
        });
        Ok(ended.await?)
    }
}

/// Stands for an answer that is not there yet.
fn under_way() -> Value {
    json!({"under_way": true})
}
