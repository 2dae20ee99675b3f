//! README and manual: every command in them is one that the program understands, and every link leads somewhere.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "manual/licences.rs"]
mod licences;
#[path = "support/loops.rs"]
mod loops;
#[path = "manual/stage.rs"]
mod stage;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use stage::Stage;
use support::{Place, is_root};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README, the manual and what belongs to it.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec!["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
        .into_iter()
        .map(|name| repository().join(name))
        .collect::<Vec<_>>();
    for folder in ["docs", "docs/design", "docs/playbooks", "docs/suites"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The lines of a page's blocks of code, with continued ones joined.
fn code(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
            goes_on = false;
            continue;
        }
        if !is_code {
            continue;
        }
        let continued = line.strip_suffix('\\');
        let part = continued.unwrap_or(line).trim();
        match lines.last_mut() {
            Some(last) if goes_on => *last = format!("{last} {part}"),
            _ => lines.push(part.to_owned()),
        }
        goes_on = continued.is_some();
    }
    lines
}

/// The words of a command as a shell would split them, to the end of the command: a pipe, a redirection, a comment,
/// another command. `None` where something in it is only meant to be filled in.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let is_filled_in = |word: &String| word.contains('…') || word.starts_with('[') || word == "...";
    (!words.iter().any(is_filled_in)).then_some(words)
}

/// The commands of a page: those of its blocks of code, without what is printed before them.
fn commands(text: &str) -> Vec<Vec<String>> {
    let begins = |line: &String| line.starts_with("disksmith ") || line.starts_with("$ disksmith ");
    let lines = code(text).into_iter().filter(begins);
    lines
        .filter_map(|line| words(line.trim_start_matches("$ ")))
        .map(|words| words[1..].to_vec())
        .collect()
}

#[test]
fn every_command_of_the_manual_is_understood() {
    let place = Place::new();
    let (mut many, mut wrong) = (0, Vec::new());
    for page in pages() {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            many += 1;
            // What stands before it is read, and found fault with, before the help is printed.
            let own = words
                .iter()
                .position(|word| word == "--")
                .unwrap_or(words.len());
            let mut arguments: Vec<&str> = words[..own].iter().map(String::as_str).collect();
            arguments.push("--help");
            let said = place.run(&arguments);
            if said.status != Some(0) {
                wrong.push(format!(
                    "{}: {}: {}",
                    page.display(),
                    words.join(" "),
                    said.err
                ));
            }
        }
    }
    assert!(many > 100, "only {many} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The need of a command beyond this host, its loop devices and a few seconds; `None` where it can run here. A command with
/// one is parsed only, and its verb runs in tests of its own.
fn needs(words: &[String]) -> Option<&'static str> {
    let has = |option: &str| words.iter().any(|word| word.starts_with(option));
    match (words[0].as_str(), words.get(1).map_or("", String::as_str)) {
        ("fleet", action) if action != "hosts" => Some("other hosts"),
        ("lab", _) => Some("QEMU"),
        ("array", action) if action != "list" => Some("an array of four disks"),
        ("scrub", _) if !has("--status") => Some("an array"),
        ("sweep", _) => Some("an array of four disks"),
        ("doctor", _) if has("--mysql") || has("--postgres") => Some("a database"),
        ("fleet", _) if has("--hosts") => Some("other hosts"),
        ("serve", action) if action != "token" => Some("an interrupt, since it runs until one"),
        ("tally", _) if has("--follow") => Some("an interrupt, since it runs until one"),
        ("cost", _) if has("--instance") => Some("a cloud"),
        ("warm" | "trace", _) if has("--first") || has("--dataset") => Some("a database's files"),
        _ => None,
    }
}

#[test]
fn with_root_every_command_of_the_manual_that_needs_only_this_host_runs() {
    if !is_root() {
        return skip::skipped("root");
    }
    let Some(stage) = Stage::new(&repository()) else {
        return;
    };
    let (mut ran, mut left, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            if let Some(what) = needs(&words) {
                eprintln!("only understood, for want of {what}: {}", words.join(" "));
                left += 1;
                continue;
            }
            ran += 1;
            let said = stage.run(&words);
            // 1 is an answer: slower, not warm, nothing found. So is 2 of a check, of a busy disk.
            let is_critical = said.out.starts_with("DISKSMITH CRITICAL");
            let is_answered = matches!(said.status, Some(0 | 1));
            if !(is_answered || said.status == Some(2) && is_critical) {
                let (page, line) = (page.display(), words.join(" "));
                wrong.push(format!("{page}: {line}: {:?}: {}", said.status, said.err));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran > left, "{ran} ran, and {left} did not");
}

#[test]
fn a_command_that_is_wrong_is_noticed() {
    let place = Place::new();
    for words in [
        &["bench", "--nonsense", "--help"][..],
        &["frobnicate", "--help"],
    ] {
        assert_eq!(place.run(words).status, Some(2), "{words:?}");
    }
    let text =
        "```\ndisksmith bench /data --size 1G \\\n    --quick   # all\n```\ndisksmith nothing\n";
    assert_eq!(
        commands(text),
        [["bench", "/data", "--size", "1G", "--quick"]]
    );
}

/// The anchors of a page: its headings as GitHub links to them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The targets of a page's links and pictures, without those of other sites.
fn links(text: &str) -> Vec<String> {
    let parts = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    parts
        .filter(|target| !target.contains("://") && !target.contains(' '))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let (mut many, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            many += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let has_anchor = || {
                let text = fs::read_to_string(&target).unwrap_or_default();
                anchors(&text).iter().any(|found| found == anchor)
            };
            if !target.exists() || !(anchor.is_empty() || has_anchor()) {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(many > 100, "only {many} links were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A page that is not listed is left out of the book (`make docs`).
#[test]
fn the_book_has_every_page_of_the_manual() {
    let docs = fs::canonicalize(repository().join("docs")).unwrap();
    let listed = links(&fs::read_to_string(docs.join("SUMMARY.md")).unwrap());
    let listed: Vec<PathBuf> = listed.iter().map(|link| docs.join(link)).collect();
    let missing: Vec<PathBuf> = pages()
        .into_iter()
        .map(|page| fs::canonicalize(page).unwrap())
        .filter(|page| page.starts_with(&docs) && !page.ends_with("SUMMARY.md"))
        .filter(|page| !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
