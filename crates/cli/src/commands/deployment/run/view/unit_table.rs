//! The picture of a run at one moment, as lines of text. No clock and no terminal in here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nimbus_core::ComponentName;
use nimbus_orchestrator::{ResourceStatus, RunEvent, RunStatus, UnitGraph};
use textwrap::core::display_width;

use super::RunTitle;
use super::lines::{changes_text, mark};
use crate::style::{Terminal, TextStyle};

/// Running steps of one unit that are shown at most.
const STEPS_SHOWN: usize = 3;
/// More units than this that are skipped are one line.
const SKIPPED_SHOWN: usize = 4;

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
            // A rehearsal takes another time than the cloud, and nothing is said where nothing is known.
            RunEvent::Plan { minutes, .. } => {
                self.minutes =
                    Some(*minutes).filter(|minutes| *minutes > 0 && !self.subject.rehearsal);
            }
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
        let is_skipped = |unit: &&UnitRow| unit.status == "skipped";
        let skipped = self.units.iter().filter(is_skipped).count();
        let together = skipped > SKIPPED_SHOWN;
        for unit in self
            .units
            .iter()
            .filter(|unit| !together || !is_skipped(unit))
        {
            self.unit_lines(unit, now, &mut body);
        }
        if together {
            let text = format!("· {skipped} stacks skipped, nothing changed");
            body.push((false, text, TextStyle::Faint));
        }
        if body.len() > room {
            let all = body.len();
            body.retain(|(active, ..)| *active);
            body.truncate(room.saturating_sub(1));
            let hidden = all - body.len();
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
            format!(", about {} left", clock(left))
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
            // Why is below, where there is room for it.
            "failed" => "failed".to_owned(),
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

/// The text in so many columns, of which some letters take two.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        kept.push(letter);
        if display_width(&kept) >= width {
            kept.pop();
            break;
        }
    }
    // Between two words, unless that leaves nothing to read.
    let end = kept.rfind(' ').filter(|end| *end > width / 2);
    let kept = &kept[..end.unwrap_or(kept.len())];
    format!("{}…", kept.trim_end())
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
    fn sixty_four_units_fit_on_a_screen_of_eighty_columns() {
        let unit = |at: usize| GraphUnit {
            name: format!("service-number-{at:02}").parse().unwrap(),
            priority: 0,
            needs: BTreeSet::new(),
        };
        let graph = UnitGraph::new((0..64).map(unit)).unwrap();
        let subject = RunTitle {
            title: "Deploying D1 dev".to_owned(),
            doing: "deploying",
            rehearsal: false,
        };
        let mut picture = UnitTable::new(subject, &graph);
        for at in 0..64 {
            let name = format!("service-number-{at:02}").parse().unwrap();
            let state = match at {
                0..=3 => UnitState::Running,
                4 => UnitState::NotStarted {
                    because: "the cloud says no, and it takes many more words for it than fit"
                        .to_owned(),
                },
                _ => UnitState::Skipped,
            };
            picture.apply(&RunEvent::unit("t".to_owned(), &name, &state), seconds(1));
        }
        let shown = picture.lines(80, 24, seconds(2), PLAIN);
        assert_eq!(shown.len(), 1 + 5 + 1, "{shown:#?}");
        assert!(
            shown.iter().all(|line| line.chars().count() <= 80),
            "{shown:#?}"
        );
        assert!(shown[5].ends_with("takes many…"), "{shown:#?}");
        assert_eq!(shown[6], "· 59 stacks skipped, nothing changed");
    }

    #[test]
    fn letters_that_take_two_columns_are_counted_as_two() {
        assert_eq!(cut("環境名", 6), "環境名");
        assert_eq!(cut("環境名", 5), "環境…");
        assert_eq!(cut("環境名", 4), "環…");
        assert_eq!(cut("a stack that is new", 12), "a stack…");
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
