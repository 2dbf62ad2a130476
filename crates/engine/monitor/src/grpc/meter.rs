//! What a program that is not trusted makes the engine hold, counted and bounded.
//!
//! A sandbox bounds the memory of a program, but whatever the program sends is kept by the engine: a
//! message while it is read, an answer until it is taken, a resource until the run has ended. So every
//! request of such a program goes through a [`Meter`]. What is under way is bounded by bytes and by
//! number; and everything that was ever sent and answered adds up, because a small request can
//! leave something behind as well. Who goes over it is turned away and its deployment ends.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use nimbus_engine_proto::{Kind, Struct, Value};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::{Layer, Service};

use crate::confinement::RequestLimits;
use crate::error::MonitorError;

/// What the engine keeps of the smallest request: a resource, an event, a function to be called.
const LEAST: u64 = 4 << 10;
/// What a value takes when it is read, whatever it took on the wire.
const VALUE: u64 = 64;

/// Hears what was too much, once.
type ExcessListener = Box<dyn Fn(&MonitorError) + Send + Sync>;

/// Counts for one program.
pub(super) struct Meter {
    limits: RequestLimits,
    requests: AtomicUsize,
    under_way: AtomicU64,
    total: AtomicU64,
    told: AtomicBool,
    tell: ExcessListener,
}

impl Meter {
    pub(super) fn new(
        limits: RequestLimits,
        tell: impl Fn(&MonitorError) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            limits,
            requests: AtomicUsize::new(0),
            under_way: AtomicU64::new(0),
            total: AtomicU64::new(0),
            told: AtomicBool::new(false),
            tell: Box::new(tell),
        })
    }

    pub(super) fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    fn refuse(&self, error: MonitorError) -> Status {
        if !self.told.swap(true, Ordering::Relaxed) {
            (self.tell)(&error);
        }
        Status::resource_exhausted(error.to_string())
    }

    /// Counts what stays until the run has ended.
    fn keep(&self, bytes: u64) -> Result<(), Status> {
        let total = self.total.fetch_add(bytes, Ordering::Relaxed);
        if total.saturating_add(bytes) <= self.limits.total_bytes {
            return Ok(());
        }
        Err(self.refuse(MonitorError::RequestsTooMuch {
            mebibytes: self.limits.total_bytes >> 20,
        }))
    }
}

/// What one request makes the engine hold, until it is dropped.
pub(super) struct RequestShare {
    meter: Arc<Meter>,
    bytes: AtomicU64,
    counted: bool,
}

impl RequestShare {
    /// For a request of the program's.
    fn of_request(meter: &Arc<Meter>) -> Result<Arc<Self>, Status> {
        let share = Arc::new(Self {
            meter: Arc::clone(meter),
            bytes: AtomicU64::new(0),
            counted: true,
        });
        let before = meter.requests.fetch_add(1, Ordering::Relaxed);
        if before >= meter.limits.requests {
            let count = meter.limits.requests;
            return Err(meter.refuse(MonitorError::RequestsUnderWay { count }));
        }
        meter.keep(LEAST)?;
        Ok(share)
    }

    /// For an answer of the program's, to a request of ours.
    fn of_answer(meter: &Arc<Meter>) -> Arc<Self> {
        Arc::new(Self {
            meter: Arc::clone(meter),
            bytes: AtomicU64::new(0),
            counted: false,
        })
    }

    /// Counts bytes that are held until the request has ended.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), Status> {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let before = self.meter.under_way.fetch_add(bytes, Ordering::Relaxed);
        let most = self.meter.limits.under_way_bytes();
        if before.saturating_add(bytes) > most {
            let mebibytes = most >> 20;
            let error = MonitorError::RequestsTooLarge { mebibytes };
            return Err(self.meter.refuse(error));
        }
        self.meter.keep(bytes)
    }

    /// Counts values that were read.
    pub(super) fn hold_values(&self, values: Option<&Struct>) -> Result<(), Status> {
        self.hold(weight(values))
    }
}

impl Drop for RequestShare {
    fn drop(&mut self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.meter.under_way.fetch_sub(bytes, Ordering::Relaxed);
        if self.counted {
            self.meter.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What values take in memory beside their texts. How deep they are nested is bounded where they are read.
fn weight(values: Option<&Struct>) -> u64 {
    fn of(value: &Value) -> u64 {
        let inner = match &value.kind {
            Some(Kind::StructValue(fields)) => of_fields(fields),
            Some(Kind::ListValue(list)) => list.values.iter().map(of).sum(),
            Some(
                Kind::NullValue(_)
                | Kind::NumberValue(_)
                | Kind::StringValue(_)
                | Kind::BoolValue(_),
            )
            | None => 0,
        };
        VALUE + inner
    }
    fn of_fields(fields: &Struct) -> u64 {
        fields.fields.values().map(|value| VALUE + of(value)).sum()
    }
    values.map_or(0, of_fields)
}

/// Puts a meter in front of services; none for programs of one's own.
#[derive(Clone)]
pub(super) struct MeterLayer(pub(super) Option<Arc<Meter>>);

impl<S> Layer<S> for MeterLayer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered {
            inner,
            meter: self.0.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Metered<S> {
    inner: S,
    meter: Option<Arc<Meter>>,
}

type MeteredAnswer<E> = Pin<Box<dyn Future<Output = Result<http::Response<Body>, E>> + Send>>;

impl<S> Service<http::Request<Body>> for Metered<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = MeteredAnswer<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Some(meter) = &self.meter else {
            return Box::pin(self.inner.call(request));
        };
        let share = match RequestShare::of_request(meter) {
            Ok(share) => share,
            Err(status) => return Box::pin(async move { Ok(status.into_http()) }),
        };
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(Arc::clone(&share));
        let body = Body::new(MeteredBody::arriving(body, Arc::clone(&share)));
        let answer = self.inner.call(http::Request::from_parts(parts, body));
        Box::pin(async move {
            let answer = answer.await?;
            // A peer that does not take its answer keeps what it asked with, too.
            Ok(answer.map(|body| Body::new(MeteredBody::leaving(body, share))))
        })
    }
}

/// Connections to the program, whose answers count as its requests do.
#[derive(Clone)]
pub(super) struct MeteredChannel {
    pub(super) channel: Channel,
    pub(super) meter: Option<Arc<Meter>>,
}

impl MeteredChannel {
    /// Counts what came of an answer.
    pub(super) fn keep_values(&self, values: Option<&Struct>) -> Result<(), Status> {
        match &self.meter {
            Some(meter) => meter.keep(weight(values)),
            None => Ok(()),
        }
    }
}

impl Service<http::Request<Body>> for MeteredChannel {
    type Response = http::Response<Body>;
    type Error = tonic::transport::Error;
    type Future = MeteredAnswer<Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let answer = self.channel.call(request);
        let Some(meter) = self.meter.clone() else {
            return Box::pin(answer);
        };
        Box::pin(async move {
            let share = RequestShare::of_answer(&meter);
            let answer = answer.await?;
            Ok(answer.map(|body| Body::new(MeteredBody::arriving(body, share))))
        })
    }
}

/// A body that belongs to a request, and counts if it comes from the program.
struct MeteredBody {
    body: Body,
    share: Arc<RequestShare>,
    counts: bool,
}

impl MeteredBody {
    fn arriving(body: Body, share: Arc<RequestShare>) -> Self {
        let counts = true;
        Self {
            body,
            share,
            counts,
        }
    }

    fn leaving(body: Body, share: Arc<RequestShare>) -> Self {
        let counts = false;
        Self {
            body,
            share,
            counts,
        }
    }
}

impl http_body::Body for MeteredBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok());
        let arrived = data.and_then(Frame::data_ref).map_or(0, Bytes::len);
        if self.counts
            && arrived > 0
            && let Err(status) = self.share.hold(arrived as u64)
        {
            return Poll::Ready(Some(Err(status)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use nimbus_engine_proto::ListValue;
    use parking_lot::Mutex;

    use super::*;

    fn meter(requests: usize, total_bytes: u64) -> (Arc<Meter>, Arc<Mutex<Vec<MonitorError>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let limits = RequestLimits {
            requests,
            total_bytes,
            ..RequestLimits::default()
        };
        let meter = Meter::new(limits, move |error| heard.lock().push(error.clone()));
        (meter, told)
    }

    #[test]
    fn what_is_under_way_is_given_back_and_the_sum_is_not() {
        let (meter, told) = meter(2, 64 << 20);
        for _ in 0..16 {
            let share = RequestShare::of_request(&meter).expect("one at a time");
            share.hold(1 << 20).expect("less than may be under way");
        }
        assert_eq!(meter.under_way.load(Ordering::Relaxed), 0);
        assert_eq!(meter.requests.load(Ordering::Relaxed), 0);
        assert!(meter.total.load(Ordering::Relaxed) > 16 << 20);
        let share = RequestShare::of_request(&meter).expect("one at a time");
        let refused = share.hold(9 << 20).expect_err("more than an eighth");
        assert!(refused.message().contains("engine.sandbox_requests_mib"));
        assert_eq!(told.lock().len(), 1, "it is said once");
    }

    #[test]
    fn requests_are_counted_too() {
        let (meter, told) = meter(2, 1 << 30);
        let held: Vec<_> = (0..2).map(|_| RequestShare::of_request(&meter)).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(RequestShare::of_request(&meter).is_err());
        assert_eq!(
            told.lock()[..],
            [MonitorError::RequestsUnderWay { count: 2 }]
        );
        drop(held);
        assert!(RequestShare::of_request(&meter).is_ok());
    }

    #[test]
    fn small_requests_add_up() {
        let (meter, told) = meter(2, 1 << 20);
        let many = (0..).take_while(|_| RequestShare::of_request(&meter).is_ok());
        assert_eq!(many.count(), 256);
        assert_eq!(
            told.lock()[..],
            [MonitorError::RequestsTooMuch { mebibytes: 1 }]
        );
    }

    #[test]
    fn values_weigh_what_they_take_and_not_what_they_were_sent_as() {
        let nothing = Value { kind: None };
        let list = Value {
            kind: Some(Kind::ListValue(ListValue {
                values: vec![nothing; 1000],
            })),
        };
        let fields = Struct {
            fields: [("x".to_owned(), list)].into_iter().collect(),
        };
        assert!(weight(Some(&fields)) >= 1000 * VALUE);
        assert_eq!(weight(None), 0);
    }
}
