//! Commands of the user's own `aws` about instances, and their answers.

use linux::aws;
use linux::exec::Exec;
use serde::Deserialize;

use ui::exit::Failure;

/// Instances that one command describes or terminates (Amazon EC2 API Reference, TerminateInstances: a batch
/// should be small).
pub(super) const BATCH: usize = 50;
/// Error code of a dry run that would have worked (Amazon EC2 API Reference, DryRun).
const WOULD: &str = "DryRunOperation";

/// Runs a program, and gives what it writes.
pub(crate) type RunProgram<'a> = &'a mut dyn FnMut(&Exec) -> Result<Vec<u8>, String>;

/// Runs a program that does not outlive this one.
///
/// # Errors
/// A sentence, where it fails.
pub(crate) fn really(program: &Exec) -> Result<Vec<u8>, String> {
    aws::run(program).map_err(|why| why.to_string())
}

/// Dry run that did not end with the error code of one that would have worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DryRunError {
    /// It is not allowed, or could not be asked; a sentence.
    Refused(String),
    /// It ended well, which no rehearsal does: these instances may be terminated by now.
    MayBeGone(Vec<String>),
}

impl DryRunError {
    /// Message for the user, with what to do.
    pub(super) fn sentence(&self) -> String {
        match self {
            DryRunError::Refused(why) => why.clone(),
            DryRunError::MayBeGone(ids) => format!(
                "'aws ec2 terminate-instances --dry-run' succeeded, which a dry run never does: the state of {} is unknown; check it with 'aws ec2 describe-instances --instance-ids {}'. Nothing else is \
                 terminated through such a program.",
                ids.join(", "),
                ids.join(" ")
            ),
        }
    }

    /// Failure before a race: it has touched nothing, unless there is doubt of it.
    pub(crate) fn before_race(self) -> Failure {
        let why = anyhow::Error::msg(self.sentence());
        match self {
            DryRunError::Refused(_) => Failure::Refused(why),
            DryRunError::MayBeGone(_) => Failure::Midway(why),
        }
    }
}

/// Checks the permission with a dry run, of one instance alone at first: a command that is no dry run for one must
/// not end the others too.
///
/// # Errors
/// Where these instances could not be terminated, or the first of them may be.
pub(crate) fn check_permission(ids: &[String], program: RunProgram<'_>) -> Result<(), DryRunError> {
    let (first, others) = ids.split_at(ids.len().min(1));
    for batch in first.chunks(1).chain(others.chunks(BATCH)) {
        match program(&command(batch).arg("--dry-run")) {
            // It always ends badly: well, too.
            Err(why) if why.contains(WOULD) => {}
            Ok(_) => return Err(DryRunError::MayBeGone(batch.to_vec())),
            Err(why) => return Err(DryRunError::Refused(why)),
        }
    }
    Ok(())
}

/// Terminates instances, and gives what happened to each that was answered for.
///
/// # Errors
/// A sentence, where the command fails or answers something else. The instances may be terminated then:
/// the request may have been sent, and EC2 terminates those that it can before it fails for others (Amazon
/// EC2 API Reference, TerminateInstances).
pub(super) fn terminate(
    ids: &[String],
    program: RunProgram<'_>,
) -> Result<Vec<(String, String)>, String> {
    let bytes = program(&command(ids))?;
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|why| {
        format!(
            "What 'aws ec2 terminate-instances' wrote is not the JSON that it should be: {why}."
        )
    })?;
    let changes = answer.terminating_instances.into_iter();
    let state = |change: Change| Some((change.instance_id, change.current_state?.name?));
    Ok(changes.filter_map(state).collect())
}

fn command(ids: &[String]) -> Exec {
    aws::command(&["ec2", "terminate-instances"])
        .arg("--instance-ids")
        .args(ids)
}

/// Answer of `aws ec2 terminate-instances` (Amazon EC2 API Reference, TerminateInstances).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    terminating_instances: Vec<Change>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Change {
    instance_id: String,
    current_state: Option<State>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    name: Option<String>,
}
