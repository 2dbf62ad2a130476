//! A case as data: a program in numbered versions, and what is done with it, one step after another.

use std::borrow::Cow;

/// What a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    TypeScript,
    Python,
}

/// A program and the steps it goes through on both engines.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Folder under `programs`, and the name of the project.
    pub(crate) program: &'static str,
    pub(crate) language: Language,
    /// Lines of `Pulumi.<stack>.yaml` below `config:`.
    pub(crate) config: &'static [&'static str],
    pub(crate) steps: Vec<Step>,
    /// Whether the program has only one possible order, so that the engines must keep it.
    pub(crate) ordered: bool,
    /// The folder of the program inside the project, where that is not the project's own.
    pub(crate) main: Option<&'static str>,
    /// Versions of the test provider that are installed besides 1.0.0.
    pub(crate) provider_versions: &'static [&'static str],
    /// Tags of the stack.
    pub(crate) tags: &'static [(&'static str, &'static str)],
    /// The program whose policy packs this one is judged by, where it has none of its own.
    pub(crate) packs_of: Option<&'static str>,
    /// A plugin as it is shipped, by name and version, that the program needs.
    pub(crate) plugin: Option<(&'static str, &'static str)>,
    /// Whether what the official engine did is kept: not of what is drawn at random, or of a plugin
    /// that is there only with the official engine.
    pub(crate) records: bool,
    /// The first minor version of the official 3.x that behaves so. With an older one the recording
    /// stands in for it.
    pub(crate) official_since: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) operation: Operation,
    /// Which version of the program is in place.
    pub(crate) version: u32,
    pub(crate) stack: &'static str,
    pub(crate) flags: Vec<String>,
    /// Whether Nimbus is told that many objects may be gone at once; the official engine never asks.
    pub(crate) loses_many: bool,
    /// What happens outside of any engine before the step.
    pub(crate) before: Vec<Disturbance>,
    pub(crate) end: End,
    /// Whether there must be nothing to do.
    pub(crate) unchanged: bool,
    /// Whether the engines change places before this step and go on with each other's state.
    pub(crate) swap: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Preview,
    Up,
    Refresh,
    Destroy,
    Import,
}

impl Operation {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::Up => "up",
            Self::Refresh => "refresh",
            Self::Destroy => "destroy",
            Self::Import => "import",
        }
    }
}

/// How a step must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Succeeds,
    Fails,
}

/// A change to the world that no engine made, or to a file of the program.
#[derive(Clone, Debug)]
pub(crate) enum Disturbance {
    /// Writes a file of the world.
    World(&'static str, Text),
    /// Removes a file of the world.
    Gone(&'static str),
    /// Writes a file beside the program.
    Program(&'static str, Text),
}

/// Most texts are written in a case, some are generated.
pub(crate) type Text = Cow<'static, str>;

/// Writes a file of the world before a step.
pub(crate) fn world(name: &'static str, text: impl Into<Text>) -> Disturbance {
    Disturbance::World(name, text.into())
}

/// Writes a file beside the program before a step.
pub(crate) fn program(name: &'static str, text: impl Into<Text>) -> Disturbance {
    Disturbance::Program(name, text.into())
}

pub(crate) fn typescript(program: &'static str, steps: Vec<Step>) -> Case {
    Case {
        program,
        language: Language::TypeScript,
        config: &[],
        steps,
        ordered: false,
        main: None,
        provider_versions: &[],
        tags: &[],
        packs_of: None,
        plugin: None,
        records: true,
        official_since: 0,
    }
}

pub(crate) fn python(program: &'static str, steps: Vec<Step>) -> Case {
    Case {
        language: Language::Python,
        ..typescript(program, steps)
    }
}

impl Case {
    pub(crate) fn config(mut self, lines: &'static [&'static str]) -> Self {
        self.config = lines;
        self
    }

    pub(crate) fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    pub(crate) fn in_folder(mut self, main: &'static str) -> Self {
        self.main = Some(main);
        self
    }

    pub(crate) fn provider_versions(mut self, versions: &'static [&'static str]) -> Self {
        self.provider_versions = versions;
        self
    }

    pub(crate) fn tags(mut self, tags: &'static [(&'static str, &'static str)]) -> Self {
        self.tags = tags;
        self
    }

    pub(crate) fn packs_of(mut self, program: &'static str) -> Self {
        self.packs_of = Some(program);
        self
    }

    pub(crate) fn unrecorded(mut self) -> Self {
        self.records = false;
        self
    }

    pub(crate) fn official_since(mut self, minor: u32) -> Self {
        self.official_since = minor;
        self
    }

    pub(crate) fn needs_plugin(mut self, name: &'static str, version: &'static str) -> Self {
        self.plugin = Some((name, version));
        self
    }
}

pub(crate) fn preview(version: u32) -> Step {
    step(Operation::Preview, version)
}

pub(crate) fn up(version: u32) -> Step {
    step(Operation::Up, version)
}

pub(crate) fn refresh(version: u32) -> Step {
    step(Operation::Refresh, version)
}

pub(crate) fn destroy(version: u32) -> Step {
    step(Operation::Destroy, version)
}

pub(crate) fn import(version: u32) -> Step {
    step(Operation::Import, version)
}

/// The end of most cases: each engine takes over the other's state, finds nothing to do, and then
/// deletes everything.
pub(crate) fn handover(version: u32) -> [Step; 2] {
    [up(version).swapped().unchanged(), destroy(version)]
}

fn step(operation: Operation, version: u32) -> Step {
    Step {
        operation,
        version,
        stack: "dev",
        flags: Vec::new(),
        loses_many: false,
        before: Vec::new(),
        end: End::Succeeds,
        unchanged: false,
        swap: false,
    }
}

impl Step {
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags
            .extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub(crate) fn stack(mut self, stack: &'static str) -> Self {
        self.stack = stack;
        self
    }

    pub(crate) fn after(mut self, disturbance: Disturbance) -> Self {
        self.before.push(disturbance);
        self
    }

    pub(crate) fn fails(mut self) -> Self {
        self.end = End::Fails;
        self
    }

    pub(crate) fn loses_many(mut self) -> Self {
        self.loses_many = true;
        self
    }

    /// Nothing but `same`.
    pub(crate) fn unchanged(mut self) -> Self {
        self.unchanged = true;
        self
    }

    pub(crate) fn swapped(mut self) -> Self {
        self.swap = true;
        self
    }

    pub(crate) fn runs_program(&self) -> bool {
        matches!(self.operation, Operation::Preview | Operation::Up)
    }

    /// How the step is called in messages and recordings.
    pub(crate) fn title(&self, number: usize) -> String {
        let mut title = format!(
            "{number:02} {} version {}",
            self.operation.verb(),
            self.version
        );
        for flag in &self.flags {
            title.push(' ');
            title.push_str(flag);
        }
        if self.stack != "dev" {
            title.push_str(&format!(" (stack {})", self.stack));
        }
        if self.swap {
            title.push_str(", engines swapped");
        }
        title
    }
}
