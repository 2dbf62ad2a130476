//! `nimbus graph`: which stack needs which, as text, Mermaid, DOT or SVG.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use nimbus_core::{ComponentName, EnvironmentName, Error, ErrorCode, Result};
use nimbus_orchestrator::UnitGraph;
use schemars::JsonSchema;
use serde::Serialize;

use super::{environment, workspace};
use crate::commands::admin::ServerArgs;
use crate::context::CommandContext;
use crate::exit::CommandOutcome;
use crate::output::Report;
use crate::style::{Terminal, TextStyle};

#[derive(clap::Args, Debug)]
pub(crate) struct GraphArgs {
    /// Deployment
    #[arg(value_name = "DEPLOYMENT-ID")]
    pub(crate) id: String,
    /// Environment, for placeholders may differ between environments; default is the manifest's first
    #[arg(long, short, value_parser = environment)]
    pub(crate) environment: Option<EnvironmentName>,
    /// Form of the picture
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub(crate) format: Form,
    #[command(flatten)]
    pub(crate) remote: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    Text,
    Mermaid,
    Dot,
    Svg,
}

pub(crate) async fn run(args: GraphArgs, context: &CommandContext) -> Result<CommandOutcome> {
    let configured = workspace(context)?.configured(&args.id)?;
    let manifest = configured.manifest;
    let first = manifest.environments.keys().next().copied();
    let environment = args.environment.or(first).ok_or_else(|| {
        Error::new(ErrorCode::GRAPH_INVALID, "the manifest has no environment")
            .with_help("name one in spec.environments, or say which with --environment")
    })?;
    let graph = manifest
        .graph(environment)
        .map_err(|error| Error::new(ErrorCode::GRAPH_INVALID, format!("ERROR: {error}")))?;
    match args.format {
        Form::Text => context.output.result(&GraphReport::new(&graph))?,
        Form::Mermaid => context.output.raw(&mermaid(&graph))?,
        Form::Dot => context.output.raw(&dot(&graph))?,
        Form::Svg => context.output.raw(&svg(&graph))?,
    }
    Ok(CommandOutcome::Done)
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct GraphReport {
    layers: Vec<Vec<GraphNodeReport>>,
}

#[derive(JsonSchema, Serialize)]
struct GraphNodeReport {
    name: String,
    priority: i64,
    needs: Vec<String>,
}

impl GraphReport {
    fn new(graph: &UnitGraph) -> Self {
        let unit = |name: &&ComponentName| GraphNodeReport {
            name: name.to_string(),
            priority: graph.priority(name).unwrap_or_default(),
            needs: graph.needs(name).map(ToString::to_string).collect(),
        };
        Self {
            layers: graph
                .layers()
                .iter()
                .map(|layer| layer.iter().map(unit).collect())
                .collect(),
        }
    }
}

impl Report for GraphReport {
    const SCHEMA: &'static str = "nimbus/graph/1";

    fn text(&self, terminal: Terminal) -> String {
        let mut text = String::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let heading = terminal.paint(TextStyle::Heading, &format!("Layer {}", at + 1));
            let _ = writeln!(text, "{heading}");
            for GraphNodeReport { name, needs, .. } in layer {
                let needs = if needs.is_empty() {
                    String::new()
                } else {
                    terminal.paint(TextStyle::Faint, &format!("  ← {}", needs.join(", ")))
                };
                let _ = writeln!(text, "  {name}{needs}");
            }
        }
        text
    }
}

fn mermaid(graph: &UnitGraph) -> String {
    // Ids of our own: a name such as `end` or `style` means something to Mermaid.
    let ids: BTreeMap<&ComponentName, String> = graph
        .names()
        .enumerate()
        .map(|(at, name)| (name, format!("n{}", at + 1)))
        .collect();
    let id = |name: &ComponentName| ids.get(name).map_or("", String::as_str);
    let mut text = String::from("graph TD\n");
    for name in graph.names() {
        let _ = writeln!(text, "  {}[\"{name}\"]", id(name));
        for need in graph.needs(name) {
            let _ = writeln!(text, "  {} --> {}", id(need), id(name));
        }
    }
    text
}

fn dot(graph: &UnitGraph) -> String {
    let mut text = String::from("digraph deployment {\n  rankdir=TB;\n  node [shape=box];\n");
    for name in graph.names() {
        let _ = writeln!(text, "  \"{name}\";");
        for need in graph.needs(name) {
            let _ = writeln!(text, "  \"{need}\" -> \"{name}\";");
        }
    }
    text + "}\n"
}

/// Width at least, and height.
const BOX: (usize, usize) = (150, 36);
const GAP: (usize, usize) = (24, 60);
/// Of a letter and of both margins, wide enough for every usual font.
const LETTER: (usize, usize) = (8, 20);

/// One row of boxes for each layer, arrows from what is needed to what needs it.
fn svg(graph: &UnitGraph) -> String {
    let layers = graph.layers();
    let longest = graph.names().map(|name| name.len()).max().unwrap_or(0);
    let box_width = BOX.0.max(longest * LETTER.0 + LETTER.1);
    let widest = layers.iter().map(Vec::len).max().unwrap_or(0);
    let (step_x, step_y) = (box_width + GAP.0, BOX.1 + GAP.1);
    let (width, height) = (widest * step_x + GAP.0, layers.len() * step_y + GAP.0);
    let place = |name: &str| {
        let (row, column, count) = layers.iter().enumerate().find_map(|(row, layer)| {
            layer
                .iter()
                .position(|n| *n == name)
                .map(|column| (row, column, layer.len()))
        })?;
        let left = GAP.0 + (widest - count) * step_x / 2;
        Some((left + column * step_x, GAP.0 + row * step_y))
    };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" \
         refX=\"10\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path d=\"M 0 0 L 10 5 L 0 10 z\" fill=\"#999\"/></marker></defs>\n"
    );
    for name in graph.names() {
        for need in graph.needs(name) {
            let (Some((x1, y1)), Some((x2, y2))) = (place(need), place(name)) else {
                continue;
            };
            let _ = writeln!(
                text,
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{y2}\" stroke=\"#999\" \
                 marker-end=\"url(#arrow)\"/>",
                x1 + box_width / 2,
                y1 + BOX.1,
                x2 + box_width / 2
            );
        }
    }
    for name in graph.names() {
        let Some((x, y)) = place(name) else { continue };
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#eef4ff\" \
             stroke=\"#4472c4\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
            box_width,
            BOX.1,
            x + box_width / 2,
            y + BOX.1 / 2 + 5
        );
    }
    text + "</svg>\n"
}
