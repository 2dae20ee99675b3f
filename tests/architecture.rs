//! Checks of what ARCHITECTURE.md and CONTRIBUTING.md state about the source.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The place of each crate in the layers: its line from above, and its place in the line.
fn layers() -> HashMap<String, (usize, usize)> {
    let text = read("ARCHITECTURE.md");
    let block = text.split("```layers\n").nth(1).unwrap();
    let lines = block.split("```").next().unwrap().lines().enumerate();
    lines
        .flat_map(|(line, names)| {
            let names = names.split_whitespace().enumerate();
            names.map(move |(place, name)| (name.to_owned(), (line, place)))
        })
        .collect()
}

/// The crates of this workspace that a crate depends on, without those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let section = manifest
        .split("\n[dependencies]\n")
        .nth(1)
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
    names
        .filter(|name| root().join("crates").join(name).is_dir())
        .collect()
}

#[test]
fn dependencies_go_down_only() {
    let layers = layers();
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut wrong = Vec::new();
    for entry in crates {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Tests only.
        if name == "skip" {
            continue;
        }
        let Some(place) = layers.get(&name) else {
            wrong.push(format!("{name} stands in no layer of ARCHITECTURE.md"));
            continue;
        };
        for below in dependencies(&name) {
            if below != "skip" && layers.get(&below).is_none_or(|of_below| of_below <= place) {
                wrong.push(format!(
                    "{name} depends on {below}, which does not stand below it"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path in backquotes that begins with `crates/`, and names after it that are in the same folder.
#[test]
fn what_contributing_points_to_is_there() {
    let text = read("CONTRIBUTING.md");
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.starts_with("crates/"))
        .collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<&&str> = named
        .iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Sources of a crate, without its tests: the path of modules that each file is, and its code.
fn sources(name: &str) -> Vec<(Vec<String>, String)> {
    let src = root().join("crates").join(name).join("src");
    let mut files = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let module = |path: &Path| -> Vec<String> {
        let relative = path.strip_prefix(&src).unwrap().with_extension("");
        let parts = relative
            .iter()
            .map(|part| part.to_str().unwrap().to_owned());
        let mut parts: Vec<String> = parts.collect();
        if matches!(parts.last().unwrap().as_str(), "mod" | "lib" | "main") {
            parts.pop();
        }
        parts
    };
    let mut test_modules: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut sources = Vec::new();
    for path in &files {
        let own = module(path);
        let (code, of_tests) = without_tests(&fs::read_to_string(path).unwrap());
        test_modules.extend(
            of_tests
                .into_iter()
                .map(|name| [&own[..], &[name]].concat()),
        );
        sources.push((own, code));
    }
    sources.retain(|(own, _)| !test_modules.iter().any(|test| own.starts_with(test)));
    sources
}

/// The code of a file without comments and without what is compiled for tests alone, and the names of
/// modules in files of their own that are.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut code, mut test_modules, mut at) = (String::new(), Vec::new(), 0);
    while at < lines.len() {
        let line = lines[at];
        if line.trim() != "#[cfg(test)]" {
            code.push_str(line.split("//").next().unwrap());
            code.push('\n');
            at += 1;
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        at += 1;
        while lines[at].trim().starts_with("#[") {
            at += 1;
        }
        let words: Vec<&str> = lines[at].split([' ', ';']).collect();
        if let Some(place) = words.iter().position(|word| *word == "mod") {
            test_modules.push(words[place + 1].to_owned());
        }
        // To the end of the item, which rustfmt puts where it began.
        let is_end = |line: &str| {
            line.starts_with(indent)
                && !line[indent.len()..].starts_with(' ')
                && line.ends_with(['}', ';'])
        };
        while !is_end(lines[at]) {
            at += 1;
        }
        at += 1;
    }
    (code, test_modules)
}

/// The first names of a path, behind its `crate::` or `super::`: several where it continues with a list.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let word = text.trim_start().chars();
        word.take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(list) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut depth, mut names, mut begin) = (0, Vec::new(), 0);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[begin..at]));
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The places in code behind each of these words, where it is a whole word.
fn behind<'a>(code: &'a str, word: &str) -> Vec<&'a str> {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.match_indices(word)
        .filter(|(at, _)| !code[..*at].ends_with(is_of_path))
        .map(|(at, _)| &code[at + word.len()..])
        .collect()
}

/// The modules at the top of a crate that each of them uses. The root of the crate is `lib`; what it only hands
/// on from a module is that module's.
fn uses(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sources = sources(name);
    let tops: BTreeSet<&str> = sources
        .iter()
        .filter_map(|(own, _)| Some(own.first()?.as_str()))
        .collect();
    let mut handed_on: HashMap<String, &str> = HashMap::new();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, code) in sources.iter().filter(|(own, _)| own.is_empty()) {
        let mut rest = code.clone();
        for visibility in ["pub use ", "pub(crate) use "] {
            for statement in behind(code, visibility) {
                let statement = statement.split(';').next().unwrap();
                let Some((top, names)) = statement.split_once("::") else {
                    continue;
                };
                if let Some(top) = tops.get(top) {
                    handed_on.extend(first_names(names).into_iter().map(|name| (name, *top)));
                }
                rest = rest.replace(&format!("{visibility}{statement};"), "");
            }
        }
        let used = tops
            .iter()
            .filter(|top| !behind(&rest, &format!("{top}::")).is_empty());
        uses.entry("lib".to_owned())
            .or_default()
            .extend(used.map(|top| (*top).to_owned()));
    }
    for (own, code) in sources.iter().filter(|(own, _)| !own.is_empty()) {
        let to_root = "super::".repeat(own.len());
        let paths = [behind(code, "crate::"), behind(code, &to_root)].concat();
        for used in paths.into_iter().flat_map(first_names) {
            let used = match tops.get(used.as_str()) {
                Some(top) => top,
                None if used == "super" => continue,
                None => handed_on.get(&used).copied().unwrap_or("lib"),
            };
            if used != own[0] {
                uses.entry(own[0].clone())
                    .or_default()
                    .insert(used.to_owned());
            }
        }
    }
    uses
}

/// The cycles among these: each is all modules that use each other, directly or through others.
fn cycles(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(one) = next.pop() {
            let used = uses.get(one).into_iter().flatten();
            next.extend(used.filter(|used| reached.insert((*used).clone())));
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        uses.keys().map(|one| (one, reached(one))).collect();
    let on_cycle = reach
        .iter()
        .filter(|(one, reached)| reached.contains(**one));
    on_cycle
        .map(|(one, reached)| {
            let mates = reached
                .iter()
                .filter(|mate| reach.get(mate).is_some_and(|back| back.contains(*one)));
            mates.cloned().collect()
        })
        .collect()
}

#[test]
fn modules_of_a_crate_use_each_other_one_way() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let cycles = cycles(&uses(&name));
        wrong.extend(
            cycles
                .iter()
                .map(|cycle| format!("{name}: {} use each other", cycle.join(", "))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_cycle_is_seen_and_what_only_tests_use_is_none() {
    let of = |pairs: &[(&str, &str)]| {
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in pairs {
            uses.entry((*user).to_owned())
                .or_default()
                .insert((*used).to_owned());
        }
        cycles(&uses)
    };
    assert!(of(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    let found = of(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]);
    assert_eq!(
        found,
        BTreeSet::from([vec!["b".to_owned(), "c".to_owned()]])
    );
    let text = "use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n#[cfg(test)]\nmod sample;\nfn c() {}\n";
    let (code, tests) = without_tests(text);
    assert_eq!(code, "use crate::a;\nfn c() {}\n");
    assert_eq!(tests, ["tests", "sample"]);
    assert_eq!(first_names("{a::{b, c}, d}"), ["a", "d"]);
    assert_eq!(first_names("a::b;"), ["a"]);
}
