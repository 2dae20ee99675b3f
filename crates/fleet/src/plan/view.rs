//! Output of `fleet plan`: a table with sentences, or one JSON document.

use serde::Serialize;
use ui::table::{Column, layout, wrap};
use ui::units::duration;

use super::past::PastHosts;
use super::{PlanGoals, PlanGroup, RaceCost, RacePlan};
use crate::hosts::GroupBy;
use ui::json::Document;

const COLUMNS: [Column; 4] = [
    Column::text("group"),
    Column::numbers("good in the past", 0),
    Column::numbers("start", 0),
    Column::numbers("chance", 1),
];

/// A plan as text.
pub(crate) fn text(
    plan: &RacePlan,
    goals: &PlanGoals<'_>,
    past: &PastHosts,
    columns: usize,
) -> String {
    let row = |group: &PlanGroup| {
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
    let mut text = layout(&COLUMNS, &rows, columns);
    for sentence in sentences(plan, goals, past) {
        text.push_str(&wrap(&sentence, columns, ""));
        text.push('\n');
    }
    text
}

fn sentences(plan: &RacePlan, goals: &PlanGoals<'_>, past: &PastHosts) -> Vec<String> {
    let each = goals
        .per
        .map_or_else(String::new, |per| format!(" of each {}", per.name()));
    let mut sentences = vec![format!("Good is: {}.", past.good)];
    sentences.push(match plan.total() {
        Some(total) => format!(
            "Start {total} hosts: with at least {} enough come for {} good ones{each}, if they are \
             like those of the past.",
            percent(goals.chance),
            goals.want
        ),
        None => "No number can be computed, since no past host was good.".to_owned(),
    });
    if let Some(cost) = plan.cost {
        sentences.push(format!(
            "The race takes about {} rounds, which is {}, and in one of twenty more than {}. It \
             measures for {:.1} host-hours. The hosts run for {:.1} host-hours until it is over{}, \
             and in one of twenty for more than {:.1}.",
            cost.rounds,
            duration(cost.rounds as f64 * goals.round_s),
            cost.most_rounds,
            cost.measured_h,
            cost.running_h,
            priced(goals.host_hour(), cost.running_h),
            cost.most_running_h,
        ));
    }
    if let Some(first) = goals.volumes.first() {
        sentences.push(format!(
            "The price of the volumes is that of the table ({}).",
            first.price_source()
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

/// Body of the document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PlanBody<'a> {
    /// Number of good hosts wanted of each group.
    want: usize,
    /// Property by which hosts are grouped, `zone` or `type`; `null` where all are one group.
    per: Option<&'static str>,
    /// Requested probability that enough hosts are good in all groups.
    asked_chance: f64,
    /// Definition of a good host.
    good: &'a str,
    /// The groups, in the order of their names.
    groups: Vec<GroupBody<'a>>,
    /// Number of hosts to start in all; `null` where the past does not show it.
    start: Option<usize>,
    /// Cost of the race; `null` where no number of hosts follows from the past, the past has no figures, or the hosts
    /// are too many to simulate.
    race: Option<RaceBody>,
}

/// Hosts to start of a group.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GroupBody<'a> {
    /// Name of the group: a zone, an instance type, or `all`.
    group: &'a str,
    /// Hosts of the past.
    past: PastBody,
    /// Number of hosts to start; `null` where the past does not show it.
    start: Option<usize>,
    /// Least probability that enough of them are good.
    chance: f64,
}

impl<'a> GroupBody<'a> {
    fn of(group: &'a PlanGroup) -> GroupBody<'a> {
        GroupBody {
            group: &group.name,
            past: PastBody {
                good: group.past.good,
                all: group.past.all,
            },
            start: group.start,
            chance: group.chance,
        }
    }
}

/// Hosts of the past.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PastBody {
    /// Number that were good.
    good: usize,
    /// Number that were measured.
    all: usize,
}

/// Cost of the race among the hosts to start, by simulated races.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RaceBody {
    /// Length of a round, in seconds.
    round_s: f64,
    /// Median number of rounds.
    rounds: usize,
    /// 95th percentile of the number of rounds.
    rounds_p95: usize,
    /// Median time of measuring, summed over the hosts, in hours.
    measured_host_hours: f64,
    /// Median time until the race is over, summed over the hosts, in hours.
    host_hours: f64,
    /// 95th percentile of `host_hours`.
    host_hours_p95: f64,
    /// Price of `host_hours`, in the currency of `--price` and of the table of volumes; `null` where no price is
    /// known.
    price: Option<f64>,
    /// Price of `host_hours_p95`; `null` where no price is known.
    price_p95: Option<f64>,
}

impl RaceBody {
    fn of(cost: RaceCost, goals: &PlanGoals<'_>) -> RaceBody {
        let price = |hours: f64| goals.host_hour().map(|price| price * hours);
        RaceBody {
            round_s: goals.round_s,
            rounds: cost.rounds,
            rounds_p95: cost.most_rounds,
            measured_host_hours: cost.measured_h,
            host_hours: cost.running_h,
            host_hours_p95: cost.most_running_h,
            price: price(cost.running_h),
            price_p95: price(cost.most_running_h),
        }
    }
}

/// A plan as one JSON document.
pub(crate) fn json(plan: &RacePlan, goals: &PlanGoals<'_>, past: &PastHosts) -> String {
    let body = PlanBody {
        want: goals.want,
        per: goals.per.map(GroupBy::name),
        asked_chance: goals.chance,
        good: &past.good,
        groups: plan.groups.iter().map(GroupBody::of).collect(),
        start: plan.total(),
        race: plan.cost.map(|cost| RaceBody::of(cost, goals)),
    };
    format!("{:#}", Document::of("fleet plan", body))
}
