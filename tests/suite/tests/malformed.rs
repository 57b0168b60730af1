//! Configurations with random mistakes: whatever they say, a run ends, with one sentence if it
//! failed, without a panic, and leaves nothing.

use std::path::Path;

use pipkin_tests::bundle::ENGINES;
use pipkin_tests::{Bundle, Runtime, Scratch, Snapshot};
use serde_json::{Value, json};

/// Runs per engine; each takes a few milliseconds.
const RUNS: u64 = 250;

/// Numbers that look random and are the same each time: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    fn of<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[self.below(values.len())]
    }
}

fn strange() -> Vec<Value> {
    vec![
        Value::Null,
        json!(0),
        json!(-1),
        json!(1u64 << 31),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("/"),
        json!(".."),
        json!("a\0b"),
        json!("é".repeat(300)),
        json!("A".repeat(70_000)),
        json!([]),
        json!({}),
        json!([null]),
        json!([[[]]]),
        json!({ "a": 1 }),
        json!(true),
        json!(vec!["x"; 2000]),
    ]
}

/// The JSON pointers of every value below one.
fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    let names: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        _ => return,
    };
    for (name, value) in names {
        let below = format!("{at}/{name}");
        all.push(below.clone());
        pointers(value, &below, all);
    }
}

fn change(config: &mut Value, random: &mut Random) -> String {
    let mut all = Vec::new();
    pointers(config, "", &mut all);
    let pointer = random.of(&all).clone();
    let (above, name) = pointer.rsplit_once('/').expect("a pointer");
    let new = random.of(&strange()).clone();
    let place = config.pointer_mut(above).expect("a value");
    match (place, random.below(5)) {
        (Value::Object(map), 0) => drop(map.remove(&name.replace("~1", "/").replace("~0", "~"))),
        (Value::Array(list), 0) => drop(list.remove(name.parse().expect("an index"))),
        (Value::Array(list), 1) => list.push(list[list.len() - 1].clone()),
        _ => *config.pointer_mut(&pointer).expect("a value") = new,
    }
    pointer
}

#[test]
fn nothing_in_a_configuration_breaks_a_run() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for engine in ENGINES {
        let mut bundle = Bundle::new(&scratch, engine, &["/bin/true"]);
        // Fewer rules, so that more of the changes hit something else.
        let rules = bundle.config["linux"]["seccomp"]["syscalls"].clone();
        let rules: Vec<Value> = rules
            .as_array()
            .expect("rules")
            .iter()
            .take(3)
            .cloned()
            .collect();
        bundle.set(
            "/linux/seccomp",
            json!({ "defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules }),
        );
        bundle.write();
        let id = scratch.unique();
        let words = ["run", "-b", bundle.path(), &id];
        runtime.command(&scratch, &words).ok();
        let before = Snapshot::take(&scratch);
        let sound = bundle.config.clone();
        for _ in 0..RUNS {
            let mut config = sound.clone();
            let mut changed = vec![change(&mut config, &mut random)];
            if random.below(3) == 0 {
                changed.push(change(&mut config, &mut random));
            }
            // Another group's place would not be found by the leak check.
            config["linux"]
                .as_object_mut()
                .map(|linux| linux.insert("cgroupsPath".into(), json!(bundle.cgroup)));
            write(&bundle.dir().join("config.json"), &config);
            let words = ["run", "-b", bundle.path(), &id];
            let finished = runtime.command(&scratch, &words).finish();
            let text = &finished.stderr;
            assert!(!text.contains("panicked"), "{changed:?}: {finished}");
            let code = finished.status.code();
            if code == Some(1) {
                assert!(text.starts_with("pipkin: run "), "{changed:?}: {finished}");
            }
        }
        before.assert_unchanged(&scratch, &format!("{RUNS} malformed runs of {engine}"));
    }
}

/// A filter that forbids execve and even exit_group: the init program must end all the same,
/// and say in time that it did.
#[test]
fn a_filter_that_forbids_all_ends_the_start() {
    let (scratch, runtime) = (Scratch::new(), Runtime::pipkin());
    let mut bundle = Bundle::new(&scratch, "podman", &["/bin/true"]);
    bundle.set(
        "/linux/seccomp",
        json!({ "defaultAction": "SCMP_ACT_ERRNO", "syscalls": [] }),
    );
    bundle.write();
    let id = scratch.unique();
    let words = ["run", "-b", bundle.path(), &id];
    let finished = runtime.command(&scratch, &words).fails();
    finished.says(&["seccomp"]);
}

fn write(file: &Path, config: &Value) {
    let text = serde_json::to_vec(config).expect("JSON");
    std::fs::write(file, text).expect("write config.json");
}
