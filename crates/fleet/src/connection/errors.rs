//! Reasons why a host cannot be worked on, as sentences for people.

/// Reason why no agent can run on a host, as a sentence.
pub(crate) fn refusal(name: &str, reply: &str) -> String {
    let (word, rest) = reply.split_once(' ').unwrap_or((reply, ""));
    match word {
        "sudo" => format!(
            "sudo on {name} wants a password or does not allow it ({rest}); let the user run \
             everything without one (NOPASSWD in sudoers(5)), log in as root, or leave --sudo out."
        ),
        "sum" => format!(
            "{name} has none of sha256sum, shasum and openssl, by which the program that was sent is \
             checked; install one of them."
        ),
        "place" => format!(
            "{name} has no folder that takes the program:{}; give it a TMPDIR that may be written and \
             executed and has room.",
            places(rest)
        ),
        "write" => format!("the program could not be written on {name}: {rest}."),
        "hash" => format!(
            "the program that arrived on {name} differs from the one that was sent (its SHA-256 is {rest}); its disk or memory \
             may be bad."
        ),
        _ => format!("{name} refused: {reply}."),
    }
}

/// The folders that did not fit, and why.
fn places(list: &str) -> String {
    let place = |word: &str| {
        let (place, why) = word.rsplit_once(':').unwrap_or((word, ""));
        let why = match why {
            "full" => "is full",
            "noexec" => "may not execute (noexec)",
            _ => "may not be written",
        };
        format!(" {place} {why}")
    };
    let places: Vec<String> = list.split_whitespace().map(place).collect();
    places.join(",")
}

/// Reason why a host was not reached, as a sentence, by the output of ssh. `verbose` is the command that shows more.
pub(crate) fn unreached(name: &str, verbose: &str, stderr: &str) -> String {
    let output = stderr.replace("\r\n", "\n");
    let last = output.lines().rfind(|line| !line.trim().is_empty());
    let last = last
        .unwrap_or("ssh said nothing")
        .trim()
        .trim_end_matches('.');
    if stderr.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        format!(
            "{name} has another host key than the one that is known, so that it may be another host; \
             find out why before you remove the old key with 'ssh-keygen -R'."
        )
    } else if stderr.contains("Host key verification failed") {
        format!(
            "the host key of {name} is not known; log in once with ssh and compare it, or put it into \
             known_hosts."
        )
    } else if stderr.contains("Permission denied") {
        format!("{name} accepts none of the available keys: {last}.")
    } else {
        format!("{name} was not reached: {last}; to see more: {verbose}")
    }
}
