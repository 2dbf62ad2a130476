//! The picture of a run at one moment, as lines of text. No clock and no terminal in here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{ResourceStatus, RunEvent, RunStatus, UnitGraph};

use super::RunTitle;
use super::lines::{changes_text, mark};
use crate::style::{Terminal, TextStyle};

/// Running steps of one unit that are shown at most.
const STEPS_SHOWN: usize = 3;

pub(super) struct UnitTable {
    subject: RunTitle,
    units: Vec<UnitRow>,
    places: BTreeMap<ComponentName, usize>,
    phase: &'static str,
    minutes: Option<u64>,
}

struct UnitRow {
    name: ComponentName,
    needs: BTreeSet<ComponentName>,
    status: String,
    text: String,
    since: Duration,
    took: Option<Duration>,
    /// What is under way: resource and since when.
    steps: BTreeMap<String, (String, Duration)>,
    done: usize,
}

impl UnitRow {
    fn new(name: ComponentName, needs: BTreeSet<ComponentName>) -> Self {
        Self {
            name,
            needs,
            status: "waiting".to_owned(),
            text: String::new(),
            since: Duration::ZERO,
            took: None,
            steps: BTreeMap::new(),
            done: 0,
        }
    }
}

impl UnitTable {
    pub(super) fn new(subject: RunTitle, graph: &UnitGraph) -> Self {
        let names = graph.layers().into_iter().flatten();
        let units: Vec<UnitRow> = names
            .map(|name| UnitRow::new(name.to_owned(), graph.needs(name).cloned().collect()))
            .collect();
        let places = units.iter().enumerate();
        let places = places.map(|(at, unit)| (unit.name.clone(), at)).collect();
        Self {
            phase: subject.doing,
            subject,
            units,
            places,
            minutes: None,
        }
    }

    pub(super) fn apply(&mut self, event: &RunEvent, now: Duration) {
        match event {
            RunEvent::Plan { minutes, .. } => self.minutes = Some(*minutes),
            RunEvent::Run {
                status: RunStatus::Undoing,
                ..
            } => self.phase = "rolling back",
            RunEvent::Unit {
                unit,
                status,
                message,
                changes,
                ..
            } => {
                let shown = self.shown(unit);
                if matches!(status.as_str(), "running" | "rolling_back") {
                    shown.since = now;
                    shown.took = None;
                } else if shown.status != "waiting" {
                    shown.took = Some(now.saturating_sub(shown.since));
                    shown.steps.clear();
                }
                shown.text = match status.as_str() {
                    "succeeded" => changes_text(changes),
                    _ => message.clone().unwrap_or_default(),
                };
                shown.status.clone_from(status);
            }
            RunEvent::Resource {
                unit,
                status,
                op,
                type_,
                name,
                urn,
                ..
            } => {
                let shown = self.shown(unit);
                match status {
                    ResourceStatus::Started => {
                        let kind = type_.rsplit(':').next().unwrap_or_default();
                        let text = format!("{op} {kind} {name}");
                        shown.steps.insert(urn.clone(), (text, now));
                    }
                    ResourceStatus::Planned => shown.done += 1,
                    ResourceStatus::Done | ResourceStatus::Failed => {
                        shown.steps.remove(urn);
                        shown.done += 1;
                    }
                }
            }
            RunEvent::Check { .. } => self.phase = "checking",
            RunEvent::Run { .. } | RunEvent::Diagnostic { .. } => {}
        }
    }

    /// Its row; a unit that no graph told of has one from now on.
    fn shown(&mut self, unit: &ComponentName) -> &mut UnitRow {
        let place = match self.places.get(unit) {
            Some(place) => *place,
            None => {
                self.units.push(UnitRow::new(unit.clone(), BTreeSet::new()));
                let last = self.units.len() - 1;
                self.places.insert(unit.clone(), last);
                last
            }
        };
        &mut self.units[place]
    }

    /// Lines for a screen of this size. What does not fit is counted instead.
    pub(super) fn lines(
        &self,
        width: usize,
        height: usize,
        now: Duration,
        terminal: Terminal,
    ) -> Vec<String> {
        let room = height.saturating_sub(3).max(1);
        let mut body: Vec<(bool, String, TextStyle)> = Vec::new();
        for unit in &self.units {
            self.unit_lines(unit, now, &mut body);
        }
        if body.len() > room {
            let hidden = body.iter().filter(|(active, ..)| !active).count();
            body.retain(|(active, ..)| *active);
            body.truncate(room.saturating_sub(1));
            body.push((true, format!("  … and {hidden} more"), TextStyle::Faint));
        }
        let mut lines = vec![terminal.paint(TextStyle::Heading, &cut(&self.header(now), width))];
        for (_, text, tone) in body {
            lines.push(terminal.paint(tone, &cut(&text, width)));
        }
        lines
    }

    fn header(&self, now: Duration) -> String {
        let rehearsal = if self.subject.rehearsal {
            "REHEARSAL "
        } else {
            ""
        };
        let over = |unit: &&UnitRow| !matches!(unit.status.as_str(), "waiting" | "running");
        let done = self.units.iter().filter(over).count();
        let left = self.minutes.map(|minutes| {
            let left = Duration::from_secs(minutes * 60).saturating_sub(now);
            format!(", at most {} left", clock(left))
        });
        format!(
            "{rehearsal}{} — {} {} — {done} of {} stacks{}",
            self.subject.title,
            self.phase,
            clock(now),
            self.units.len(),
            left.unwrap_or_default()
        )
    }

    fn unit_lines(&self, unit: &UnitRow, now: Duration, out: &mut Vec<(bool, String, TextStyle)>) {
        let (mark, tone) = mark(&unit.status);
        let active = matches!(unit.status.as_str(), "running" | "rolling_back" | "failed");
        let time = match unit.took {
            Some(took) => clock(took),
            None if active => clock(now.saturating_sub(unit.since)),
            None => String::new(),
        };
        let text = match unit.status.as_str() {
            "waiting" => {
                let open = unit.needs.iter().filter(|need| !self.is_done(need));
                let open: Vec<&str> = open.map(|need| need.as_str()).collect();
                match open.is_empty() {
                    true => "ready, waiting for a free place".to_owned(),
                    false => format!("waiting for {}", open.join(", ")),
                }
            }
            "running" => format!("{}, {} resources done", self.subject.doing, unit.done),
            "skipped" => "skipped, nothing changed".to_owned(),
            "rolling_back" => "rolling back".to_owned(),
            "rolled_back" => "rolled back".to_owned(),
            "not_started" => format!("not started: {}", unit.text),
            _ => unit.text.lines().next().unwrap_or_default().to_owned(),
        };
        out.push((
            active,
            format!("{mark} {:<18} {time:>6}  {text}", unit.name),
            tone,
        ));
        for (step, since) in unit.steps.values().take(STEPS_SHOWN) {
            let time = clock(now.saturating_sub(*since));
            out.push((true, format!("    {time:>6}  {step}"), TextStyle::Faint));
        }
    }

    fn is_done(&self, name: &str) -> bool {
        let status = self
            .places
            .get(name)
            .map(|&at| self.units[at].status.as_str());
        matches!(status, Some("succeeded" | "skipped") | None)
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// `1:05` or `12s`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{seconds}s")
    } else {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use nimbus_orchestrator::GraphUnit;
    use nimbus_orchestrator::UnitState;

    use super::*;

    const PLAIN: Terminal = Terminal {
        interactive: true,
        color: false,
    };

    fn picture() -> UnitTable {
        let unit = |name: &str, needs: &[&str]| GraphUnit {
            name: name.parse().unwrap(),
            priority: 0,
            needs: needs.iter().map(|need| need.parse().unwrap()).collect(),
        };
        let graph = UnitGraph::new([
            unit("network", &[]),
            unit("dns", &[]),
            unit("security", &["network"]),
        ])
        .unwrap();
        let subject = RunTitle {
            title: "Deploying D1 dev".to_owned(),
            doing: "deploying",
            rehearsal: true,
        };
        UnitTable::new(subject, &graph)
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn everything_is_on_one_screen_with_what_waits_for_what() {
        let mut picture = picture();
        let at = || "t".to_owned();
        for name in ["network", "dns"] {
            let name = name.parse().unwrap();
            picture.apply(
                &RunEvent::unit(at(), &name, &UnitState::Running),
                seconds(0),
            );
        }
        picture.apply(
            &RunEvent::unit(at(), &"dns".parse().unwrap(), &UnitState::Skipped),
            seconds(1),
        );
        let step = RunEvent::Resource {
            at: at(),
            unit: "network".parse().unwrap(),
            status: ResourceStatus::Started,
            op: "create".to_owned(),
            type_: "aws:ec2/vpc:Vpc".to_owned(),
            name: "main".to_owned(),
            urn: "urn:1".to_owned(),
            id: None,
            seconds: None,
            properties: Vec::new(),
        };
        picture.apply(&step, seconds(2));
        let shown = picture.lines(80, 24, seconds(65), PLAIN).join("\n");
        insta::assert_snapshot!(shown, @r"
        REHEARSAL Deploying D1 dev — deploying 1:05 — 1 of 3 stacks
        · dns                    1s  skipped, nothing changed
        → network              1:05  deploying, 0 resources done
              1:03  create Vpc main
        · security                   waiting for network
        ");
    }

    #[test]
    fn a_small_screen_shows_what_is_active() {
        let mut picture = picture();
        let running = RunEvent::unit(
            "t".to_owned(),
            &"network".parse().unwrap(),
            &UnitState::Running,
        );
        picture.apply(&running, seconds(0));
        let shown = picture.lines(30, 5, seconds(1), PLAIN);
        assert!(shown.len() <= 4, "{shown:#?}");
        assert!(shown.iter().all(|line| line.chars().count() <= 30));
        assert!(shown[1].contains("network"), "{shown:#?}");
        assert!(shown[2].contains("more"), "{shown:#?}");
    }
}
