//! What the simulated cloud is told to do: from a file, from flags, or both.

use std::path::PathBuf;

use nimbus_core::Result;
use nimbus_document::Document;
use nimbus_local::rehearsal_orders;
use nimbus_rehearsal::{FaultOrders, Latencies};
use nimbus_runs::{NamedText, RehearsalChoice};

use crate::context::CommandContext;

/// The name under which the shipped latencies are asked for.
const EXAMPLE: &str = "example";

#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct OrderArgs {
    /// Orders for the rehearsal: what fails, what is slow
    #[arg(long, value_name = "FILE", requires = "rehearse")]
    orders: Option<PathBuf>,

    /// One more order, as in the file: 'on: create, nth: 2, do: fail'; may be repeated
    #[arg(long, value_name = "ORDER", requires = "rehearse")]
    order: Vec<String>,

    /// How long each call to the simulated cloud takes, unless orders say otherwise
    #[arg(long, value_name = "SECONDS", requires = "rehearse", value_parser = seconds)]
    latency: Option<f64>,

    /// How long calls take, by type; `example` for a shipped file to begin with
    #[arg(long, value_name = "FILE", requires = "rehearse")]
    latencies: Option<PathBuf>,

    /// How much of the time that calls take is waited: 0 for none of it
    #[arg(long, value_name = "FACTOR", requires = "rehearse", value_parser = factor)]
    time_scale: Option<f64>,

    /// Draws other latencies; the same number draws the same ones
    #[arg(long, value_name = "N", requires = "rehearse")]
    seed: Option<u64>,
}

impl OrderArgs {
    pub(crate) fn read(&self, context: &CommandContext) -> Result<FaultOrders> {
        rehearsal_orders(&self.choice(context)?)
    }

    /// What is said here, as a request keeps it.
    pub(crate) fn choice(&self, context: &CommandContext) -> Result<RehearsalChoice> {
        let text = |file: &PathBuf| -> Result<NamedText> {
            let document = Document::read(&context.directory.join(file))?;
            Ok(NamedText {
                name: document.name().to_owned(),
                text: document.text().to_owned(),
            })
        };
        let latencies = |file: &PathBuf| {
            if file.as_os_str() == EXAMPLE {
                return Ok(NamedText {
                    name: "the example".to_owned(),
                    text: Latencies::example_text().to_owned(),
                });
            }
            text(file)
        };
        Ok(RehearsalChoice {
            orders: self.orders.as_ref().map(text).transpose()?,
            more_orders: self.order.clone(),
            latencies: self.latencies.as_ref().map(latencies).transpose()?,
            latency: self.latency,
            time_scale: self.time_scale,
            seed: self.seed,
            faults_over: false,
        })
    }
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if seconds.is_finite() && seconds >= 0.0 {
        Ok(seconds)
    } else {
        Err("a time is zero or more".to_owned())
    }
}

fn factor(text: &str) -> std::result::Result<f64, String> {
    let factor = text.parse().ok();
    let factor = factor.filter(|factor| (0.0..=Latencies::LARGEST_SCALE).contains(factor));
    factor.ok_or_else(|| "a factor is from 0, for no waiting, to 1000".to_owned())
}
