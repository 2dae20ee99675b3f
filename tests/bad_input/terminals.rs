//! Terminals and locales of a new user's first hour.

use crate::fs;
use crate::pty::Pty;
use crate::support::{self, Place, output_of};

/// A terminal of 40 columns, where no word of an error is broken, and the command at its end is on one line.
#[test]
fn errors_fit_the_terminal_and_their_commands_can_be_copied() {
    if !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    for (words, end) in [
        (
            "bench data --size 100000T",
            "disksmith bench data --size 64M",
        ),
        (
            "zero /dev/no-such-disk --destroy /dev/no-such-disk",
            "disksmith devices",
        ),
        (
            "bench data --no-such-option",
            "For more information, try '--help'.",
        ),
    ] {
        let mut program = place.command(words);
        program.env_remove("COLUMNS");
        let mut pty = Pty::start(&program, (40, 24), true);
        let screen = pty.wait_for(|seen| seen.line_with(end).is_some());
        assert!(!screen.is_too_wide, "{words}: {}", screen.text());
        assert_eq!(pty.end().code(), Some(2), "{words}");
    }
}

/// A terminal of 40 columns, a charset without signs beyond ASCII, a locale that is not there, and no terminal.
#[test]
fn answers_fit_the_terminal_and_the_locale_of_the_first_hour() {
    let place = Place::new();
    place.bench(&support::SHORT).ends_with(0);
    for words in [
        &["runs"][..],
        &["show", "last"],
        &["devices"],
        &["scrub", "--status"],
        &["doctor", "--check", "host"],
    ] {
        let mut narrow = place.command(words);
        let narrow = output_of(narrow.env("COLUMNS", "40"));
        assert!(matches!(narrow.status, Some(0 | 1)), "{narrow:#?}");
        narrow.fits(40);
        for locale in ["C", "POSIX", "xx_XX.ISO-8859-1"] {
            let mut ascii = place.command(words);
            let ascii = output_of(ascii.env("LC_ALL", locale));
            assert!(
                ascii.out.is_ascii() && ascii.err.is_ascii(),
                "{locale}: {ascii:#?}"
            );
        }
    }
    // Commands and rows of a table stay as they are.
    for words in [
        &["playbook", "slow-commits"][..],
        &["lab", "tour", "--recorded"],
    ] {
        let mut narrow = place.command(words);
        let narrow = output_of(narrow.env("COLUMNS", "40")).ends_with(0);
        let whole = place.run(words).ends_with(0);
        let options = whole.out.lines().filter(|line| line.starts_with("    -"));
        let broken = options.filter(|option| !narrow.out.lines().any(|line| line == *option));
        assert_eq!(broken.collect::<Vec<_>>(), [""; 0], "{words:?}");
        let is_sentence = |line: &&str| {
            let has_columns = line.trim_start().contains("  ");
            let commands = ["$ ", "+ ", "    -", "mdadm ", "'disksmith "];
            let is_command = commands.iter().any(|start| line.starts_with(start));
            line.trim().contains(' ') && !has_columns && !is_command
        };
        let wide = narrow.out.lines().filter(is_sentence);
        let wide: Vec<&str> = wide.filter(|line| line.chars().count() > 40).collect();
        assert_eq!(wide, [""; 0], "{words:?}");
    }
    fs::write(place.path("tokens"), "nothing\n").unwrap();
    for locale in ["C", "xx_XX.ISO-8859-1"] {
        let mut refused = place.command("serve --token-file tokens");
        output_of(refused.env("LC_ALL", locale)).refuses(&["'read sha256:...'"]);
    }
    for terminal in ["dumb", "", "no-such-terminal"] {
        let mut watch = place.command("watch --count 1");
        let lines = output_of(watch.env("TERM", terminal)).ends_with(0);
        assert!(lines.out.starts_with("# "), "{lines:#?}");
    }
}
