//! The tree of resources: who belongs to whom, and what happens to each.

use std::time::Duration;

use indexmap::IndexMap;
use nimbus_engine_model::{StepOp, Urn};

use crate::line::{StyledLine, Tone};
use crate::ops;
use crate::state::{DisplayState, ResourceRow, RowPhase};
use crate::text::{clean_name, duration};

/// Steps shorter than this do not show their time.
const WORTH_TELLING: Duration = Duration::from_secs(1);
const MIN_INFO_WIDTH: usize = 16;
const GAP: &str = "  ";

/// The lines of the tree, at most `width` columns wide and `height` rows high.
pub(crate) fn tree_lines(
    state: &DisplayState,
    width: usize,
    height: Option<usize>,
    now: Duration,
) -> Vec<StyledLine> {
    let cells = cells(state, now);
    let shown = match height {
        Some(height) => fitting(cells, height.max(2) - 1),
        None => VisibleRow { cells, hidden: 0 },
    };
    let widths = Widths::of(&shown.cells, width);
    let mut lines = vec![widths.heading().truncated(width)];
    lines.extend(
        shown
            .cells
            .iter()
            .map(|cell| widths.row(cell).truncated(width)),
    );
    if shown.hidden > 0 {
        let more = StyledLine::of(Tone::Dim, format!("    … {} more", shown.hidden));
        lines.push(more.truncated(width));
    }
    lines
}

struct Cell {
    mark: StyledLine,
    /// Branches and type.
    resource: StyledLine,
    name: StyledLine,
    status: StyledLine,
    info: StyledLine,
    urgency: Urgency,
}

/// Which rows stay when not all fit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Settled,
    Running,
    Failed,
    Root,
}

fn cells(state: &DisplayState, now: Duration) -> Vec<Cell> {
    let children = children(state);
    let mut cells = vec![root_cell(state, now)];
    branch(state, &children, &state.root, "", now, &mut cells);
    cells
}

/// Interesting rows and their ancestors, by parent. A row whose parent is not known hangs under
/// the stack.
fn children(state: &DisplayState) -> IndexMap<&Urn, Vec<&Urn>> {
    let mut wanted: IndexMap<&Urn, ()> = IndexMap::new();
    for (urn, row) in &state.rows {
        let mut next = row.is_interesting().then_some(urn);
        while let Some(urn) = next {
            if *urn == state.root || wanted.insert(urn, ()).is_some() {
                break;
            }
            next = parent_of(state, urn);
        }
    }
    let mut children: IndexMap<&Urn, Vec<&Urn>> = IndexMap::new();
    for urn in state.rows.keys().filter(|urn| wanted.contains_key(urn)) {
        let parent = parent_of(state, urn).unwrap_or(&state.root);
        children.entry(parent).or_default().push(urn);
    }
    children
}

fn parent_of<'a>(state: &'a DisplayState, urn: &Urn) -> Option<&'a Urn> {
    let parent = state.rows.get(urn)?.parent.as_ref()?;
    state.rows.get_key_value(parent).map(|(urn, _)| urn)
}

fn branch(
    state: &DisplayState,
    children: &IndexMap<&Urn, Vec<&Urn>>,
    parent: &Urn,
    prefix: &str,
    now: Duration,
    cells: &mut Vec<Cell>,
) {
    let Some(own) = children.get(parent) else {
        return;
    };
    for (position, urn) in own.iter().enumerate() {
        let last = position + 1 == own.len();
        let joint = if last { "└─ " } else { "├─ " };
        cells.push(row_cell(
            &state.rows[*urn],
            &format!("{prefix}{joint}"),
            now,
        ));
        let below = if last { "   " } else { "│  " };
        branch(
            state,
            children,
            urn,
            &format!("{prefix}{below}"),
            now,
            cells,
        );
    }
}

fn root_cell(state: &DisplayState, now: Duration) -> Cell {
    match state.rows.get(&state.root) {
        Some(row) => Cell {
            urgency: Urgency::Root,
            ..row_cell(row, "", now)
        },
        None => Cell {
            mark: StyledLine::of(Tone::Plain, "  "),
            resource: StyledLine::of(Tone::Plain, clean_name(state.root.type_())),
            name: StyledLine::of(Tone::Plain, clean_name(state.root.name())),
            status: StyledLine::new(),
            info: StyledLine::new(),
            urgency: Urgency::Root,
        },
    }
}

fn row_cell(row: &ResourceRow, prefix: &str, now: Duration) -> Cell {
    let op = row.settled_op();
    Cell {
        mark: StyledLine::of(ops::tone(op), ops::symbol(op)),
        resource: StyledLine::of(Tone::Dim, prefix).with(Tone::Plain, clean_name(&row.type_)),
        name: StyledLine::of(Tone::Plain, clean_name(&row.name)),
        status: status(row, now),
        info: info(row),
        urgency: match row.phase {
            RowPhase::Running { .. } => Urgency::Running,
            RowPhase::Failed { .. } => Urgency::Failed,
            RowPhase::Done { .. } => Urgency::Settled,
        },
    }
}

/// What happens, in words, with its time.
pub(crate) fn status(row: &ResourceRow, now: Duration) -> StyledLine {
    let op = row.settled_op();
    let timed = |words: &str| {
        let elapsed = row.elapsed(now);
        if elapsed >= WORTH_TELLING && !row.planning {
            format!("{words} ({})", duration(elapsed))
        } else {
            words.to_owned()
        }
    };
    match row.phase {
        RowPhase::Failed { .. } => {
            StyledLine::of(Tone::Error, timed(&format!("{} failed", ops::doing(op))))
        }
        RowPhase::Running { .. } | RowPhase::Done { .. } if row.planning => match op {
            StepOp::Same => StyledLine::new(),
            op => StyledLine::of(ops::tone(op), ops::planned(op)),
        },
        RowPhase::Running { .. } => StyledLine::of(ops::tone(op), timed(ops::doing(op))),
        RowPhase::Done { .. } if op == StepOp::Same => StyledLine::new(),
        RowPhase::Done { .. } => StyledLine::of(ops::tone(op), timed(ops::done(op))),
    }
}

fn info(row: &ResourceRow) -> StyledLine {
    let mut line = StyledLine::new();
    let mut add = |tone: Tone, text: String| {
        if !line.is_empty() {
            line.push(Tone::Plain, "; ");
        }
        line.push(tone, text);
    };
    let counted = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    if row.messages.errors > 0 {
        add(Tone::Error, counted(row.messages.errors, "error"));
    }
    if row.messages.warnings > 0 {
        add(Tone::Warning, counted(row.messages.warnings, "warning"));
    }
    if row.messages.infos > 0 {
        add(Tone::Info, counted(row.messages.infos, "message"));
    }
    if !row.changed_keys.is_empty() && row.settled_op() != StepOp::Same {
        if !line.is_empty() {
            line.push(Tone::Plain, "; ");
        }
        line.push(Tone::Plain, "[diff: ");
        line.append(row.changed_keys.clone());
        line.push(Tone::Plain, "]");
    }
    if let (RowPhase::Running { .. }, Some(progress)) = (row.phase, &row.progress) {
        if !line.is_empty() {
            line.push(Tone::Plain, "; ");
        }
        line.push(Tone::Dim, progress.clone());
    }
    line
}

struct VisibleRow {
    cells: Vec<Cell>,
    hidden: usize,
}

/// The most urgent rows, newest first among equals, in the order of the tree.
fn fitting(cells: Vec<Cell>, height: usize) -> VisibleRow {
    if cells.len() <= height {
        return VisibleRow { cells, hidden: 0 };
    }
    let room = height.saturating_sub(1).max(1);
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse((cells[*index].urgency, *index)));
    let mut kept = vec![false; cells.len()];
    for index in order.into_iter().take(room) {
        kept[index] = true;
    }
    let hidden = cells.len() - room;
    let cells = cells
        .into_iter()
        .zip(kept)
        .filter_map(|(cell, kept)| kept.then_some(cell))
        .collect();
    VisibleRow { cells, hidden }
}

struct Widths {
    resource: usize,
    name: usize,
    status: usize,
}

impl Widths {
    fn of(cells: &[Cell], width: usize) -> Self {
        let max = |heading: &str, column: fn(&Cell) -> &StyledLine| {
            cells
                .iter()
                .map(|cell| column(cell).width())
                .max()
                .unwrap_or(0)
                .max(heading.len())
        };
        let mut widths = Self {
            resource: max("Type", |cell| &cell.resource),
            name: max("Name", |cell| &cell.name),
            status: max("Status", |cell| &cell.status),
        };
        // The type gives way first: its end says least when the tree is deep.
        let fixed = 4 + 3 * GAP.len() + MIN_INFO_WIDTH;
        let room = width.saturating_sub(fixed + widths.name + widths.status);
        widths.resource = widths.resource.min(room.max(12));
        widths
    }

    fn heading(&self) -> StyledLine {
        let mut line = StyledLine::of(Tone::Heading, "    Type");
        line.pad_to(4 + self.resource);
        line.push(Tone::Heading, format!("{GAP}Name"));
        line.pad_to(4 + self.resource + GAP.len() + self.name);
        line.push(Tone::Heading, format!("{GAP}Status"));
        line.pad_to(4 + self.resource + self.name + self.status + 2 * GAP.len());
        line.push(Tone::Heading, format!("{GAP}Info"));
        line
    }

    fn row(&self, cell: &Cell) -> StyledLine {
        let mut line = StyledLine::of(Tone::Plain, " ");
        line.append(cell.mark.clone());
        line.push(Tone::Plain, " ");
        line.append(cell.resource.truncated(self.resource));
        line.pad_to(4 + self.resource);
        line.push(Tone::Plain, GAP);
        line.append(cell.name.clone());
        line.pad_to(4 + self.resource + GAP.len() + self.name);
        line.push(Tone::Plain, GAP);
        line.append(cell.status.clone());
        line.pad_to(4 + self.resource + self.name + self.status + 2 * GAP.len());
        line.push(Tone::Plain, GAP);
        line.append(cell.info.clone());
        line.trimmed()
    }
}
