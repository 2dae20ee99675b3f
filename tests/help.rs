//! Help, completions and manual pages, as the real program gives them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use serde_json::Value;

use support::{Place, has_program, names_in, output_of};

/// The verbs, as the program's own help lists them.
fn verbs(place: &Place) -> Vec<String> {
    let help = place.run("--help").ends_with(0).out;
    let listed = help
        .split("\n\n")
        .find_map(|part| part.strip_prefix("Commands:\n"));
    let lines = listed.unwrap().lines();
    // What a verb does may take several lines, of which the others are further in.
    let named = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    named
        .filter(|verb| !verb.is_empty() && *verb != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_help_of_every_verb_has_an_example_and_fits_100_columns() {
    let place = Place::new();
    for verb in verbs(&place).iter().map(String::as_str) {
        for words in [[verb, "--help"], [verb, "-h"], ["help", verb]] {
            let help = place.run(&words).ends_with(0);
            assert_eq!(help.err, "");
            help.fits(100);
            let example = format!("disksmith {verb} ");
            let examples = help.out.split_once("Example").map(|(_, rest)| rest);
            let shown = examples.is_some_and(|rest| format!("{rest} ").contains(&example));
            assert!(shown || verb == "devices", "no example in {help:#?}");
        }
    }
    place.run("runs remove --help").ends_with(0).fits(100);
}

#[test]
fn the_help_lists_the_verbs_and_has_an_example() {
    let place = Place::new();
    let help = place.run("--help").ends_with(0);
    help.fits(100);
    help.prints(&["Example: disksmith bench "]);
    let verbs = verbs(&place);
    for verb in ["bench", "fleet", "man"] {
        assert!(verbs.contains(&verb.to_owned()), "no {verb} in {help:#?}");
    }
}

#[test]
fn help_does_not_depend_on_where_the_ledger_is() {
    let place = Place::new();
    let long = format!("/{}/ledger.db", "deep".repeat(40));
    for verb in verbs(&place).iter().map(String::as_str) {
        let here = place.run(&[verb, "--help"]).ends_with(0);
        let mut command = place.command(&[verb, "--help"]);
        let there = output_of(command.env("DISKSMITH_LEDGER", &long)).ends_with(0);
        assert_eq!(here.out, there.out);
    }
}

#[test]
fn the_version_is_one_line() {
    let place = Place::new();
    for word in ["--version", "-V"] {
        let said = place.run(&[word]).ends_with(0);
        let line = format!("disksmith {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(said.out, line);
    }
}

#[test]
fn no_arguments_give_the_help_and_status_2() {
    let place = Place::new();
    let with_ledger = place.run("");
    let without = output_of(place.command("").env_remove("DISKSMITH_LEDGER"));
    for said in [with_ledger, without] {
        said.refuses(&["Usage: disksmith", "  bench ", "Example: "]);
    }
}

#[test]
fn unknown_verbs_and_options_end_with_status_2_and_the_usage() {
    let place = Place::new();
    for words in [&["frob"][..], &["bench", "data", "--frob"], &["show"]] {
        place.run(words).refuses(&["Usage: disksmith"]);
    }
    // The ledger of the environment is nothing that was left out.
    place
        .run("bench")
        .refuses(&["Usage: disksmith bench <TARGET>\n"]);
    // A word that is nearly right is answered with the right one.
    place.run("benhc data").refuses(&["'bench'"]);
    place.run("completions dos").refuses(&["bash", "fish"]);
    place.assert_nothing_left();
}

/// Script that has the words completed as bash would, and prints what it would offer, one a line.
const ASK_BASH: &str = r#"source "$1"; shift
COMP_WORDS=(disksmith "$@"); COMP_CWORD=$#; COMP_TYPE=9
_clap_complete_disksmith disksmith "${!#}" ""
printf '%s\n' "${COMPREPLY[@]}""#;

/// Zsh in a terminal of its own that reads the script, has a line completed by its Tab, and prints it.
const ASK_ZSH: &str = r#"zmodload zsh/zpty; zpty -b asked zsh -f -i; dump=$1/dump; script=$1/zsh
zpty -w asked "autoload -Uz compinit; compinit -u -d $dump; source $script; show() { print -r -- \"<\$BUFFER>\" }
    zle -N show; bindkey '^Xp' show; print rea\"\"dy"
zpty -r -m asked told '*ready*'
zpty -w -n asked "$2"$'\t\C-Xp'
zpty -r -m asked told '*<*>*'
print -r -- "${${told##*<}%%>*}""#;

/// The same words are completed by each shell, asked as its user asks it.
#[test]
fn zsh_and_fish_complete_runs_phases_disks_and_hosts() {
    if !has_program("zsh") || !has_program("fish") {
        return;
    }
    let place = Place::new();
    for shell in ["zsh", "fish"] {
        let script = place.run(&["completions", shell]).ends_with(0);
        std::fs::write(place.path(shell), script.out).unwrap();
    }
    place.bench("--size 4M --seconds 1s --phase page-read");
    let run = place.runs().remove(0);
    let ssh = place.path("home/.ssh");
    std::fs::create_dir_all(&ssh).unwrap();
    std::fs::write(ssh.join("config"), "Host db1 web1\n").unwrap();
    let program = assert_cmd::cargo::cargo_bin!("disksmith");
    let folder = program.parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let ask = |shell: &str, words: &[&str]| {
        let mut command = Command::new(shell);
        command.args(words).env("PATH", &path).env("TERM", "vt100");
        command.env("HOME", place.path("home"));
        command.env("DISKSMITH_LEDGER", place.ledger());
        output_of(&mut command).ends_with(0).out
    };
    let folder = place.path("").display().to_string();
    let zsh = |line: &str| ask("zsh", &["-f", "-c", ASK_ZSH, "zsh", &folder, line]);
    let fish = |line: &str| {
        let program = format!(
            "source {}; complete -C $argv[1]",
            place.path("fish").display()
        );
        let offered = ask("fish", &["--no-config", "-c", &program, line]);
        let value = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        offered.lines().map(value).collect::<Vec<_>>()
    };
    // Such devices come and go with other tests, and a name that begins another is not completed.
    const MADE: [&str; 5] = ["loop", "dm-", "md", "nbd", "zram"];
    let devices = place.run("devices --json").ends_with(0).json();
    let devices = devices["devices"].as_array().unwrap();
    let name = |device: &Value| device["name"].as_str().unwrap_or_default().to_owned();
    let is_whole = |device: &&Value| {
        let own = name(device);
        let others = devices
            .iter()
            .filter(|device| name(device).starts_with(&own));
        let is_made = MADE.iter().any(|begin| own.starts_with(begin));
        !is_made && others.count() == 1 && device["size_bytes"].as_u64() > Some(0)
    };
    let disk = devices
        .iter()
        .find(is_whole)
        .map(|disk| format!("/dev/{}", name(disk)));
    let mut lines = vec![
        ("show".to_owned(), run[..12].to_owned(), run),
        (
            "bench . --phase".to_owned(),
            "page-m".to_owned(),
            "page-mixed".to_owned(),
        ),
        (
            "fleet run --hosts".to_owned(),
            "d".to_owned(),
            "db1".to_owned(),
        ),
    ];
    lines.extend(disk.map(|disk| ("watch".to_owned(), disk.clone(), disk)));
    for (words, begun, whole) in lines {
        let line = format!("disksmith {words} {begun}");
        assert_eq!(fish(&line), [whole.as_str()], "{line}");
        let completed = format!("disksmith {words} {whole} \n");
        assert_eq!(zsh(&line), completed, "{line}");
    }
}

#[test]
fn shells_read_the_completions_and_bash_offers_what_there_is() {
    let place = Place::new();
    for (shell, mark) in [
        ("bash", "complete -o"),
        ("zsh", "#compdef disksmith"),
        ("fish", "complete --keep-order"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = place.run(&["completions", shell]).ends_with(0);
        assert_eq!(script.err, "");
        assert!(script.out.contains(mark), "{shell}: {}", script.out);
        let file = place.path(shell);
        std::fs::write(&file, &script.out).unwrap();
        let checks_syntax = ["bash", "zsh", "fish"].contains(&shell);
        if checks_syntax && has_program(shell) {
            let checked = output_of(Command::new(shell).arg("-n").arg(&file)).ends_with(0);
            assert_eq!(checked.err, "");
        }
    }
    place.bench("--size 4M --seconds 1s --phase page-read");
    let run = place.runs().remove(0);
    let program = assert_cmd::cargo::cargo_bin!("disksmith");
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let ssh = place.path("home/.ssh");
    std::fs::create_dir_all(&ssh).unwrap();
    std::fs::write(ssh.join("config"), "Host db1 db2\n").unwrap();
    let offered = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(["-c", ASK_BASH, "bash"])
            .arg(place.path("bash"))
            .args(words);
        bash.env("PATH", &path)
            .env("DISKSMITH_LEDGER", place.ledger());
        bash.env("HOME", place.path("home"));
        let said = output_of(&mut bash).ends_with(0);
        assert_eq!(said.err, "");
        said.out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = offered(&[""]);
    for verb in verbs(&place) {
        assert!(commands.contains(&verb), "no {verb} in {commands:?}");
    }
    assert_eq!(
        offered(&["show", ""])[..2],
        ["last".to_owned(), run.clone()]
    );
    assert_eq!(offered(&["compare", "last", &run[..12]]), [run]);
    assert_eq!(
        offered(&["bench", ".", "--phase", "page-m"]),
        ["page-mixed"]
    );
    assert_eq!(
        offered(&["bench", ".", "--phase", "seek,page-m"]),
        ["seek,page-mixed"]
    );
    assert_eq!(offered(&["fleet", "run", "--hosts", "db"]), ["db1", "db2"]);
    let disks = offered(&["watch", "/dev/"]);
    let first = std::fs::read_dir("/sys/class/block").unwrap().count();
    assert_eq!(disks.is_empty(), first == 0, "{disks:?}");
    assert!(
        disks.iter().all(|disk| disk.starts_with("/dev/")),
        "{disks:?}"
    );
    assert!(offered(&["watch", "--no-such-opt"]).concat().is_empty());
    // Targets are disks, and the files and directories that are there. Other tests on this host attach and detach loop
    // devices at any moment, of which nothing can be said.
    std::fs::write(place.path("table.ibd"), "rows").unwrap();
    let targets = place.completions(&["bench", ""]);
    let mut lasting = disks.iter().filter(|disk| !disk.starts_with("/dev/loop"));
    assert!(lasting.all(|disk| targets.contains(disk)), "{targets:?}");
    for path in ["data/", "table.ibd"] {
        assert!(
            targets.contains(&path.to_owned()),
            "no {path} in {targets:?}"
        );
    }
    let within = place.completions("bench /dev/");
    let mut each: Vec<&String> = within.iter().collect();
    each.sort();
    each.dedup();
    assert_eq!(each.len(), within.len(), "{within:?}");
    assert_eq!(place.completions("bench tab"), ["table.ibd"]);
}

#[test]
fn there_is_a_manual_page_for_every_verb_and_groff_does_not_complain() {
    let place = Place::new();
    place.run("man data").ends_with(0);
    let pages = names_in(&place.data());
    for page in verbs(&place)
        .iter()
        .map(|verb| format!("disksmith-{verb}.1"))
    {
        assert!(pages.contains(&page), "no {page} among {pages:?}");
    }
    assert!(pages.contains(&"disksmith.1".to_owned()), "{pages:?}");
    for page in pages {
        let path = place.data().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("disksmith"), "{path:?}");
        if has_program("groff") {
            // As man(1) calls it: -k reads UTF-8, -ww shows all warnings, -z prints nothing.
            let mut groff = Command::new("groff");
            groff.args(["-k", "-man", "-ww", "-Tutf8", "-z"]).arg(&path);
            let checked = output_of(&mut groff).ends_with(0);
            assert_eq!(checked.err, "", "{path:?}");
        }
    }
}

#[test]
fn manual_pages_into_a_folder_that_is_missing_are_refused() {
    let place = Place::new();
    place
        .run("man missing")
        .refuses(&["the man page missing/disksmith", "the folder missing"]);
    assert!(!place.path("missing").exists());
}

/// clap breaks its other lines itself.
#[test]
fn usage_fits_a_narrow_window_in_help_and_in_errors() {
    let place = Place::new();
    let usage = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.starts_with("Usage:"));
        let lines = lines.take_while(|line| !line.trim().is_empty());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for words in [
        &["array", "create", "--help"][..],
        &["fleet", "race", "--help"],
        &["array", "create"],
        &["fleet", "race", "--nonsense"],
    ] {
        let output = place.command(words).env("COLUMNS", "40").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let lines = usage(&String::from_utf8(text).unwrap());
        assert!(lines.len() > 1, "{words:?}: {lines:?}");
        let too_wide = |line: &&String| line.chars().count() > 40 && line.trim().contains(' ');
        assert_eq!(lines.iter().find(too_wide), None, "{words:?}");
    }
}
