//! A verb that overwrites disks on all hosts, after a single plan for all of them was shown and confirmed.
//!
//! Each host decides by its own rules whether a disk may be overwritten, twice: for the plan, and again when the disk
//! is opened for writing; a disk that is not the one in the plan is then refused. If one host refuses, nothing is
//! written on any host.

pub(crate) mod inspect;
pub(crate) mod targets;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::args::{FleetZeroArgs, ReachArgs, RunArgs, SourceArgs};
use crate::host_line::check;
use crate::reach::find;
use crate::run;
use crate::run::{HostWork, TimeLimits};
use crate::store::{FleetRun, HostOutcome, HostRun, RunKind};
use targets::DestroyTarget;
use ui::confirm::confirm;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome, listed};
use ui::json::Document;

/// Time limits of `look`: it writes nothing, so that there is little to wait for and nothing to undo. A host that
/// takes longer waits for a disk that does not answer, and delays the plan.
const INSPECTION: TimeLimits = TimeLimits {
    verb: Some(Duration::from_secs(60)),
    grace: Duration::from_secs(2),
};

/// A verb that overwrites something, and its hosts.
pub(crate) struct DestructiveVerb<'a> {
    /// Verb of `fleet`.
    pub kind: RunKind,
    /// Command that reports on each host what would be overwritten.
    pub inspection: Vec<String>,
    /// The verb and its arguments.
    pub words: Vec<String>,
    /// Time limits of the verb.
    pub limits: TimeLimits,
    /// Source of the hosts.
    pub source: &'a SourceArgs,
    /// True if only the hosts take part on which the verb did not complete the last time.
    pub retry_failed: bool,
    /// Connections to the hosts.
    pub reach: &'a ReachArgs,
    /// True if the plan was confirmed on the command line.
    pub yes: bool,
    /// True if the plan is only shown.
    pub dry_run: bool,
    /// True if the output is a JSON document.
    pub json: bool,
}

impl<'a> DestructiveVerb<'a> {
    /// The `fleet run` of a verb that overwrites something; `None` if it overwrites nothing.
    ///
    /// # Errors
    /// Refused, if the verb cannot run on hosts.
    pub(crate) fn of_run(args: &'a RunArgs) -> Result<Option<DestructiveVerb<'a>>, Failure> {
        let words = check::checked(&args.verb, args.json)?;
        Ok(check::inspection(&words).map(|inspection| DestructiveVerb {
            kind: RunKind::Run,
            inspection,
            words,
            limits: TimeLimits::of_verb(args.limit),
            source: &args.source,
            retry_failed: args.retry_failed,
            reach: &args.reach,
            yes: args.yes,
            dry_run: args.dry_run,
            json: args.json,
        }))
    }

    /// The `fleet zero` of these arguments.
    ///
    /// # Errors
    /// Refused, if the arguments of `zero` are invalid.
    pub(crate) fn of_zero(args: &'a FleetZeroArgs) -> Result<DestructiveVerb<'a>, Failure> {
        Ok(DestructiveVerb {
            kind: RunKind::Zero,
            inspection: check::zero(&args.zero, true)?,
            words: check::zero(&args.zero, false)?,
            limits: TimeLimits::NONE,
            source: &args.source,
            retry_failed: false,
            reach: &args.reach,
            yes: args.yes,
            dry_run: args.dry_run,
            json: args.json,
        })
    }

    /// Makes the plan, asks for confirmation, and runs the verb.
    pub(crate) fn carry_out(self, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
        let mut found = find(self.source)?;
        if self.retry_failed {
            found.hosts = run::failed(found.hosts, (RunKind::Run, &self.words), context)?;
        }
        for one in &found.left_out {
            context.notice(one);
        }
        let inspection = HostWork {
            limits: INSPECTION,
            ..HostWork::same_for_all(self.kind, self.inspection.clone())
        };
        let plan = run::on_all(inspection, &found.hosts, self.reach, context, interrupt)?;
        let (disks, refusals) = (targets_of(&plan), refusals(&plan));
        let shown = || targets::table(&disks, &self.heading(), context.columns);
        if self.dry_run || !refusals.is_empty() {
            let shown = if self.json { as_json(&plan) } else { shown() };
            context.print(&shown)?;
        } else {
            context.notice(&shown());
        }
        if interrupt.load(Relaxed) {
            return Err(Failure::refused("interrupted; nothing was written"));
        }
        if !refusals.is_empty() {
            return Err(Failure::refused(format!(
                "nothing is written on any host, since some refuse; leave them out with --exclude:{}",
                listed(&refusals)
            )));
        }
        if self.dry_run {
            return Ok(CommandEnd::Done);
        }
        if !self.yes {
            let lost = format!(
                "All that is on these {} will be lost.",
                targets::count(&disks)
            );
            if !confirm(&lost, "written", interrupt)? {
                return Err(Failure::refused("nothing was written"));
            }
        }
        let work = HostWork {
            own: plan.hosts.iter().map(binding_options).collect(),
            limits: self.limits,
            ..HostWork::same_for_all(self.kind, self.words)
        };
        let done = run::on_all(work, &found.hosts, self.reach, context, interrupt)?;
        run::answer(&done, self.json, context, interrupt)
    }

    /// Heading of the plan.
    fn heading(&self) -> String {
        match self.words.first().map(String::as_str) {
            Some("zero") => "This would be zeroed".to_owned(),
            verb => format!("'{}' would overwrite this", verb.unwrap_or_default()),
        }
    }
}

/// The disks that a host would overwrite.
fn disks_of(host: &HostRun) -> Vec<DestroyTarget> {
    let disks = host.answer["disks"].as_array().into_iter().flatten();
    disks
        .map(|said| DestroyTarget::of(&host.host, host.zone.as_deref(), said))
        .collect()
}

/// The disks of the plan.
fn targets_of(plan: &FleetRun) -> Vec<DestroyTarget> {
    plan.hosts.iter().flat_map(disks_of).collect()
}

/// Options that bind a host's work to the plan: the identity of each of its disks. Another disk with the same name is
/// refused on the host when it is opened.
fn binding_options(host: &HostRun) -> Vec<String> {
    disks_of(host)
        .iter()
        .flat_map(DestroyTarget::binding_options)
        .collect()
}

/// Reasons why hosts refuse, as sentences.
fn refusals(plan: &FleetRun) -> Vec<String> {
    let refusal = |host: &HostRun| {
        let disks = disks_of(host);
        // Without the identity of a disk, another one could be overwritten in its place.
        let are_known = !disks.is_empty() && disks.iter().all(|disk| disk.seen.is_some());
        let is_well = host.outcome == HostOutcome::Done && are_known;
        let why = host
            .why
            .as_deref()
            .unwrap_or("it did not report what it would do.");
        (!is_well).then(|| format!("{}: {why}", host.host))
    };
    plan.hosts.iter().filter_map(refusal).collect()
}

/// Body of the document of a plan.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanBody<'a> {
    /// Always true: nothing was overwritten.
    dry_run: bool,
    /// Id of the run that asked the hosts.
    fleet: &'a str,
    /// The hosts, in the order of their source.
    hosts: Vec<HostPlan<'a>>,
}

/// Disks of a host that would be overwritten, or why there is no answer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostPlan<'a> {
    /// Name of the host.
    host: &'a str,
    /// The zone, such as `us-east-1a`; `null` where it is not known.
    zone: Option<&'a str>,
    /// The instance type, such as `i4i.large`; `null` where it is not known.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// Id of its instance; `null` where it is not known.
    id: Option<&'a str>,
    /// Outcome: `waiting`, `done`, `no` (done, and the answer is no), `refused`, `failed`, `unreached`, `unfit` (no
    /// agent can run there), `busy` (another run measures there), `lost` (the connection broke) or `interrupted`.
    #[serde(rename = "came")]
    outcome: &'static str,
    /// Reason why it would not do it, as a sentence; `null` where it would.
    why: Option<&'a str>,
    /// Disks that would be overwritten, as the host reports them; `null` where it did not.
    disks: &'a Value,
}

/// The plan as one JSON document.
fn as_json<'a>(plan: &'a FleetRun) -> String {
    let host = |host: &'a HostRun| HostPlan {
        host: &host.host,
        zone: host.zone.as_deref(),
        kind: host.kind.as_deref(),
        id: host.id.as_deref(),
        outcome: host.outcome.name(),
        why: host.why.as_deref(),
        disks: &host.answer["disks"],
    };
    let body = PlanBody {
        dry_run: true,
        fleet: &plan.id,
        hosts: plan.hosts.iter().map(host).collect(),
    };
    format!("{:#}", Document::of(plan.kind.name(), body))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hosts::Host;

    fn host(outcome: HostOutcome, answer: Value) -> HostRun {
        let host = Host {
            name: "h".to_owned(),
            ..Host::default()
        };
        HostRun {
            outcome,
            answer,
            ..HostRun::waiting(&host)
        }
    }

    fn seen(boot: &str) -> Value {
        json!({ "boot": boot, "diskseq": null, "number": "8:0", "identity": null, "size_bytes": 1 })
    }

    #[test]
    fn the_work_is_bound_to_the_disks_of_the_plan() {
        let disk = |path: &str, boot: &str| json!({ "path": path, "seen": seen(boot) });
        let answer = json!({ "disks": [disk("/dev/a", "b1"), disk("/dev/b", "b2")] });
        let options = binding_options(&host(HostOutcome::Done, answer));
        assert_eq!(options.len(), 4);
        assert_eq!(
            (options[0].as_str(), options[2].as_str()),
            ("--planned", "--planned")
        );
        let second: Value = serde_json::from_str(&options[3]).unwrap();
        assert_eq!(second, disk("/dev/b", "b2"));
    }

    #[test]
    fn a_host_that_does_not_report_its_disks_is_refused() {
        let well = json!({ "disks": [{ "path": "/dev/a", "seen": seen("b") }] });
        let blind = json!({ "disks": [{ "path": "/dev/a" }] });
        let plan = |outcome, answer: &Value| FleetRun {
            id: "f".to_owned(),
            began: jiff::Timestamp::UNIX_EPOCH,
            kind: RunKind::Zero,
            args: Vec::new(),
            hosts: vec![host(outcome, answer.clone())],
            race: None,
        };
        assert_eq!(refusals(&plan(HostOutcome::Done, &well)), [""; 0]);
        for bad in [
            plan(HostOutcome::Done, &blind),
            plan(HostOutcome::Done, &json!({ "disks": [] })),
            plan(HostOutcome::Done, &json!("text")),
            plan(HostOutcome::Lost, &well),
            plan(HostOutcome::Interrupted, &well),
        ] {
            assert_eq!(refusals(&bad).len(), 1, "{bad:?}");
        }
    }
}
