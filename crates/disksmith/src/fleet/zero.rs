//! `fleet zero`: `zero` on all hosts, after one plan of all was shown and agreed to.
//!
//! Each host decides by its own rules whether a disk may be overwritten, twice: for the plan, and
//! again when the disk is opened to be written; a disk that is not the one that was shown then is refused.
//! Where one host refuses, nothing is written anywhere.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use record::Bytes;
use serde_json::{Value, json};

use super::agree::{is_agreed, must_be_askable};
use super::find;
use super::run::{self, Came, FleetRun, HostRun, Kind, Limits, Work};
use crate::cli::FleetZeroArgs;
use crate::context::{Context, printable};
use crate::failure::{Answer, Failure, Outcome, listed};
use crate::render::json::SCHEMA;
use crate::render::table::{Column, layout, wrap};

/// A rehearsal looks at the disks and writes nothing, so that there is little to wait for and nothing to
/// undo; one that takes longer waits for a disk that answers nothing, and holds up the plan of all.
const REHEARSAL: Limits = Limits {
    verb: Some(Duration::from_secs(60)),
    grace: Duration::from_secs(2),
};

/// Zeroes disks on all hosts.
pub(super) fn zero(args: &FleetZeroArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let words = |is_rehearsal| run::words_of_zero(&args.zero, is_rehearsal);
    let (rehearsal, work) = (words(true)?, words(false)?);
    let found = find(&args.source)?;
    for one in &found.left_out {
        context.tell(one);
    }
    let rehearsal = Work {
        limits: REHEARSAL,
        ..Work::alike(Kind::Zero, rehearsal)
    };
    let plan = run::on_all(rehearsal, &found.hosts, &args.reach, context, interrupt)?;
    let refusals = refusals(&plan);
    if args.dry_run || !refusals.is_empty() {
        let plan = if args.json {
            as_json(&plan)
        } else {
            as_text(&plan, context.columns)
        };
        context.print(&plan)?;
    } else {
        context.tell(&as_text(&plan, context.columns));
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
    if args.dry_run {
        return Ok(Answer::Done);
    }
    let lost = format!(
        "All that is on these {} disks of {} hosts will be lost.",
        disks(&plan).len(),
        plan.hosts.len()
    );
    if !args.yes {
        must_be_askable("written")?;
        if !is_agreed(&lost, "written", interrupt)? {
            return Err(Failure::refused("nothing was written"));
        }
    }
    let work = Work {
        own: plan.hosts.iter().map(planned).collect(),
        ..Work::alike(Kind::Zero, work)
    };
    let done = run::on_all(work, &found.hosts, &args.reach, context, interrupt)?;
    run::answer(&done, args.json, context, interrupt)
}

/// Why hosts do not zero, as sentences.
fn refusals(plan: &FleetRun) -> Vec<String> {
    let refusal = |host: &HostRun| {
        let disks = host.answer["disks"].as_array();
        // Without what was seen of a disk, another could be written in its place.
        let are_known =
            disks.is_some_and(|disks| disks.iter().all(|disk| disk["seen"].is_object()));
        let is_well = host.came == Came::Done && are_known;
        let why = host
            .why
            .as_deref()
            .unwrap_or("it did not say what it would do.");
        (!is_well).then(|| format!("{}: {why}", host.host))
    };
    plan.hosts.iter().filter_map(refusal).collect()
}

/// The options that bind a host's work to the plan: what was seen of each of its disks. A disk that has
/// come under the name of one of them since is refused on the host when it is opened.
fn planned(host: &HostRun) -> Vec<String> {
    let disks = host.answer["disks"].as_array().into_iter().flatten();
    disks
        .flat_map(|disk| ["--planned".to_owned(), disk["seen"].to_string()])
        .collect()
}

/// The disks of the plan, each with its host.
fn disks(plan: &FleetRun) -> Vec<(&HostRun, &Value)> {
    let hosts = plan.hosts.iter();
    hosts
        .flat_map(|host| {
            let disks = host.answer["disks"].as_array().into_iter().flatten();
            disks.map(move |disk| (host, disk))
        })
        .collect()
}

const COLUMNS: [Column; 8] = [
    Column::words("host"),
    Column::words("zone").ranked(3),
    Column::words("disk"),
    Column::numbers("size", 0),
    Column::numbers("left", 1),
    Column::words("how").ranked(2),
    Column::words("model").ranked(2),
    Column::words("serial").ranked(1),
];

/// The plan as a table.
fn as_text(plan: &FleetRun, columns: usize) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let size = |value: &Value| {
        value
            .as_u64()
            .map_or_else(String::new, |size| Bytes(size).to_string())
    };
    let row = |(host, disk): &(&HostRun, &Value)| {
        vec![
            host.host.clone(),
            host.zone.clone().unwrap_or_default(),
            word(&disk["path"]),
            size(&disk["size_bytes"]),
            size(&disk["left_bytes"]),
            word(&disk["method"]),
            word(&disk["model"]),
            word(&disk["serial"]),
        ]
    };
    let disks = disks(plan);
    let rows: Vec<Vec<String>> = disks.iter().map(row).collect();
    let told = format!(
        "This would be zeroed: {} disks of {} hosts. Nothing was touched yet.",
        disks.len(),
        plan.hosts.len()
    );
    let table = layout(&COLUMNS, &rows, columns);
    printable(&format!("{table}{}\n", wrap(&told, columns, ""))).into_owned()
}

/// The plan as one JSON document.
fn as_json(plan: &FleetRun) -> String {
    let hosts: Vec<Value> = plan
        .hosts
        .iter()
        .map(|host| {
            json!({
                "host": host.host,
                "zone": host.zone,
                "type": host.kind,
                "id": host.id,
                "came": host.came.word(),
                "why": host.why,
                "disks": host.answer["disks"],
            })
        })
        .collect();
    let document = json!({
        "schema": SCHEMA,
        "command": plan.kind.word(),
        "dry_run": true,
        "disksmith": env!("CARGO_PKG_VERSION"),
        "fleet": plan.id,
        "hosts": hosts,
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::hosts::Host;

    fn host(came: Came, answer: Value) -> HostRun {
        let host = Host {
            name: "h".to_owned(),
            ..Host::default()
        };
        HostRun {
            came,
            answer,
            ..HostRun::waiting(&host)
        }
    }

    #[test]
    fn the_work_is_bound_to_what_the_plan_has_seen_of_each_disk() {
        let seen = |boot: &str| json!({ "boot": boot, "size_bytes": 1 });
        let answer = json!({ "disks": [{ "seen": seen("b1") }, { "seen": seen("b2") }] });
        let options = planned(&host(Came::Done, answer));
        assert_eq!(options.len(), 4);
        assert_eq!(
            (options[0].as_str(), options[2].as_str()),
            ("--planned", "--planned")
        );
        assert_eq!(
            serde_json::from_str::<Value>(&options[3]).unwrap(),
            seen("b2")
        );
    }

    #[test]
    fn a_host_that_does_not_say_which_disks_it_saw_refuses() {
        let well = json!({ "disks": [{ "path": "/dev/a", "seen": { "boot": "b" } }] });
        let blind = json!({ "disks": [{ "path": "/dev/a" }] });
        let plan = |came, answer: &Value| FleetRun {
            id: "f".to_owned(),
            began: jiff::Timestamp::UNIX_EPOCH,
            kind: Kind::Zero,
            args: Vec::new(),
            hosts: vec![host(came, answer.clone())],
            race: None,
        };
        assert_eq!(refusals(&plan(Came::Done, &well)), [""; 0]);
        for bad in [
            plan(Came::Done, &blind),
            plan(Came::Done, &json!("text")),
            plan(Came::Lost, &well),
            plan(Came::Interrupted, &well),
        ] {
            assert_eq!(refusals(&bad).len(), 1, "{bad:?}");
        }
    }
}
