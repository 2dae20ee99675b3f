//! README and manual: every command in them is one that the program understands, and every link leads somewhere.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "manual/arrays.rs"]
mod arrays;
#[path = "support/database.rs"]
mod database;
#[path = "manual/hosts.rs"]
mod hosts;
#[path = "manual/licences.rs"]
mod licences;
#[path = "support/loops.rs"]
mod loops;
#[path = "manual/needs.rs"]
mod needs;
#[path = "support/net.rs"]
mod net;
#[path = "manual/stage.rs"]
mod stage;
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use needs::Need;
use stage::Stage;
use support::{Place, ProgramOutput, is_root};

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

/// The commands of a line, each in its words, as a shell would split them: at a pipe, a redirection, `;` and `&`. What is
/// redirected to is a command too, of one word.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut own) = (Vec::new(), Vec::new());
    let (mut word, mut quote) = (None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => own.extend(word.take()),
            (None, '|' | '>' | '<' | ';' | '&') => {
                own.extend(word.take());
                commands.push(std::mem::take(&mut own));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    own.extend(word);
    commands.push(own);
    commands
}

/// The arguments of each call of the program in a line: its own, those in a script of a shell, those that a machine of the
/// lab or other hosts run. Those with something that is only meant to be filled in are left out.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for command in split(line) {
        let scripts = command
            .iter()
            .filter_map(|word| word.split_once("disksmith "));
        found.extend(scripts.flat_map(|(_, rest)| calls(&format!("disksmith {rest}"))));
        let [program, own @ ..] = &command[..] else {
            continue;
        };
        let is_program = program == "disksmith" || program.ends_with("/disksmith");
        let is_filled_in =
            |word: &String| word.contains('…') || word.starts_with('[') || word == "...";
        if !is_program || own.is_empty() || own.iter().any(is_filled_in) {
            continue;
        }
        found.push(own.to_vec());
        let Some(end) = own.iter().position(|word| word == "--") else {
            continue;
        };
        match (own[0].as_str(), own[1].as_str(), &own[end + 1..]) {
            ("fleet", "run", call) => found.push(call.to_vec()),
            ("fleet", "zero", call) => found.push([&["zero".to_owned()], call].concat()),
            ("lab", _, [program, call @ ..]) if program == "disksmith" => found.push(call.to_vec()),
            _ => {}
        }
    }
    found
}

/// The calls of the program on a page: those of its blocks of code, without what is printed before them.
fn commands(text: &str) -> Vec<Vec<String>> {
    let lines = code(text);
    let calls = lines
        .iter()
        .flat_map(|line| calls(line.trim_start_matches("$ ")));
    calls.collect()
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

/// True of status 0, and of an answer that is no: slower, cold, undecided, something to be fixed, a busy disk.
fn is_answer(words: &[String], said: &ProgramOutput) -> bool {
    let may_say_no = match words[0].as_str() {
        "compare" | "doctor" | "fleet" | "cost" => true,
        "warm" | "watch" => words.iter().any(|word| word == "--check"),
        _ => false,
    };
    let is_critical = said.out.starts_with("DISKSMITH CRITICAL");
    match said.status {
        Some(0) => true,
        Some(1) => may_say_no,
        status => status == Some(2) && is_critical,
    }
}

/// The commands of the manual with one of these needs, each once.
fn needing(wanted: &[Need]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for page in pages() {
        for words in commands(&fs::read_to_string(&page).unwrap()) {
            if wanted.contains(&needs::of(&words)) && !found.contains(&words) {
                found.push(words);
            }
        }
    }
    assert!(!found.is_empty(), "no command needs {wanted:?}");
    found
}

#[test]
fn with_root_every_command_of_the_manual_that_needs_only_this_host_runs() {
    if !is_root() {
        return skip::skipped("root");
    }
    let Some(stage) = Stage::new(&repository()) else {
        return;
    };
    let mut wrong = Vec::new();
    let mut needs = vec![Need::Host, Need::Interrupt, Need::Files];
    needs.extend(stage.has_databases().then_some(Need::Database));
    for words in needing(&needs) {
        let said = stage.run(&words);
        if !is_answer(&words, &said) {
            wrong.push(format!(
                "{}: {:?}: {}",
                words.join(" "),
                said.status,
                said.err
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "hosts that race: make prove"]
fn root_runs_every_command_of_the_manual_for_other_hosts() {
    let mut wrong = Vec::new();
    let all = hosts::for_each(&needing(&[Need::Hosts]), |words, said| {
        if !is_answer(words, &said) {
            wrong.push(format!(
                "{}: {:?}: {}{}",
                words.join(" "),
                said.status,
                said.err,
                said.out
            ));
        }
    });
    if all.is_some() {
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
#[ignore = "machines of the lab for minutes: make prove"]
fn with_qemu_every_command_of_the_manual_for_the_lab_runs() {
    let place = Place::new();
    fs::write(
        place.path("check-recovery.sh"),
        "echo boot $DISKSMITH_LAB_BOOT\n",
    )
    .unwrap();
    for words in needing(&[Need::Lab]) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // That the tour's answers are true has a test of its own, which needs a host with little else to do. A sweep may be
        // left undecided.
        let may_end_with = i32::from(words[1] == "tour" || words.contains(&"sweep"));
        let said = match words.as_slice() {
            ["lab", "run", rest @ ..] => support::lab::lab_run(&place, rest),
            _ => Some(place.run(&words)),
        };
        let Some(said) = said else {
            return;
        };
        let is_well = said
            .status
            .is_some_and(|status| (0..=may_end_with).contains(&status));
        assert!(is_well, "{words:?}: {said:#?}");
    }
}

#[test]
#[ignore = "a machine of the lab for minutes: make prove"]
fn with_qemu_every_command_of_the_manual_for_arrays_runs() {
    let place = Place::new();
    let commands = needing(&[Need::Array]);
    let Some(said) = arrays::run(&place, &commands) else {
        return;
    };
    // One block of measurements may leave a sweep undecided.
    let is_well = |number: usize, words: &[String]| {
        let may_end_with = if words[0] == "sweep" { 1 } else { 0 };
        (0..=may_end_with).any(|status| {
            said.out
                .lines()
                .any(|line| line == format!("{number} {status}"))
        })
    };
    let wrong: Vec<String> = commands
        .iter()
        .enumerate()
        .filter(|(number, words)| !is_well(*number, words))
        .map(|(number, words)| format!("{number}: {}", words.join(" ")))
        .collect();
    assert!(wrong.is_empty(), "{}\n{said:#?}", wrong.join("\n"));
}

/// All others run, here or with `make prove`.
#[test]
fn only_commands_for_an_account_at_aws_do_not_run() {
    for words in needing(&[Need::Cloud]) {
        assert_eq!(words[..2], ["sweep", "--ec2"], "{words:?}");
    }
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
    let line = "a 'b; disksmith warm /dev/vda' | disksmith lab run -- disksmith devices > list";
    assert_eq!(
        calls(line),
        [
            &["warm", "/dev/vda"][..],
            &["lab", "run", "--", "disksmith", "devices"],
            &["devices"],
        ]
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

/// In the book there is nothing beside `docs`.
#[test]
fn no_link_of_the_manual_leaves_the_book() {
    let docs = fs::canonicalize(repository().join("docs")).unwrap();
    for page in pages() {
        let page = fs::canonicalize(page).unwrap();
        if !page.starts_with(&docs) {
            continue;
        }
        for link in links(&fs::read_to_string(&page).unwrap()) {
            let file = link.split('#').next().unwrap_or_default();
            let target = fs::canonicalize(page.parent().unwrap().join(file));
            let is_in_book = target.is_ok_and(|target| target.starts_with(&docs));
            assert!(is_in_book, "{}: {link}", page.display());
        }
    }
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
