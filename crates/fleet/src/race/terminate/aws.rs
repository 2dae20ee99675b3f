//! Commands of the user's own `aws` for instances, and their answers.

use linux::aws::{self, RunProgram};
use linux::exec::Exec;
use serde_json::Value;
use ui::exit::Failure;

/// Maximum number of instances that one command describes or terminates (Amazon EC2 API Reference, TerminateInstances:
/// a batch should be small).
pub(super) const BATCH: usize = 50;
/// Error code of a successful dry run (Amazon EC2 API Reference, DryRun).
const DRY_RUN_SUCCESS_CODE: &str = "DryRunOperation";

/// A dry run that did not end with the error code for success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DryRunError {
    /// Message for the user, with advice.
    pub why: String,
    /// Instances that may already be terminated: the command for them succeeded, which a dry run never does.
    pub may_be_gone: Vec<String>,
}

impl DryRunError {
    /// The failure before a race: nothing was changed, unless an instance may be terminated.
    pub(crate) fn before_race(self) -> Failure {
        let why = anyhow::Error::msg(self.why);
        if self.may_be_gone.is_empty() {
            Failure::Refused(why)
        } else {
            Failure::Midway(why)
        }
    }
}

/// Checks the permission with a dry run, for a single instance first: if the command is no dry run, it must not end
/// the others too.
///
/// # Errors
/// If these instances could not be terminated, or the first of them may have been.
pub(crate) fn check_permission(ids: &[String], program: RunProgram<'_>) -> Result<(), DryRunError> {
    let (first, others) = ids.split_at(ids.len().min(1));
    for batch in first.chunks(1).chain(others.chunks(BATCH)) {
        let error = match program(&command(batch).arg("--dry-run")) {
            // A dry run always ends with an error, also if it is successful.
            Err(why) if why.code() == Some(DRY_RUN_SUCCESS_CODE) => continue,
            Err(why) => DryRunError {
                why: why.to_string(),
                may_be_gone: Vec::new(),
            },
            Ok(_) => DryRunError {
                why: format!(
                    "'aws ec2 terminate-instances --dry-run' succeeded, which a dry run never does: the state of {} \
                     is unknown; check it with 'aws ec2 describe-instances --instance-ids {}'. Nothing else is \
                     terminated through such a program.",
                    batch.join(", "),
                    batch.join(" ")
                ),
                may_be_gone: batch.to_vec(),
            },
        };
        return Err(error);
    }
    Ok(())
}

/// Terminates instances, and returns the state of each that the answer has.
///
/// # Errors
/// A sentence, if the command fails or gives another answer. The instances may be terminated then: the request may
/// have been sent, and EC2 terminates those that it can before it fails for others (Amazon EC2 API Reference,
/// TerminateInstances).
pub(super) fn terminate(
    ids: &[String],
    program: RunProgram<'_>,
) -> Result<Vec<(String, String)>, String> {
    let answer: Value = aws::answer(&command(ids), program).map_err(|why| why.to_string())?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let changes = answer["TerminatingInstances"].as_array();
    let state = |change: &Value| {
        let state = text(&change["CurrentState"]["Name"])?;
        Some((text(&change["InstanceId"])?, state))
    };
    Ok(changes.into_iter().flatten().filter_map(state).collect())
}

fn command(ids: &[String]) -> Exec {
    aws::command(&["ec2", "terminate-instances"])
        .arg("--instance-ids")
        .args(ids)
}
