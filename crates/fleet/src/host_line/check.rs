//! The verb to run on the hosts, checked on this machine before any host is touched.

use super::{AgentVerb, HostVerb, LineVerb, parse};
use ui::exit::Failure;

/// Verb by which a host reports what another verb would overwrite.
pub(crate) const INSPECT_VERB: &str = "look";
/// Option of verbs with a JSON document as output.
const JSON: &str = "--json";
/// Option of verbs that report their actions without doing them.
const DRY_RUN: &str = "--dry-run";
/// The verb that writes zeros.
const ZERO: &str = "zero";

/// Checks the verb and its arguments, and adds `--json` if the verb supports it and a document is needed: by the user,
/// or to compare the hosts. Otherwise its output is text.
///
/// # Errors
/// Refused, if they are invalid, or the verb cannot run on a host.
pub(crate) fn checked(words: &[String], as_json: bool) -> Result<Vec<String>, Failure> {
    let verb = parse(words)
        .map_err(|why| Failure::refused(format!("the verb for the hosts is invalid: {why}")))?;
    if let Some(why) = unfit(&verb) {
        return Err(Failure::refused(format!(
            "'{}' cannot be run on hosts: {why}",
            words.join(" ")
        )));
    }
    let with_json = with(words, &[JSON.to_owned()]);
    let is_wanted = as_json || matches!(&verb, LineVerb::Host(verb) if verb.is_compared());
    let takes_json = is_wanted
        && !words.iter().any(|word| word == JSON)
        // Words after '--' belong to another program.
        && !matches!(verb, LineVerb::Host(HostVerb::Lab(_)))
        && parse(&with_json).is_ok();
    Ok(if takes_json {
        with_json
    } else {
        words.to_vec()
    })
}

/// Inserts options into the words of a command line. They are inserted at the front, since words after `--` are not
/// options.
pub(crate) fn with(words: &[String], options: &[String]) -> Vec<String> {
    let end = words.iter().position(|word| word == "--");
    let (before, behind) = words.split_at(end.unwrap_or(words.len()));
    [before, options, behind].concat()
}

/// Command that reports on each host what a verb with --destroy would overwrite, without writing. `None` for a verb
/// that overwrites nothing.
pub(crate) fn inspection(words: &[String]) -> Option<Vec<String>> {
    let Ok(LineVerb::Host(verb)) = parse(words) else {
        return None;
    };
    if verb.overwrites().is_empty() {
        return None;
    }
    Some(match verb {
        HostVerb::Zero(_) => with(words, &[DRY_RUN.to_owned()]),
        _ => [&[INSPECT_VERB.to_owned(), "--".to_owned()], words].concat(),
    })
}

/// The words of a `zero` with these arguments, or of its dry run.
///
/// # Errors
/// Refused, if they are invalid, or the dry run is requested on the wrong side of `--`.
pub(crate) fn zero(arguments: &[String], is_dry_run: bool) -> Result<Vec<String>, Failure> {
    let mut words = vec![ZERO.to_owned()];
    words.extend_from_slice(arguments);
    if is_dry_run {
        words = with(&words, &[DRY_RUN.to_owned()]);
    }
    let words = checked(&words, true)?;
    match parse(&words) {
        Ok(LineVerb::Host(HostVerb::Zero(args))) if args.dry_run == is_dry_run => Ok(words),
        _ => Err(Failure::refused(
            "arguments behind '--' are passed to 'disksmith zero'; --dry-run belongs before it",
        )),
    }
}

/// Reason why a verb cannot run on a host; `None` if it can.
fn unfit(verb: &LineVerb) -> Option<&'static str> {
    let verb = match verb {
        LineVerb::Fleet(_) => return Some("'fleet' does not run on a host of a fleet"),
        LineVerb::Completions(_) | LineVerb::Man(_) => {
            return Some("it is for the host that disksmith is installed on");
        }
        LineVerb::Agent(AgentVerb::Agent) => return Some("the agent itself runs the verbs there"),
        LineVerb::Agent(AgentVerb::Inspect(_)) => {
            return Some("it is what 'fleet run' asks before a verb that overwrites something");
        }
        LineVerb::Agent(AgentVerb::Rounds(_)) => {
            return Some("it measures the rounds of a 'fleet race'");
        }
        LineVerb::Host(verb) => verb,
    };
    match verb {
        HostVerb::Scrub(args) if args.install_timer => Some(
            "the timer would start a program that is gone by then; install disksmith there first",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<String, String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match checked(&words, true) {
            Ok(words) => Ok(words.join(" ")),
            Err(why) => Err(why.error().to_string()),
        }
    }

    #[test]
    fn a_verb_answers_with_json_where_it_can() {
        assert_eq!(check("devices").unwrap(), "devices --json");
        assert_eq!(check("devices --json").unwrap(), "devices --json");
        assert_eq!(check("bench /mnt/a").unwrap(), "bench /mnt/a --json");
        assert_eq!(check("bench -- /mnt/a").unwrap(), "bench --json -- /mnt/a");
        let lab = "lab run --volumes nvme:1GiB -- lsblk";
        assert_eq!(check(lab).unwrap(), lab);
    }

    #[test]
    fn a_dry_run_writes_nothing_whatever_stands_behind() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let line = "--destroy /dev/a -- /dev/a";
        let dry_run = zero(&words(line), true).unwrap().join(" ");
        assert_eq!(dry_run, "zero --destroy /dev/a --dry-run --json -- /dev/a");
        let work = zero(&words(line), false).unwrap().join(" ");
        assert_eq!(work, "zero --destroy /dev/a --json -- /dev/a");
        for bad in ["--dry-run /dev/a", "--destroy /dev/a"] {
            assert!(
                zero(&words(bad), true).is_err() && zero(&words(bad), false).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn only_commands_that_overwrite_are_examined_first() {
        let inspected = |line: &str| -> Option<String> {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            inspection(&words).map(|words| words.join(" "))
        };
        let zero = inspected("zero --destroy /dev/a -- /dev/a").unwrap();
        assert_eq!(zero, "zero --destroy /dev/a --dry-run -- /dev/a");
        for line in [
            "bench /dev/a --destroy /dev/a=ext4",
            "bench /dev/a --destroy /dev/a --phase page-read --phase page-write",
            "bench /dev/a --destroy /dev/a --phase dance",
            "bench /dev/a --destroy /dev/a --fio /jobs",
            "bench /dev/a --destroy /dev/a --suite bonnie",
            "array create --level 0 --members /dev/a,/dev/b --destroy /dev/a --destroy /dev/b",
            "sweep --devices /dev/a --destroy /dev/a",
        ] {
            assert_eq!(inspected(line).unwrap(), format!("look -- {line}"));
        }
        for line in [
            "bench /mnt/a",
            "bench /dev/a --destroy /dev/a --phase page-read",
            "zero /dev/a --destroy /dev/a --dry-run",
            "array create --level 0 --members /dev/a,/dev/b --destroy /dev/a --dry-run",
            "array list",
            "sweep --show last",
            "sweep --show last --destroy /dev/a",
            "sweep --abandon last --destroy /dev/a",
            "sweep --devices /dev/a --destroy /dev/a --dry-run",
            "warm /dev/a",
            "dance",
        ] {
            assert_eq!(inspected(line), None, "{line}");
        }
    }

    #[test]
    fn a_sweep_that_is_given_up_or_shown_destroys_nothing_whatever_is_named() {
        for line in ["sweep --abandon last", "sweep --show last"] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let LineVerb::Host(HostVerb::Sweep(mut args)) = parse(&words).unwrap() else {
                panic!("{line} is no sweep");
            };
            // The check of the arguments, which also detects this, is bypassed.
            args.destroy.push("/dev/a".into());
            let verb = HostVerb::Sweep(args);
            assert!(verb.overwrites().is_empty(), "{line}");
        }
    }

    #[test]
    fn options_without_sense_on_a_host_are_refused() {
        for (line, expected) in [
            ("fleet top --list a", "does not run on a host of a fleet"),
            ("agent", "cannot be run on hosts"),
            ("look -- devices", "what 'fleet run' asks"),
            (
                "rounds /a --figure page-read.iops",
                "the rounds of a 'fleet race'",
            ),
            ("man /tmp", "cannot be run on hosts"),
            ("scrub --install-timer /dev/md0", "the timer would start"),
            ("dance", "is invalid: unrecognized subcommand"),
            ("zero", "is invalid"),
        ] {
            let why = check(line).unwrap_err();
            assert!(why.contains(expected), "{line}: {why}");
        }
    }
}
