//! The user's own `aws ec2 terminate-instances`.

use linux::exec::Exec;
use serde::Deserialize;

use super::{BATCH, RunProgram};
use crate::fleet::hosts::{self, Host};

/// What EC2 says of a dry run that would have worked (Amazon EC2 API Reference, DryRun).
const WOULD: &str = "DryRunOperation";

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

/// The ids that the source of the hosts knows.
pub(crate) fn ids_of(hosts: &[Host]) -> Vec<String> {
    hosts.iter().filter_map(|host| host.id.clone()).collect()
}

/// Runs a program that does not outlive this one.
///
/// # Errors
/// A sentence, where it fails.
pub(crate) fn really(program: &Exec) -> Result<Vec<u8>, String> {
    hosts::run(program)
}

/// Terminates instances of these ids.
pub(super) fn command(ids: &[String]) -> Exec {
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
        // Ctrl-C must not end it between what it asks for and what it is told.
        .bound()
}

/// What `aws ec2 terminate-instances` answers (Amazon EC2 API Reference, TerminateInstances).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Answer {
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

impl Answer {
    /// The state of an instance, where it is in the answer.
    pub(super) fn of(&self, id: &str) -> Option<String> {
        let change = self
            .terminating_instances
            .iter()
            .find(|one| one.instance_id == id)?;
        change.current_state.as_ref()?.name.clone()
    }
}
