//! Programs drawn at random: resources with options and values of every kind, changed a little from one
//! version to the next. The programs `handed-on` and `python-handed-on` make what a plan says.

use std::env;

use serde_json::{Map, Value, json};

/// The seed of a test that draws: its usual one, or what `NIMBUS_PARITY_SEED` says.
#[allow(clippy::print_stdout, reason = "a failure shows what was drawn")]
pub(crate) fn seed(usual: u64) -> u64 {
    let asked = env::var("NIMBUS_PARITY_SEED").ok();
    let seed = asked.map_or(usual, |text| text.parse().expect("a seed is a number"));
    println!("NIMBUS_PARITY_SEED={seed}");
    seed
}

/// A sequence of numbers that follows from its seed on every machine.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The SplitMix64 step.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).expect("a count of a test is small");
        usize::try_from(self.next() % limit).expect("below a small limit")
    }

    pub(crate) fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

#[derive(Clone, Debug)]
struct Planned {
    name: String,
    kind: &'static str,
    inputs: Map<String, Value>,
    options: Map<String, Value>,
}

/// What a program makes, in the order in which it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    resources: Vec<Planned>,
    /// How many names were given; none is given twice.
    named: usize,
}

impl Plan {
    pub(crate) fn first(draws: &mut Draws) -> Self {
        let mut plan = Self::default();
        for _ in 0..8 {
            plan.add(draws);
        }
        plan
    }

    /// The next version: a few resources changed, added, renamed or gone.
    pub(crate) fn change(&mut self, draws: &mut Draws) {
        for _ in 0..2 + draws.below(3) {
            match draws.below(6) {
                0 => self.add(draws),
                1 => self.remove(draws),
                2 => self.rename(draws),
                3 => self.redraw(draws, true),
                _ => self.redraw(draws, false),
            }
        }
    }

    /// Nothing may stand against the end.
    pub(crate) fn release(&mut self) {
        for one in &mut self.resources {
            one.options.remove("protect");
        }
    }

    pub(crate) fn text(&self) -> String {
        let resources = self.resources.iter().map(|one| {
            json!({"name": one.name, "kind": one.kind, "inputs": one.inputs, "options": one.options})
        });
        let things = self.resources.iter().filter(|one| is_thing(one.kind));
        let outputs = things.map(|one| (one.name.clone(), output(&one.name, "shout")));
        json!({
            "resources": resources.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Map<_, _>>(),
        })
        .to_string()
    }

    /// The address of a resource that has no parent.
    pub(crate) fn some_urn(&self, draws: &mut Draws, project: &str) -> Option<String> {
        let free = self.resources.iter().filter(|one| {
            is_thing(one.kind)
                && !["parent", "provider"]
                    .iter()
                    .any(|key| one.options.contains_key(*key))
        });
        let free: Vec<_> = free.collect();
        let one = (!free.is_empty()).then(|| draws.pick(&free))?;
        Some(format!(
            "urn:pulumi:dev::{project}::parity:index:{}::{}",
            one.kind, one.name
        ))
    }

    fn add(&mut self, draws: &mut Draws) {
        self.named += 1;
        let kind = *draws.pick(&[
            "Thing", "Thing", "Thing", "Plain", "Blind", "Group", "Provider",
        ]);
        let name = format!("{}-{}", kind.to_lowercase(), self.named);
        let earlier = self.resources.len();
        let inputs = self.inputs(draws, kind, earlier);
        let options = self.options(draws, kind, earlier);
        self.resources.push(Planned {
            name,
            kind,
            inputs,
            options,
        });
    }

    fn redraw(&mut self, draws: &mut Draws, with_options: bool) {
        let index = draws.below(self.resources.len());
        let Some(kind) = self.resources.get(index).map(|one| one.kind) else {
            return;
        };
        let inputs = self.inputs(draws, kind, index);
        let options = self.options(draws, kind, index);
        let one = &mut self.resources[index];
        // A provider that becomes another one, or another parent, makes everything below it anew.
        let keeps =
            ["parent", "provider", "protect"].map(|key| (key, one.options.get(key).cloned()));
        if is_thing(kind) || draws.happens(30) {
            one.inputs = inputs;
        }
        if with_options {
            one.options = options;
            for (key, value) in keeps {
                one.options.remove(key);
                one.options
                    .extend(value.map(|value| (key.to_owned(), value)));
            }
        }
    }

    /// Takes out one that nothing else names; a protected one stays.
    fn remove(&mut self, draws: &mut Draws) {
        let index = draws.below(self.resources.len());
        let Some(one) = self.resources.get(index) else {
            return;
        };
        let quoted = format!("\"{}\"", one.name);
        let others = self.resources.iter().filter(|other| other.name != one.name);
        let is_named = |other: &Planned| {
            let texts = [
                Value::from(other.inputs.clone()),
                Value::from(other.options.clone()),
            ];
            texts.iter().any(|text| text.to_string().contains(&quoted))
        };
        if !one.options.contains_key("protect") && !others.into_iter().any(is_named) {
            self.resources.remove(index);
        }
    }

    /// Gives another name and the old one as an alias.
    fn rename(&mut self, draws: &mut Draws) {
        let index = draws.below(self.resources.len());
        let Some(one) = self
            .resources
            .get(index)
            .filter(|one| is_thing(one.kind))
            .cloned()
        else {
            return;
        };
        self.named += 1;
        let name = format!("{}-{}", one.kind.to_lowercase(), self.named);
        let (from, to) = (format!("\"{}\"", one.name), format!("\"{name}\""));
        for other in &mut self.resources {
            for part in [&mut other.inputs, &mut other.options] {
                let text = Value::from(std::mem::take(part))
                    .to_string()
                    .replace(&from, &to);
                *part = serde_json::from_str(&text).expect("a name stands for a name");
            }
        }
        let renamed = &mut self.resources[index];
        renamed.name = name;
        renamed
            .options
            .insert("aliases".to_owned(), json!([one.name]));
    }

    fn inputs(&self, draws: &mut Draws, kind: &str, earlier: usize) -> Map<String, Value> {
        let mut inputs = Map::new();
        let mut put = |key: &str, value: Value| inputs.insert(key.to_owned(), value);
        match kind {
            "Group" => return inputs,
            "Provider" => {
                put("prefix", json!(draws.pick(&["n", "s", "w"])));
                return inputs;
            }
            _ => {}
        }
        put("label", self.word(draws, earlier));
        put("size", json!(draws.below(4)));
        if draws.happens(40) {
            put("kind", json!(draws.pick(&["wood", "stone", "glass"])));
        }
        if draws.happens(30) {
            put(
                "tags",
                json!({"a": self.word(draws, earlier), "b c": "x", "d.e": "y"}),
            );
        }
        if draws.happens(30) {
            put("items", json!([self.word(draws, earlier), "y"]));
        }
        if draws.happens(20) {
            put("exclusive", json!(true));
        }
        if draws.happens(30) {
            let deep = json!({"list": [null, {"deep": self.word(draws, earlier)}, []], "n": 1.5, "": false});
            put(
                "extra",
                if draws.happens(30) {
                    json!({"$": "secret", "of": deep})
                } else {
                    deep
                },
            );
        }
        if draws.happens(15) {
            put(
                "source",
                json!({"$": draws.pick(&["text", "files"]), "of": draws.pick(&["one", "two"])}),
            );
        }
        inputs
    }

    /// A text, perhaps secret, perhaps what another resource turned out to be.
    fn word(&self, draws: &mut Draws, earlier: usize) -> Value {
        let text = *draws.pick(&["alpha", "beta", "ünï", ""]);
        let from = self.named_before(draws, earlier, is_thing);
        match (draws.below(4), from) {
            (0, Some(name)) => output(&name, draws.pick::<&str>(&["shout", "arn", "id", "label"])),
            (1, _) => json!({"$": "secret", "of": text}),
            _ => json!(text),
        }
    }

    fn named_before(
        &self,
        draws: &mut Draws,
        earlier: usize,
        of: fn(&str) -> bool,
    ) -> Option<String> {
        let names = self.resources[..earlier].iter().filter(|one| of(one.kind));
        let names: Vec<_> = names.map(|one| one.name.clone()).collect();
        (!names.is_empty()).then(|| draws.pick(&names).clone())
    }

    fn options(&self, draws: &mut Draws, kind: &str, earlier: usize) -> Map<String, Value> {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        if draws.happens(25)
            && let Some(name) = self.named_before(draws, earlier, |kind| kind == "Group")
        {
            put("parent", json!(name));
        }
        if draws.happens(30)
            && let Some(name) = self.named_before(draws, earlier, |kind| kind != "Provider")
        {
            put("dependsOn", json!([name]));
        }
        if draws.happens(10) {
            put("protect", json!(true));
        }
        if !is_thing(kind) {
            return options;
        }
        if draws.happens(20)
            && let Some(name) = self.named_before(draws, earlier, |kind| kind == "Provider")
        {
            put("provider", json!(name));
        }
        for (percent, key, value) in [
            (10, "retainOnDelete", json!(true)),
            (15, "deleteBeforeReplace", json!(draws.happens(70))),
            (
                15,
                "ignoreChanges",
                json!(draws.pick(&[&["label"][..], &["tags.a", "size"], &["extra"]])),
            ),
            (
                15,
                "replaceOnChanges",
                json!(draws.pick(&[&["size"][..], &["label", "tags"], &["*"]])),
            ),
            (
                15,
                "hideDiffs",
                json!(draws.pick(&[&["label"][..], &["tags[\"b c\"]", "extra.list[1].deep"]])),
            ),
            (
                15,
                "additionalSecretOutputs",
                json!(draws.pick(&[&["shout"][..], &["arn", "serial"]])),
            ),
            (
                15,
                "customTimeouts",
                json!(draws.pick(&[
                    json!({"create": "5m"}),
                    json!({"update": "90s", "delete": "1h"})
                ])),
            ),
            (15, "replacementTrigger", self.word(draws, 0)),
        ] {
            if draws.happens(percent) {
                put(key, value);
            }
        }
        for (percent, key) in [(10, "replaceWith"), (10, "deletedWith")] {
            let other = self.named_before(draws, earlier, is_thing);
            if let Some(name) = other.filter(|_| draws.happens(percent)) {
                put(
                    key,
                    if key == "replaceWith" {
                        json!([name])
                    } else {
                        json!(name)
                    },
                );
            }
        }
        options
    }
}

fn is_thing(kind: &str) -> bool {
    matches!(kind, "Thing" | "Plain" | "Blind")
}

fn output(of: &str, name: &str) -> Value {
    json!({"$": "output", "of": of, "name": name})
}
