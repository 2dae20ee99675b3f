//! What `fleet` answers, as text and as JSON.

use serde_json::{Value, json};

use super::hosts::{Found, Host};
use super::past::Past;
use super::plan::{Asked, Group, Plan};
use super::setup::Setup;
use ui::json::SCHEMA;
use ui::table::{Column, layout, wrap};
use ui::units::duration;

const HOSTS: [Column; 6] = [
    Column::words("host"),
    Column::words("address").ranked(3),
    Column::words("zone").ranked(1),
    Column::words("type").ranked(1),
    Column::words("id").ranked(2),
    Column::words("comment").ranked(4),
];

/// The hosts as a table.
pub(super) fn hosts(hosts: &[Host], columns: usize) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let row = |host: &Host| {
        let user = host
            .user
            .as_ref()
            .map_or_else(String::new, |user| format!("{user}@"));
        let port = host
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        vec![
            host.name.clone(),
            format!("{user}{}{port}", host.address),
            word(&host.zone),
            word(&host.kind),
            word(&host.id),
            word(&host.comment),
        ]
    };
    let rows: Vec<Vec<String>> = hosts.iter().map(row).collect();
    layout(&HOSTS, &rows, columns)
}

/// The hosts as one JSON document.
pub(super) fn hosts_json(found: &Found) -> String {
    document(&json!({
        "schema": SCHEMA,
        "command": "fleet hosts",
        "hosts": found.hosts,
        "left_out": found.left_out,
    }))
}

const RACED: [Column; 3] = [
    Column::words("group"),
    Column::numbers("hosts", 0),
    Column::numbers("kept", 0),
];

/// What would be raced, as text.
pub(super) fn setup(setup: &Setup, hosts: &[Host], columns: usize) -> String {
    let kept = |size: usize| size.min(setup.rule.keep).to_string();
    let rows: Vec<Vec<String>> = setup
        .groups
        .iter()
        .zip(setup.sizes())
        .map(|(group, size)| vec![group.clone(), size.to_string(), kept(size)])
        .collect();
    let mut text = layout(&RACED, &rows, columns);
    for sentence in setup.sentences(hosts.len()) {
        text.push_str(&wrap(&sentence, columns, ""));
        text.push('\n');
    }
    text
}

/// What would be raced, as one JSON document.
pub(super) fn setup_json(setup: &Setup, hosts: &[Host]) -> String {
    let group = |at: usize| setup.groups.get(setup.group_of[at]);
    let hosts: Vec<Value> = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| json!({ "host": host, "group": group(at) }))
        .collect();
    let floors: Vec<String> = setup.floors.iter().map(ToString::to_string).collect();
    document(&json!({
        "schema": SCHEMA,
        "command": "fleet race",
        "dry_run": true,
        "keep": setup.rule.keep,
        "floors": floors,
        "round_s": setup.round_s,
        "least_rounds": setup.rule.least,
        "proof_rounds": setup.proof_rounds,
        "most_rounds": setup.rule.rounds,
        "hosts": hosts,
    }))
}

const GROUPS: [Column; 4] = [
    Column::words("group"),
    Column::numbers("good in the past", 0),
    Column::numbers("start", 0),
    Column::numbers("chance", 1),
];

/// A plan as text.
pub(super) fn plan(plan: &Plan, asked: &Asked, past: &Past, columns: usize) -> String {
    let row = |group: &Group| {
        vec![
            group.name.clone(),
            format!("{} of {}", group.past.good, group.past.all),
            group
                .start
                .map_or_else(|| "?".to_owned(), |start| start.to_string()),
            percent(group.chance),
        ]
    };
    let rows: Vec<Vec<String>> = plan.groups.iter().map(row).collect();
    let mut text = layout(&GROUPS, &rows, columns);
    for sentence in sentences(plan, asked, past) {
        text.push_str(&wrap(&sentence, columns, ""));
        text.push('\n');
    }
    text
}

fn sentences(plan: &Plan, asked: &Asked, past: &Past) -> Vec<String> {
    let each = asked
        .per
        .map_or_else(String::new, |per| format!(" of each {}", per.word()));
    let mut sentences = vec![format!("Good is: {}.", past.good)];
    sentences.push(match plan.total() {
        Some(total) => format!(
            "Start {total} hosts: with at least {} enough come for {} good ones{each}, if they are \
             like those of the past.",
            percent(asked.chance),
            asked.want
        ),
        None => "No number can be said where no host of the past was good.".to_owned(),
    });
    if let Some(cost) = plan.cost {
        sentences.push(format!(
            "The race takes about {} rounds, which is {}, and in one of twenty more than {}. It \
             measures for {:.1} host-hours. The hosts run for {:.1} host-hours until it is over{}, \
             and in one of twenty for more than {:.1}.",
            cost.rounds,
            duration(cost.rounds as f64 * asked.round_s),
            cost.most_rounds,
            cost.measured_h,
            cost.running_h,
            priced(asked.price, cost.running_h),
            cost.most_running_h,
        ));
    }
    sentences
}

fn priced(price: Option<f64>, hours: f64) -> String {
    price.map_or_else(String::new, |price| {
        format!(", which cost {:.2}", price * hours)
    })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A plan as one JSON document.
pub(super) fn plan_json(plan: &Plan, asked: &Asked, past: &Past) -> String {
    let groups: Vec<Value> = plan
        .groups
        .iter()
        .map(|group| {
            json!({
                "group": group.name,
                "past": { "good": group.past.good, "all": group.past.all },
                "start": group.start,
                "chance": group.chance,
            })
        })
        .collect();
    let race = plan.cost.map(|cost| {
        json!({
            "round_s": asked.round_s,
            "rounds": cost.rounds,
            "rounds_p95": cost.most_rounds,
            "measured_host_hours": cost.measured_h,
            "host_hours": cost.running_h,
            "host_hours_p95": cost.most_running_h,
            "price": asked.price.map(|price| price * cost.running_h),
            "price_p95": asked.price.map(|price| price * cost.most_running_h),
        })
    });
    document(&json!({
        "schema": SCHEMA,
        "command": "fleet plan",
        "want": asked.want,
        "per": asked.per.map(crate::args::Per::word),
        "asked_chance": asked.chance,
        "good": past.good,
        "groups": groups,
        "start": plan.total(),
        "race": race,
    }))
}

fn document(value: &Value) -> String {
    format!("{value:#}\n")
}
