//! What is asked of the user's own `aws` about instances, and what it answers.

use linux::exec::Exec;
use serde::Deserialize;

use super::super::super::hosts;

/// So many instances are asked for or terminated with one command (Amazon EC2 API Reference,
/// TerminateInstances: a batch should be small).
pub(super) const BATCH: usize = 50;
/// What EC2 says of a dry run that would have worked (Amazon EC2 API Reference, DryRun).
const WOULD: &str = "DryRunOperation";

/// Runs a program, and gives what it writes.
pub(in super::super) type RunProgram<'a> = &'a mut dyn FnMut(&Exec) -> Result<Vec<u8>, String>;

/// Runs a program that does not outlive this one.
///
/// # Errors
/// A sentence, where it fails.
pub(crate) fn really(program: &Exec) -> Result<Vec<u8>, String> {
    hosts::run(program)
}

/// Checks the permission with a dry run.
///
/// # Errors
/// A sentence, where these instances could not be terminated.
pub(crate) fn check_permission(ids: &[String], program: RunProgram<'_>) -> Result<(), String> {
    for batch in ids.chunks(BATCH) {
        match program(&command(batch).arg("--dry-run")) {
            // It always ends badly: well, too.
            Err(why) if why.contains(WOULD) => {}
            Ok(_) => {
                return Err(
                    "'aws ec2 terminate-instances --dry-run' did not say what it would do; nothing is \
                     terminated through such a program."
                        .to_owned(),
                );
            }
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Terminates instances, and gives what became of each that was answered for.
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

/// Ctrl-C in a terminal does not reach it: it could end when its request is sent and not answered.
fn command(ids: &[String]) -> Exec {
    Exec::new("aws")
        .args([
            "ec2",
            "terminate-instances",
            "--output",
            "json",
            "--instance-ids",
        ])
        .args(ids)
        .limit(hosts::LIMIT)
        .bound()
}

/// What `aws ec2 terminate-instances` answers (Amazon EC2 API Reference, TerminateInstances).
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
