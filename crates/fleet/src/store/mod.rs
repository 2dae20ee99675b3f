//! Results of a verb on hosts, as stored in the ledger.

pub(crate) mod answers;
pub(crate) mod past;
pub(crate) mod race;
pub(crate) mod termination;

use jiff::Timestamp;
use ledger::LongWork;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connection::ConnectionError;
use crate::hosts::Host;
use crate::protocol::{EndedBy, EndedVerb, HostFacts};
use race::RaceRecord;

/// Maximum number of characters kept from the end of a verb's standard error.
const MAX_STDERR_CHARS: usize = 2000;

impl FleetRun {
    /// Name of the host with this index; empty if there is none.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.hosts.get(place).map_or("", |host| &host.host)
    }

    /// Merges answers of the same run that were stored beside it.
    pub(crate) fn merge(&mut self, late: FleetRun) {
        for host in late.hosts {
            match self.hosts.iter_mut().find(|own| own.host == host.host) {
                // Facts about the host from other sources than its answer stay.
                Some(own) => {
                    *own = HostRun {
                        address: own.address.clone(),
                        zone: own.zone.clone(),
                        kind: own.kind.clone(),
                        id: own.id.clone(),
                        clock_ahead_s: own.clock_ahead_s,
                        notes: own.notes.clone(),
                        collected: own.collected.clone(),
                        ..host
                    };
                }
                None => self.hosts.push(host),
            }
        }
    }
}

/// Verb of `fleet`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunKind {
    /// `fleet run`.
    #[default]
    Run,
    /// `fleet exec`.
    Exec,
    /// `fleet zero`.
    Zero,
    /// `fleet race`.
    Race,
}

impl RunKind {
    /// The name in documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RunKind::Run => "fleet run",
            RunKind::Exec => "fleet exec",
            RunKind::Zero => "fleet zero",
            RunKind::Race => "fleet race",
        }
    }
}

/// A verb on many hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FleetRun {
    /// Id of the run.
    pub id: String,
    /// Start.
    pub began: Timestamp,
    /// Verb of `fleet`.
    #[serde(default)]
    pub kind: RunKind,
    /// The verb and its arguments.
    pub args: Vec<String>,
    /// The hosts, in the order of their source.
    pub hosts: Vec<HostRun>,
    /// Measurements of a race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Box<RaceRecord>>,
}

impl LongWork for FleetRun {
    const KIND: &'static str = "fleet";
    const FORM: u32 = 1;
}

/// Result of a verb on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostOutcome {
    /// The result is not known yet.
    Waiting,
    /// The verb is done.
    Done,
    /// The verb is done, and its answer is no.
    No,
    /// The verb refused, and touched nothing.
    Refused,
    /// The verb failed midway.
    Failed,
    /// The host was not reached.
    Unreached,
    /// No agent can run on the host.
    Unfit,
    /// Another run or race of a fleet measures on the host.
    Busy,
    /// The connection was lost on the way.
    Lost,
    /// The user interrupted it.
    Interrupted,
}

impl HostOutcome {
    /// The name in documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            HostOutcome::Waiting => "waiting",
            HostOutcome::Done => "done",
            HostOutcome::No => "no",
            HostOutcome::Refused => "refused",
            HostOutcome::Failed => "failed",
            HostOutcome::Unreached => "unreached",
            HostOutcome::Unfit => "unfit",
            HostOutcome::Busy => "busy",
            HostOutcome::Lost => "lost",
            HostOutcome::Interrupted => "interrupted",
        }
    }

    /// True if nothing was changed on the host.
    pub(crate) fn is_untouched(self) -> bool {
        matches!(
            self,
            HostOutcome::Refused
                | HostOutcome::Unreached
                | HostOutcome::Unfit
                | HostOutcome::Busy
                | HostOutcome::Waiting
        )
    }
}

/// A host, and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostRun {
    /// Name of the host.
    pub host: String,
    /// Address given to ssh.
    pub address: String,
    /// Zone of the host; `None` if unknown.
    pub zone: Option<String>,
    /// Instance type of the host; `None` if unknown.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Id of its instance; `None` if unknown.
    pub id: Option<String>,
    /// Result of the verb on it.
    #[serde(rename = "came")]
    pub outcome: HostOutcome,
    /// Reason, as a sentence, if it did not succeed.
    pub why: Option<String>,
    /// Further notes, as sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The verb's exit status, if it has one.
    pub status: Option<i32>,
    /// Run time, in seconds.
    pub seconds: Option<f64>,
    /// Seconds by which its clock is ahead of this host's; `None` where it was not compared.
    pub clock_ahead_s: Option<f64>,
    /// The verb's answer, a JSON document or text.
    pub answer: Value,
    /// The end of the verb's standard error.
    pub stderr: String,
    /// Ids in the ledger of the runs that it measured.
    pub runs: Vec<String>,
    /// Ids of earlier fleet runs whose kept answers were collected from it.
    pub collected: Vec<String>,
}

impl HostRun {
    /// A host without a result yet.
    pub(crate) fn waiting(host: &Host) -> HostRun {
        HostRun {
            host: host.name.clone(),
            address: host.address.clone(),
            zone: host.zone.clone(),
            kind: host.kind.clone(),
            id: host.id.clone(),
            outcome: HostOutcome::Waiting,
            why: None,
            notes: Vec::new(),
            status: None,
            seconds: None,
            clock_ahead_s: None,
            answer: Value::Null,
            stderr: String::new(),
            runs: Vec::new(),
            collected: Vec::new(),
        }
    }

    /// True where the verb may have begun on it.
    pub(crate) fn has_begun(&self) -> bool {
        match self.outcome {
            HostOutcome::Interrupted => self.seconds.is_some(),
            outcome => !outcome.is_untouched(),
        }
    }

    /// Adds the verb's results, without the runs themselves.
    pub(crate) fn take(&mut self, ended: &EndedVerb) {
        self.outcome = match (ended.by, ended.status) {
            (EndedBy::Loss, _) => HostOutcome::Lost,
            (EndedBy::Order, _) => HostOutcome::Interrupted,
            (EndedBy::Itself, Some(0)) => HostOutcome::Done,
            // The meaning of another program's status is unknown.
            (EndedBy::Itself, _) if ended.order.program => HostOutcome::Failed,
            (EndedBy::Itself, Some(1)) => HostOutcome::No,
            (EndedBy::Itself, Some(2)) => HostOutcome::Refused,
            (EndedBy::Itself, _) => HostOutcome::Failed,
        };
        self.status = ended.status;
        self.seconds = Some(ended.seconds);
        self.answer = ended.answer.clone();
        let excess = ended
            .stderr
            .chars()
            .count()
            .saturating_sub(MAX_STDERR_CHARS);
        self.stderr = ended.stderr.chars().skip(excess).collect();
        self.runs = ended.runs.iter().map(|run| run.id.to_string()).collect();
        self.why = match self.outcome {
            HostOutcome::Failed if ended.order.program => {
                Some(program_reason(&self.stderr, ended.status))
            }
            HostOutcome::Refused | HostOutcome::Failed => Some(reason(&self.stderr, ended.status)),
            HostOutcome::Lost => Some(format!(
                "the connection was lost; the answer after {:.0} s was kept on the host and is \
                 collected.",
                ended.seconds
            )),
            HostOutcome::Interrupted => Some("it was ended by a signal.".to_owned()),
            _ => None,
        };
    }

    /// Adds the facts from the host's cloud. They take precedence over those of the source, which may be outdated.
    ///
    /// # Errors
    /// Unfit, if the address now belongs to another instance: measurements of this one must not be attributed to the
    /// other, which may be terminated for it.
    pub(crate) fn take_facts(&mut self, facts: &HostFacts) -> Result<(), ConnectionError> {
        let Some(cloud) = &facts.cloud else {
            return Ok(());
        };
        if let (Some(listed), Some(own)) = (&self.id, &cloud.instance_id)
            && listed != own
        {
            return Err(ConnectionError::Unfit(format!(
                "{} calls itself {own}, and it was given as {listed}: another instance has its address \
                 now; correct the list, or leave the host out with --exclude.",
                self.host
            )));
        }
        self.id = self.id.take().or_else(|| cloud.instance_id.clone());
        let notes = &mut self.notes;
        let mut take = |what: &str, known: &mut Option<String>, own: &Option<String>| {
            let Some(own) = own else { return };
            if let Some(listed) = known.replace(own.clone()).filter(|listed| listed != own) {
                notes.push(format!(
                    "its {what} is {own}, and was given as {listed}, which does not count."
                ));
            }
        };
        take("zone", &mut self.zone, &cloud.zone);
        take("type", &mut self.kind, &cloud.instance_type);
        Ok(())
    }

    /// Sets the outcome for a connection error.
    pub(crate) fn set_failure(&mut self, trouble: &ConnectionError) {
        self.outcome = match trouble {
            ConnectionError::Unreached(_) => HostOutcome::Unreached,
            ConnectionError::Unfit(_) => HostOutcome::Unfit,
            ConnectionError::Busy(_) => HostOutcome::Busy,
            ConnectionError::Lost(_) => HostOutcome::Lost,
            ConnectionError::Interrupted => HostOutcome::Interrupted,
        };
        self.why = Some(match trouble {
            ConnectionError::Interrupted => "it was ended by a signal before it began.".to_owned(),
            trouble => trouble.to_string(),
        });
    }
}

/// Reason why a program failed: the last line of its standard error, or its status.
fn program_reason(stderr: &str, status: Option<i32>) -> String {
    let last = stderr.lines().rfind(|line| !line.trim().is_empty());
    let ended = status.map_or_else(
        || "it was killed".to_owned(),
        |status| format!("it ended with status {status}"),
    );
    match last {
        Some(line) => format!("{ended}: {}", line.trim()),
        None => format!("{ended}."),
    }
}

/// Reason why a verb failed: the end of its standard error, from the last line that begins like an error of this
/// program.
fn reason(stderr: &str, status: Option<i32>) -> String {
    let lines: Vec<&str> = stderr.lines().collect();
    let begins = lines
        .iter()
        .rposition(|line| line.starts_with("disksmith: "));
    let begins = begins.or_else(|| lines.iter().rposition(|line| line.starts_with("error:")));
    let message = match begins {
        Some(at) => lines.get(at..).unwrap_or_default().join("\n"),
        None => lines
            .last()
            .map_or_else(String::new, |line| (*line).to_owned()),
    };
    let message = message.trim().trim_start_matches("disksmith: ");
    match (message, status) {
        ("", Some(status)) => format!("it ended with status {status} and without a message."),
        ("", None) => "it was killed.".to_owned(),
        (message, _) => message.to_owned(),
    }
}

/// The jobs of the ledger in this file.
#[cfg(test)]
pub(crate) fn store_at(path: &std::path::Path) -> job::JobStore {
    let etc = std::path::Path::new("/etc");
    let identity = job::ProcessIdentity::of_process(&linux::Root::host(), etc).unwrap();
    job::JobStore::new(ledger::Ledger::open(path).unwrap(), identity)
}

/// Writes finished runs to the ledger in this file.
#[cfg(test)]
pub(crate) fn put_finished(path: &std::path::Path, runs: &[FleetRun]) {
    let mut store = store_at(path);
    for run in runs {
        let job = job::OwnedJob::begin(&mut store, &run.id, run, job::Takeover::FromDead).unwrap();
        job.finish(run).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use record::Cloud;

    use super::*;
    use crate::protocol::VerbRequest;

    fn ended(by: EndedBy, status: Option<i32>, stderr: &str) -> EndedVerb {
        EndedVerb {
            name: "n".to_owned(),
            order: VerbRequest {
                fleet: "f".to_owned(),
                host: "h".to_owned(),
                args: Vec::new(),
                program: false,
            },
            by,
            status,
            seconds: 2.0,
            answer: Value::Null,
            stderr: stderr.to_owned(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn the_outcome_follows_from_the_exit_status() {
        let mut host = HostRun::waiting(&Host::default());
        for (by, status, outcome) in [
            (EndedBy::Itself, Some(0), HostOutcome::Done),
            (EndedBy::Itself, Some(1), HostOutcome::No),
            (EndedBy::Itself, Some(2), HostOutcome::Refused),
            (EndedBy::Itself, Some(3), HostOutcome::Failed),
            (EndedBy::Itself, None, HostOutcome::Failed),
            (EndedBy::Order, Some(3), HostOutcome::Interrupted),
            (EndedBy::Loss, Some(0), HostOutcome::Lost),
        ] {
            host.take(&ended(by, status, ""));
            assert_eq!(host.outcome, outcome);
        }
    }

    #[test]
    fn the_reason_is_the_last_message_of_the_verb() {
        let stderr = "note\ndisksmith: it is refused:\n  - mounted\n  - swap\n";
        assert_eq!(
            reason(stderr, Some(2)),
            "it is refused:\n  - mounted\n  - swap"
        );
        assert_eq!(
            reason("", Some(3)),
            "it ended with status 3 and without a message."
        );
        assert_eq!(reason("", None), "it was killed.");
        assert_eq!(reason("error: x\n\nUsage", Some(2)), "error: x\n\nUsage");
    }

    fn know_of(id: Option<&str>, zone: Option<&str>) -> (HostRun, Result<(), ConnectionError>) {
        let mut host = HostRun::waiting(&Host {
            name: "db1".to_owned(),
            id: id.map(str::to_owned),
            zone: zone.map(str::to_owned),
            ..Host::default()
        });
        let facts = HostFacts {
            cloud: Some(Cloud {
                provider: "aws".to_owned(),
                instance_type: Some("i4i.large".to_owned()),
                zone: Some("us-east-1b".to_owned()),
                instance_id: Some("i-new".to_owned()),
            }),
            ..HostFacts::default()
        };
        let known = host.take_facts(&facts);
        (host, known)
    }

    #[test]
    fn facts_of_the_cloud_count_more_than_those_of_the_list() {
        let (host, known) = know_of(None, None);
        assert_eq!(known, Ok(()));
        assert_eq!(host.id.as_deref(), Some("i-new"));
        assert_eq!(host.notes, [""; 0]);
        let (host, known) = know_of(Some("i-new"), Some("us-east-1a"));
        assert_eq!(known, Ok(()));
        assert_eq!(host.zone.as_deref(), Some("us-east-1b"));
        assert_eq!(
            host.notes,
            ["its zone is us-east-1b, and was given as us-east-1a, which does not count."]
        );
    }

    #[test]
    fn a_host_that_is_another_instance_than_the_list_s_is_left_alone() {
        let (_, known) = know_of(Some("i-old"), None);
        let Err(ConnectionError::Unfit(why)) = known else {
            panic!("{known:?}")
        };
        assert!(
            why.contains("calls itself i-new, and it was given as i-old"),
            "{why}"
        );
    }

    #[test]
    fn documents_of_earlier_versions_are_read() {
        let text = r#"{"id": "f", "began": "2026-03-01T10:15:00Z", "args": ["zero"], "hosts": [{"host": "db1",
            "address": "db1", "zone": null, "type": "t", "id": "i-1", "came": "no", "why": null, "status": 1,
            "seconds": 2.5, "clock_ahead_s": null, "answer": null, "stderr": "", "runs": [], "collected": []}]}"#;
        let run: FleetRun = serde_json::from_str(text).unwrap();
        assert_eq!(
            (run.kind, run.hosts[0].outcome),
            (RunKind::Run, HostOutcome::No)
        );
        let text = r#"{"doomed": [{"host": "db1", "id": "i-1", "why": "w", "state": "terminated"}], "spared": []}"#;
        let termination: termination::Termination = serde_json::from_str(text).unwrap();
        assert_eq!(termination.targets[0].state.as_deref(), Some("terminated"));
        let text = r#"{"path": "/a", "device": null, "model": null, "serial": null, "size_bytes": 1, "doomed":
            {"content": ["ext4"], "seen": {"boot": "b", "diskseq": 1, "number": "8:0", "identity": null,
            "size_bytes": 1}}}"#;
        let target: crate::protocol::rounds::TargetFacts = serde_json::from_str(text).unwrap();
        assert!(target.overwritten.is_some());
    }
}
