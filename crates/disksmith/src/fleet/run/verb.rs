//! The verb that shall run on the hosts, checked here before any host is touched.

use clap::Parser as _;

use crate::cli::{Cli, Verb};
use crate::failure::Failure;

/// Verbs that answer with a JSON document when they are asked for one.
const JSON: &str = "--json";

/// Checks the verb and its arguments, and lets it answer with a JSON document where it can.
///
/// # Errors
/// Refused, where they make no sense, or the verb is none for a host.
pub(in super::super) fn checked(words: &[String]) -> Result<Vec<String>, Failure> {
    let verb = parse(words)
        .map_err(|why| Failure::refused(format!("the verb for the hosts makes no sense: {why}")))?;
    if let Some(why) = unfit(&verb) {
        return Err(Failure::refused(format!(
            "'{}' cannot be run on hosts: {why}",
            words.join(" ")
        )));
    }
    let mut with_json = words.to_vec();
    with_json.push(JSON.to_owned());
    let takes_json = !words.iter().any(|word| word == JSON)
        // What stands behind '--' there is another program's.
        && !matches!(verb, Verb::Lab(_))
        && parse(&with_json).is_ok();
    Ok(if takes_json {
        with_json
    } else {
        words.to_vec()
    })
}

fn parse(words: &[String]) -> Result<Verb, String> {
    let line = std::iter::once("disksmith").chain(words.iter().map(String::as_str));
    Cli::try_parse_from(line)
        .map(|cli| cli.verb)
        .map_err(|why| {
            why.to_string()
                .trim()
                .trim_start_matches("error: ")
                .to_owned()
        })
}

/// Why a verb is none for a host; `None` where it is one.
fn unfit(verb: &Verb) -> Option<&'static str> {
    match verb {
        Verb::Fleet(_) => Some("a host has no fleet of its own"),
        Verb::Agent => Some("the agent is what runs the verbs there"),
        Verb::Completions { .. } | Verb::Man { .. } => {
            Some("it is for the host that disksmith is installed on")
        }
        Verb::Scrub(args) if args.install_timer => Some(
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
        match checked(&words) {
            Ok(words) => Ok(words.join(" ")),
            Err(why) => Err(why.error().to_string()),
        }
    }

    #[test]
    fn a_verb_answers_with_json_where_it_can() {
        assert_eq!(check("devices").unwrap(), "devices --json");
        assert_eq!(check("devices --json").unwrap(), "devices --json");
        assert_eq!(check("bench /mnt/a").unwrap(), "bench /mnt/a --json");
        assert_eq!(check("bench -- /mnt/a").unwrap(), "bench -- /mnt/a");
        let lab = "lab run --volumes nvme:1GiB -- lsblk";
        assert_eq!(check(lab).unwrap(), lab);
    }

    #[test]
    fn what_makes_no_sense_on_a_host_is_refused() {
        for (line, told) in [
            ("fleet top --list a", "no fleet of its own"),
            ("agent", "cannot be run on hosts"),
            ("man /tmp", "cannot be run on hosts"),
            ("scrub --install-timer /dev/md0", "the timer would start"),
            ("dance", "makes no sense: unrecognized subcommand"),
            ("zero", "makes no sense"),
        ] {
            let why = check(line).unwrap_err();
            assert!(why.contains(told), "{line}: {why}");
        }
    }
}
