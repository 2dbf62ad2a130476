//! What a simulated cloud is told, from the texts that a request keeps.

use nimbus_core::Result;
use nimbus_document::Document;
use nimbus_rehearsal::{FaultOrders, Latencies};
use nimbus_runs::RehearsalChoice;

/// The orders that a request asks for.
///
/// # Errors
///
/// When a text is none of orders or latencies.
pub fn rehearsal_orders(choice: &RehearsalChoice) -> Result<FaultOrders> {
    let mut orders = match &choice.orders {
        Some(file) => FaultOrders::from_document(&Document::parse(&file.name, &file.text)?)?,
        None => FaultOrders::default(),
    };
    for order in &choice.more_orders {
        orders.add(order)?;
    }
    if let Some(file) = &choice.latencies {
        orders.latencies = orders
            .latencies
            .or(Latencies::parse(&file.name, &file.text)?);
    }
    if let Some(seconds) = choice.latency {
        orders.latencies.or_seconds(seconds);
    }
    if let Some(factor) = choice.time_scale {
        orders.latencies.scale = Some(factor);
    }
    if let Some(seed) = choice.seed {
        orders.latencies.seed = Some(seed);
    }
    Ok(if choice.faults_over {
        orders.without_faults()
    } else {
        orders
    })
}
