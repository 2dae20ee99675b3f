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

/// The crates of this workspace that a crate depends on, without those of its tests. A line is `name = …` or
/// `name.workspace = true`.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let section = manifest
        .split("\n[dependencies]\n")
        .nth(1)
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| Some(line.split_once([' ', '.', '='])?.0.to_owned()));
    names
        .filter(|name| !name.is_empty() && root().join("crates").join(name).is_dir())
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

#[test]
fn dependencies_are_read_in_both_forms() {
    for (name, below) in [("page", "ui"), ("linux", "record")] {
        let dependencies = dependencies(name);
        assert!(
            dependencies.contains(&below.to_owned()),
            "{name}: {dependencies:?}"
        );
    }
}

/// `autotests` is off in the crate, so cargo runs only the tests that its manifest names.
#[test]
fn each_test_of_the_whole_program_is_in_the_manifest() {
    let manifest = read("crates/disksmith/Cargo.toml");
    let mut missing = Vec::new();
    for entry in fs::read_dir(root().join("tests")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let path = format!("path = \"../../tests/{file}\"");
        if file.ends_with(".rs") && !manifest.lines().any(|line| line == path) {
            missing.push(file);
        }
    }
    assert!(missing.is_empty(), "without a [[test]]: {missing:?}");
}

/// Paths in backquotes that begin with a folder of the repository.
#[test]
fn what_contributing_points_to_is_there() {
    let text = read("CONTRIBUTING.md");
    let folders = [
        "bench/",
        "crates/",
        "docs/",
        "fuzz/",
        "packaging/",
        "tests/",
    ];
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| folders.iter().any(|folder| word.starts_with(folder)) && !word.contains('*'))
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

/// A path of names, such as `crate::a::b`.
type Names = Vec<String>;

/// The paths in code: those that end a list in braces each as one of its own.
fn paths(code: &str) -> Vec<Names> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < code.len() {
        let rest = &code[at..];
        let length = match rest.starts_with(char::is_alphabetic) || rest.starts_with('_') {
            true => path(rest, &Vec::new(), &mut found),
            false => rest.chars().next().map_or(1, char::len_utf8),
        };
        at += length;
    }
    found
}

/// Takes a path at the start of a text, below another; its length.
fn path(text: &str, above: &Names, found: &mut Vec<Names>) -> usize {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    let own = [&above[..], &[text[..end].to_owned()]].concat();
    let Some(rest) = text[end..].strip_prefix("::") else {
        found.push(own);
        return end;
    };
    if rest.starts_with(is_of_name) {
        return end + 2 + path(rest, &own, found);
    }
    if !rest.starts_with('{') {
        found.push(own);
        return end + 2;
    }
    let mut at = 1;
    while let Some(c) = rest[at..].chars().next().filter(|c| *c != '}') {
        at += match is_of_name(c) {
            true => path(&rest[at..], &own, found),
            false => c.len_utf8(),
        };
    }
    end + 2 + at + 1
}

/// The modules of a crate, and what they use.
struct Modules {
    /// Code of each, by its path.
    code: BTreeMap<Names, String>,
    /// Names that a module takes from other modules, each with the module that it comes from.
    taken: BTreeMap<Names, HashMap<String, Names>>,
    /// Each module with the modules that it uses.
    used: BTreeMap<Names, BTreeSet<Names>>,
}

impl Modules {
    fn of(sources: Vec<(Names, String)>) -> Modules {
        let mut modules = Modules {
            code: sources.into_iter().collect(),
            taken: BTreeMap::new(),
            used: BTreeMap::new(),
        };
        // Twice: names are handed on from module to module.
        for _ in 0..2 {
            let taken = modules.code.iter().map(|(own, code)| {
                let statements = code
                    .split("use ")
                    .skip(1)
                    .map(|rest| rest.split(';').next());
                let paths = statements.flatten().flat_map(paths);
                let names = paths.filter_map(|path| {
                    let from = modules.resolve(own, &path).filter(|from| from != own)?;
                    Some((path.last()?.clone(), from))
                });
                (own.clone(), names.collect())
            });
            modules.taken = taken.collect();
        }
        let used = modules.code.iter().map(|(own, code)| {
            // What a module only hands on is no use.
            let used = paths(&without_handing_on(code)).into_iter();
            let used = used.filter_map(|path| modules.resolve(own, &path));
            (own.clone(), used.collect())
        });
        modules.used = used.collect();
        modules
    }

    /// The module that a path in another one leads to; `None` where it begins in no module of the crate.
    fn resolve(&self, own: &Names, path: &Names) -> Option<Names> {
        // A declaration, a visibility, or a value.
        if path.len() == 1 {
            return None;
        }
        let mut names = path.iter().peekable();
        let mut module = match names.peek()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => own.clone(),
            child
                if self
                    .code
                    .contains_key(&[&own[..], &[child.to_owned()]].concat()) =>
            {
                own.clone()
            }
            _ => return None,
        };
        if module.is_empty() || names.peek().is_some_and(|name| *name == "self") {
            names.next_if(|name| *name == "crate" || *name == "self");
        }
        while names.next_if(|name| *name == "super").is_some() {
            module.pop();
        }
        for name in names {
            let below = [&module[..], std::slice::from_ref(name)].concat();
            if self.code.contains_key(&below) {
                module = below;
                continue;
            }
            let taken = self.taken.get(&module).and_then(|names| names.get(name));
            return Some(taken.cloned().unwrap_or(module));
        }
        Some(module)
    }

    /// The modules within a module that use each other: a module stands for all within it. The root of the crate is
    /// `lib`; other modules are left out of what is within them.
    fn uses_within(&self, parent: &Names) -> BTreeMap<String, BTreeSet<String>> {
        let name = |module: &Names| -> Option<String> {
            let child = module.strip_prefix(&parent[..])?.first();
            let root = parent.is_empty().then(|| "lib".to_owned());
            child.cloned().or(root)
        };
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (own, used) in &self.used {
            let Some(user) = name(own) else { continue };
            let used = used.iter().filter_map(name).filter(|used| *used != user);
            uses.entry(user.clone()).or_default().extend(used);
        }
        uses
    }

    /// The modules right within others that use an item of the file above them, which uses them in turn.
    fn cycles_with_parents(&self) -> BTreeSet<Names> {
        let uses = |of: &dyn Fn(&Names) -> bool, used: &dyn Fn(&Names) -> bool| {
            let mut users = self.used.iter().filter(|(own, _)| of(own));
            users.any(|(_, theirs)| theirs.iter().any(used))
        };
        let children = self.code.keys().filter(|module| module.len() > 1);
        let mutual = children.filter(|child| {
            let parent = &child[..child.len() - 1];
            uses(&|own| own == parent, &|used| used.starts_with(child))
                && uses(&|own| own.starts_with(child), &|used| used == parent)
        });
        mutual.cloned().collect()
    }
}

/// Code without its `pub use` statements.
fn without_handing_on(code: &str) -> String {
    let mut rest = code.to_owned();
    for visibility in ["pub use ", "pub(crate) use ", "pub(super) use "] {
        while let Some(at) = rest.find(visibility) {
            let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
            rest.replace_range(at..end, "");
        }
    }
    rest
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

/// By the paths in the code: calls of methods are not seen.
#[test]
fn modules_beside_each_other_use_each_other_one_way() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let modules = Modules::of(sources(&name));
        for parent in modules.code.keys() {
            let cycles = cycles(&modules.uses_within(parent));
            let place = [std::slice::from_ref(&name), &parent[..]]
                .concat()
                .join("::");
            let sentence = |cycle: &Names| format!("{place}: {} use each other", cycle.join(", "));
            wrong.extend(cycles.iter().map(sentence));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// By the paths in the code: a call of a method is none, so a module may add methods to a type of the one above it,
/// and the one above may call them.
#[test]
fn a_module_and_the_modules_within_it_use_each_other_one_way() {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let modules = Modules::of(sources(&name));
        let cycles = modules.cycles_with_parents();
        found.extend(
            cycles
                .iter()
                .map(|child| format!("{name}::{}", child.join("::"))),
        );
    }
    assert!(
        found.is_empty(),
        "they and the module above use each other: {found:#?}"
    );
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
    let names = paths("use a::{b::{c, d}, e}; f(x)");
    let names: Vec<String> = names.iter().map(|names| names.join("::")).collect();
    assert_eq!(names, ["use", "a::b::c", "a::b::d", "a::e", "f", "x"]);
}

#[test]
fn a_module_that_uses_what_uses_it_is_seen_unless_it_is_only_handed_on() {
    let module = |path: &str, code: &str| {
        let names = path.split("::").filter(|name| !name.is_empty());
        (names.map(str::to_owned).collect(), code.to_owned())
    };
    let cycles = |parent: &str, child: &str| {
        let modules = Modules::of(vec![
            module("", "mod m;"),
            module("m", parent),
            module("m::a", child),
        ]);
        modules.cycles_with_parents()
    };
    let a = BTreeSet::from([vec!["m".to_owned(), "a".to_owned()]]);
    let uses = "mod a; use a::make; pub struct Thing; fn f() { make(); }";
    for child in ["use super::Thing;", "fn f(x: crate::m::Thing) {}"] {
        assert_eq!(cycles(uses, child), a, "{child}");
    }
    assert!(cycles(uses, "pub fn make() {}").is_empty());
    let hands_on = "mod a; pub(crate) use a::make; pub struct Thing;";
    assert!(cycles(hands_on, "use super::Thing;").is_empty());
}

#[test]
fn a_cycle_among_nested_modules_is_seen_also_through_names_that_are_handed_on() {
    let module = |path: &str, code: &str| {
        let names = path.split("::").filter(|name| !name.is_empty());
        (names.map(str::to_owned).collect(), code.to_owned())
    };
    let of = |b: &str| {
        Modules::of(vec![
            module("", "mod m;"),
            module("m", "mod a; mod b; use a::Thing; use b::make;"),
            module("m::a", "use super::b::make; pub struct Thing;"),
            module("m::b", b),
        ])
    };
    let within = vec!["m".to_owned()];
    assert!(cycles(&of("pub fn make() {}").uses_within(&within)).is_empty());
    for b in [
        "use super::Thing;",
        "fn f(x: super::a::Thing) {}",
        "use crate::m::Thing;",
    ] {
        let cycle = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            cycles(&of(b).uses_within(&within)),
            BTreeSet::from([cycle]),
            "{b}"
        );
    }
}
