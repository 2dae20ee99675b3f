//! Plays, their findings, and the check of these.

/// A finding that comes so long before its cause, in seconds, is not of it: the clocks of the volumes
/// and of the machine's script begin within a second or two of each other.
const EARLY_S: f64 = 3.0;
/// A finding may come so long after its cause has ended.
const LATE_S: f64 = 15.0;

/// A cause that is played on some devices, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    /// The finding that it must raise; `None` where nothing may be found.
    pub(crate) cause: Option<&'static str>,
    /// The variant, for the reader.
    pub(crate) what: String,
    /// The devices that are its own, and `host` where the host as a whole is.
    pub(crate) on: Vec<String>,
    /// Those of them that have the cause: a finding of another one blames the wrong one.
    pub(crate) culprits: Vec<String>,
    /// The member that the sentence must begin with, where the finding is of an array.
    pub(crate) member: Option<String>,
    /// When the cause begins and ends, in seconds from the command's start.
    pub(crate) begins: u64,
    pub(crate) ends: u64,
    /// Further findings that the cause produces, which are true too.
    pub(crate) follows: &'static [&'static str],
}

impl Play {
    /// A cause that one device, or the host, has from one second to another.
    pub(crate) fn of(cause: &'static str, culprit: &str, begins: u64, ends: u64) -> Play {
        Play {
            cause: Some(cause),
            what: String::new(),
            on: vec![culprit.to_owned()],
            culprits: vec![culprit.to_owned()],
            member: None,
            begins,
            ends,
            follows: &[],
        }
    }

    /// Nothing, for so many seconds.
    pub(crate) fn nothing(on: Vec<String>, ends: u64) -> Play {
        Play {
            cause: None,
            what: String::new(),
            on,
            culprits: Vec::new(),
            member: None,
            begins: 0,
            ends,
            follows: &[],
        }
    }

    /// True if a finding is the expected one.
    fn is_met_by(&self, found: &Found) -> bool {
        let (begins, ends) = (self.begins as f64, self.ends as f64);
        let names = |member: &String| found.text.starts_with(&format!("{member} of "));
        self.cause == Some(&found.code)
            && self.culprits.contains(&found.name)
            && self.member.as_ref().is_none_or(names)
            && (begins - EARLY_S..ends + LATE_S).contains(&found.at)
    }
}

/// Findings of a play.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// The play.
    pub(crate) play: Play,
    /// Seconds from the beginning of the cause to the finding; `None` where it was not found.
    pub(crate) found: Option<f64>,
    /// Codes of other findings.
    pub(crate) others: Vec<String>,
}

/// A finding that began.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Its code, what it is of, and its sentence.
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) text: String,
    /// When it was said, in seconds from the beginning.
    pub(crate) at: f64,
}

/// The findings of a play among all findings.
pub(crate) fn judge(play: &Play, found: &[Found]) -> Verdict {
    let is_own = |found: &&Found| play.on.contains(&found.name);
    let own = || found.iter().filter(is_own);
    let first = own().find(|found| play.is_met_by(found));
    let others =
        own().filter(|found| !play.is_met_by(found) && !play.follows.contains(&&*found.code));
    Verdict {
        play: play.clone(),
        found: first.map(|found| found.at - play.begins as f64),
        others: others
            .map(|found| {
                println!("  also at {:.0} s: {}", found.at, found.text);
                found.code.clone()
            })
            .collect(),
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Play {
            cause, what, on, ..
        } = &self.play;
        let found = match (cause, self.found) {
            (None, _) => String::new(),
            (_, None) => ", NOT found".to_owned(),
            (_, Some(seconds)) => format!(", found after {seconds:.0} s"),
        };
        write!(
            f,
            "{} ({what}) on {}{found}",
            cause.unwrap_or("nothing"),
            on.join(" ")
        )?;
        if self.others.is_empty() {
            return Ok(());
        }
        write!(f, "; also {}", self.others.join(", "))
    }
}

#[test]
fn a_finding_counts_only_of_whom_it_is() {
    let on = ["vda", "vdb", "md0"].map(str::to_owned).to_vec();
    let play = Play {
        on,
        ..Play::of("slow-member", "vdb", 10, 60)
    };
    let found = |code: &str, name: &str, at: f64| Found {
        code: code.to_owned(),
        name: name.to_owned(),
        text: String::new(),
        at,
    };
    let right = judge(&play, &[found("slow-member", "vdb", 30.0)]);
    assert_eq!((right.found, right.others.len()), (Some(20.0), 0));
    for wrong in [
        found("slow-member", "vda", 30.0),
        found("slow-member", "md0", 30.0),
        found("slow-member", "vdb", 2.0),
        found("imbalance", "vdb", 30.0),
    ] {
        let verdict = judge(&play, &[wrong]);
        assert_eq!((verdict.found, verdict.others.len()), (None, 1));
    }
    let elsewhere = judge(&play, &[found("slow-member", "vdc", 30.0)]);
    assert_eq!((elsewhere.found, elsewhere.others.len()), (None, 0));
}

#[test]
fn a_finding_of_an_array_must_name_the_member() {
    let play = Play {
        member: Some("vda".to_owned()),
        ..Play::of("imbalance", "md0", 0, 60)
    };
    let said_of = |member: &str| {
        let found = Found {
            code: "imbalance".to_owned(),
            name: "md0".to_owned(),
            text: format!("{member} of md0 is asked for more."),
            at: 30.0,
        };
        judge(&play, &[found]).found
    };
    assert_eq!(said_of("vda"), Some(30.0));
    assert_eq!(said_of("vdab"), None);
}
