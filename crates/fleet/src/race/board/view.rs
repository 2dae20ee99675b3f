//! Content of the live table of a race: for each group the leaders, and counts of the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use study::burnin::{HostEstimate, HostStatus};

use crate::race::ranked_by::RankedBy;
use crate::race::report::{RankedFigure, figure_name, worst_name};
use crate::race::running_race::{EliminationReason, RunningRace};
use crate::store::FleetRun;
use crate::store::race::{RaceRecord, RoundRecord};
use ratatui_core::layout::Size;
use ratatui_core::text::Line;
use ui::charset;
use ui::charset::printable;
use ui::format::count;
use ui::screen::{Pieces as _, TextStyle};
use ui::table::{Column, layout};
use ui::units::compact;

/// Maximum number of hosts of a group that are shown, whatever the room.
const MAX_GROUP_ROWS: usize = 50;
/// Number of the newest changes that are shown.
const CHANGES: usize = 4;

/// Status of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BoardStatus {
    /// May be one of the best.
    In,
    /// May be one of the best, and was unreachable in the last round.
    Away,
    /// May be as good as the worst host that is kept.
    Equal,
    /// Out: as many other hosts as are kept are better.
    Out,
    /// Missed a floor.
    Below,
    /// A disk of the host gave an error.
    Broken,
    /// Was unreachable too often, or could not be measured.
    Lost,
}

impl BoardStatus {
    /// All statuses, in their order.
    const ALL: [BoardStatus; 7] = [
        BoardStatus::In,
        BoardStatus::Away,
        BoardStatus::Equal,
        BoardStatus::Out,
        BoardStatus::Below,
        BoardStatus::Broken,
        BoardStatus::Lost,
    ];

    fn of(course: &RunningRace<'_>, place: usize, is_away: bool) -> BoardStatus {
        match (course.out_reason(place), course.status(place)) {
            (Some(EliminationReason::HostFloor(_)), _) => BoardStatus::Below,
            (Some(EliminationReason::Broken(_)), _) => BoardStatus::Broken,
            (Some(EliminationReason::Absent(_)), _) | (None, Some(HostStatus::Removed { .. })) => {
                BoardStatus::Lost
            }
            (None, Some(HostStatus::Out { .. })) => BoardStatus::Out,
            (None, Some(HostStatus::Left { .. })) => BoardStatus::Equal,
            (None, _) if is_away => BoardStatus::Away,
            (None, _) => BoardStatus::In,
        }
    }

    fn name(self) -> &'static str {
        match self {
            BoardStatus::In => "in",
            BoardStatus::Away => "away",
            BoardStatus::Equal => "as good",
            BoardStatus::Out => "out",
            BoardStatus::Below => "below the floor",
            BoardStatus::Broken => "broken",
            BoardStatus::Lost => "lost",
        }
    }
}

/// A host that is shown.
#[derive(Clone, Debug)]
struct Row {
    host: String,
    known: Option<HostEstimate>,
    worst: String,
    status: BoardStatus,
}

/// A group, the best first.
#[derive(Clone, Debug)]
struct Group {
    pub name: String,
    by: RankedBy,
    rows: Vec<Row>,
    /// Status of each host.
    statuses: Vec<BoardStatus>,
}

/// Content of the table.
#[derive(Clone, Debug)]
pub(crate) struct BoardView {
    figure: String,
    groups: Vec<Group>,
    /// The newest changes, the newest last.
    changes: VecDeque<String>,
    /// Number of hosts that did not take part from the start.
    absent: usize,
    most_rounds: usize,
}

/// Progress of the round that is being measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundProgress {
    /// Number of the round, from 0.
    pub round: usize,
    /// Elapsed time of the race.
    pub elapsed: Duration,
    /// Number of hosts that are measured in this round.
    pub hosts: usize,
    /// Number of hosts that were already measured.
    pub measured: usize,
}

impl BoardView {
    /// The table at the start of a race.
    pub(crate) fn of(course: &RunningRace<'_>, run: &FleetRun, record: &RaceRecord) -> BoardView {
        let mut view = BoardView {
            figure: figure_name(record),
            groups: Vec::new(),
            changes: VecDeque::new(),
            absent: record
                .hosts
                .iter()
                .filter(|host| host.group.is_none())
                .count(),
            most_rounds: record.most_rounds,
        };
        view.refresh(course, run, record, &BTreeSet::new());
        view
    }

    /// Adds a round. `out` are the hosts that are out since this round.
    pub(crate) fn take(
        &mut self,
        course: &RunningRace<'_>,
        run: &FleetRun,
        record: &RaceRecord,
        round: &RoundRecord,
        out: &[usize],
    ) {
        let before = self.counted(BoardStatus::Out);
        let missed = round.missed.iter().map(|absent| absent.host).collect();
        self.refresh(course, run, record, &missed);
        let number = course.rounds();
        for place in out {
            let why = course
                .out_reason(*place)
                .map_or("", |out_reason| out_reason.reason());
            let name = run.name(*place);
            let why = why.trim_end_matches('.');
            self.change(format!("round {number}: {name} is out: {why}"));
        }
        let now = self.counted(BoardStatus::Out);
        if now > before {
            let more = count(now - before, "host");
            self.change(format!("round {number}: others are better than {more}"));
        } else if now < before {
            let back = count(before - now, "host");
            self.change(format!(
                "round {number}: {back} may be among the best again"
            ));
        }
    }

    fn change(&mut self, text: String) {
        self.changes.push_back(text);
        while self.changes.len() > CHANGES {
            self.changes.pop_front();
        }
    }

    fn counted(&self, status: BoardStatus) -> usize {
        let all = self.groups.iter().flat_map(|group| &group.statuses);
        all.filter(|one| **one == status).count()
    }

    /// Updates the status of all hosts.
    fn refresh(
        &mut self,
        course: &RunningRace<'_>,
        run: &FleetRun,
        record: &RaceRecord,
        missed: &BTreeSet<usize>,
    ) {
        let mut groups: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
        for (place, raced) in record.hosts.iter().enumerate() {
            if let Some(name) = &raced.group {
                groups.entry(name).or_default().push(place);
            }
        }
        let known = |place: usize| {
            let status = BoardStatus::of(course, place, missed.contains(&place));
            (status, course.known(place), place)
        };
        self.groups = groups
            .into_iter()
            .map(|(name, places)| {
                let all = places.into_iter().map(known).collect();
                Group::of(name, all, run, record)
            })
            .collect();
    }

    /// The lines of the table for this room: not more lines, and none longer.
    pub(super) fn lines(&self, now: RoundProgress, room: Size) -> Vec<Line<'static>> {
        let (width, height) = (usize::from(room.width), usize::from(room.height));
        let head = self.head(now);
        // A line for the round, one for the titles, and one in each group for the counts.
        let changes = self.changes.len().min(height.saturating_sub(4) / 3);
        let room = height.saturating_sub(2 + changes);
        let shown = self.groups.len().min(room / 2);
        let each = room.checked_div(shown).map_or(0, |all| all - 1);
        let mut rows = Vec::new();
        for group in self.groups.iter().take(shown) {
            rows.extend(group.cells(each));
        }
        let titles = [
            Column::text("group").ranked(2),
            Column::text("host"),
            Column::numbers(&self.figure, 0),
            Column::numbers("bounds", 1),
            Column::text("worst disk").ranked(3),
            Column::numbers("rounds", 4),
            Column::text("standing"),
        ];
        let mut lines = vec![head];
        if !rows.is_empty() {
            lines.extend(layout(&titles, &rows, width).lines().map(str::to_owned));
        }
        let hidden = self.groups.len() - shown;
        if hidden > 0 {
            lines.truncate(height.saturating_sub(1 + changes).max(1));
            lines.push(format!(
                "… and {hidden} more groups: {}",
                summary(self.groups.get(shown..).unwrap_or_default())
            ));
        }
        let newest = self.changes.len() - changes;
        lines.extend(self.changes.iter().skip(newest).cloned());
        lines.truncate(height.max(1));
        let style = |at: usize| {
            if at == 1 {
                TextStyle::Strong
            } else {
                TextStyle::Plain
            }
        };
        let line = |(at, line): (usize, &String)| Line::of(truncate(line, width), style(at));
        lines.iter().enumerate().map(line).collect()
    }

    /// Heading: progress of the race.
    fn head(&self, now: RoundProgress) -> String {
        let absent = match self.absent {
            0 => String::new(),
            absent => format!("; {absent} took no part"),
        };
        format!(
            "round {} of at most {}, after {}: {} of {} measured{absent}",
            now.round + 1,
            self.most_rounds,
            compact(now.elapsed),
            now.measured,
            now.hosts,
        )
    }
}

/// Counts of the hosts of these groups by status, in words.
fn summary(groups: &[Group]) -> String {
    let all = groups.iter().flat_map(|group| &group.statuses);
    counts(&all.copied().collect::<Vec<BoardStatus>>())
}

impl Group {
    /// A group of these hosts: status, estimate and rank of each.
    fn of(
        name: &str,
        mut all: Vec<(BoardStatus, Option<HostEstimate>, usize)>,
        run: &FleetRun,
        record: &RaceRecord,
    ) -> Group {
        let figure =
            |known: &Option<HostEstimate>| known.map_or(f64::NEG_INFINITY, |known| known.figure);
        // Hosts that may be kept come before those that may not, whatever their figures.
        let is_out = |status: BoardStatus| status > BoardStatus::Away;
        all.sort_by(|a, b| {
            let by_figure = || figure(&b.1).total_cmp(&figure(&a.1));
            is_out(a.0).cmp(&is_out(b.0)).then_with(by_figure)
        });
        let row = |(status, known, place): &(BoardStatus, Option<HostEstimate>, usize)| Row {
            host: run.name(*place).to_owned(),
            known: *known,
            worst: known
                .and_then(|known| {
                    let targets = &record.hosts.get(*place)?.targets;
                    worst_name(targets.get(known.disk)?, targets)
                })
                .unwrap_or_default(),
            status: *status,
        };
        Group {
            name: name.to_owned(),
            by: RankedBy::of(&record.figures),
            rows: all.iter().take(MAX_GROUP_ROWS).map(row).collect(),
            statuses: all.iter().map(|one| one.0).collect(),
        }
    }

    /// The cells of its first hosts, at most `most`, and of a line that counts the others.
    fn cells(&self, most: usize) -> Vec<Vec<String>> {
        let shown = if self.statuses.len() <= most + 1 {
            self.rows.len()
        } else {
            most.min(self.rows.len())
        };
        let mut cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .take(shown)
            .map(|row| self.row(row))
            .collect();
        let others = self.statuses.get(shown..).unwrap_or_default();
        if !others.is_empty() {
            let mut line = vec![self.name.clone(), format!("{} more", others.len())];
            line.extend(std::iter::repeat_n(String::new(), 4));
            line.push(counts(others));
            cells.push(line);
        }
        cells
    }

    fn row(&self, row: &Row) -> Vec<String> {
        let of_known = |format: &dyn Fn(&HostEstimate) -> String| {
            row.known.as_ref().map_or_else(String::new, format)
        };
        vec![
            self.name.clone(),
            row.host.clone(),
            of_known(&|known| RankedFigure::of(known, self.by).text()),
            of_known(&|known| RankedFigure::of(known, self.by).bounds()),
            row.worst.clone(),
            of_known(&|known| known.rounds.to_string()),
            row.status.name().to_owned(),
        ]
    }
}

/// Numbers of hosts by status, such as `12 in, 3 out`.
fn counts(statuses: &[BoardStatus]) -> String {
    let count = |status: &BoardStatus| {
        let number = statuses.iter().filter(|one| *one == status).count();
        (number > 0).then(|| format!("{number} {}", status.name()))
    };
    let counted: Vec<String> = BoardStatus::ALL.iter().filter_map(count).collect();
    counted.join(", ")
}

/// Cuts a line to the available columns. Text from a host may have line breaks, and would take more lines than
/// counted.
fn truncate(line: &str, width: usize) -> String {
    let line = line.replace(['\r', '\n'], " ");
    let line = charset::shown(&printable(&line)).into_owned();
    if line.chars().count() <= width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::running_race::ReplayedRace;
    use crate::race::test_races;
    use insta::assert_snapshot;

    /// A race of two groups, after its rounds.
    fn view(hosts: usize) -> BoardView {
        let levels: Vec<f64> = (0..hosts).map(|at| 1000.0 - 30.0 * at as f64).collect();
        let run = test_races::raced(&levels);
        let record = run.race.as_ref().unwrap();
        let replayed = ReplayedRace::of(record);
        let setup = replayed.setup(record);
        let mut course = RunningRace::new(&setup);
        let mut view = BoardView::of(&course, &run, record);
        for round in &record.rounds {
            let out = course.take(round);
            view.take(&course, &run, record, round, &out);
        }
        view
    }

    const NOW: RoundProgress = RoundProgress {
        round: 4,
        elapsed: Duration::from_secs(52),
        hosts: 9,
        measured: 7,
    };

    fn texts(view: &BoardView, (width, height): (u16, u16)) -> Vec<String> {
        let lines = view.lines(NOW, Size { width, height });
        lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn the_table_at_40_80_and_120_columns() {
        for (name, hosts) in [("few", 3), ("many", 20)] {
            let view = view(hosts);
            for columns in [40, 80, 120] {
                let lines = texts(&view, (columns, 12));
                assert_snapshot!(format!("{name}-{columns}"), lines.join("\n"));
            }
        }
    }

    #[test]
    fn the_leaders_stand_first_and_the_others_are_counted() {
        let view = view(20);
        let lines = texts(&view, (100, 12));
        assert!(lines.len() <= 12, "{lines:#?}");
        assert!(
            lines[0].contains("round 5 of at most 60, after 52s: 7 of 9"),
            "{lines:#?}"
        );
        assert!(lines[1].contains("page-read.iops"), "{lines:#?}");
        assert!(
            lines[2].contains("db0") && lines[2].ends_with("in"),
            "{lines:#?}"
        );
        let counted = lines.iter().find(|line| line.contains(" more")).unwrap();
        assert!(counted.contains(" out"), "{lines:#?}");
        let last = lines.last().unwrap();
        assert!(
            last.starts_with("round ") && last.contains("others are better than"),
            "{lines:#?}"
        );
    }

    #[test]
    fn it_fits_on_any_terminal() {
        for hosts in [2, 3, 40] {
            let view = view(hosts);
            for size in [
                (0, 0),
                (1, 1),
                (9, 2),
                (20, 3),
                (40, 5),
                (80, 23),
                (300, 100),
            ] {
                let lines = texts(&view, size);
                assert!(
                    lines.len() <= usize::from(size.1.max(1)),
                    "{size:?}: {lines:#?}"
                );
                let widest = lines.iter().map(|line| line.chars().count()).max();
                assert!(widest <= Some(size.0.max(1).into()), "{size:?}: {lines:#?}");
            }
        }
    }

    #[test]
    fn a_reason_of_several_lines_takes_one() {
        let mut view = view(3);
        view.change("round 1: db9 is out: refused:\n  - busy\r\n  - mounted".to_owned());
        let lines = texts(&view, (100, 20));
        assert!(
            lines.iter().all(|line| !line.contains(['\r', '\n'])),
            "{lines:#?}"
        );
        assert!(
            lines.iter().any(|line| line.ends_with("- mounted")),
            "{lines:#?}"
        );
    }

    #[test]
    fn many_groups_become_counts() {
        let mut view = view(6);
        let group = view.groups[0].clone();
        view.groups = (0..2000)
            .map(|at| Group {
                name: format!("zone-{at:04}"),
                ..group.clone()
            })
            .collect();
        let lines = texts(&view, (100, 20));
        assert!(lines.len() <= 20, "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.contains("zone-0000")),
            "{lines:#?}"
        );
        // Hosts that are shown are not counted again.
        let more = lines.iter().find_map(|line| line.strip_prefix("… and "));
        let (hidden, counted) = more.unwrap().split_once(" more groups: ").unwrap();
        let hidden: usize = hidden.parse().unwrap();
        let counted = counted.split(", ").map(|one| {
            let (number, _) = one.split_once(' ').unwrap();
            number.parse::<usize>().unwrap()
        });
        assert!(hidden < 2000, "{lines:#?}");
        assert_eq!(counted.sum::<usize>(), 6 * hidden, "{lines:#?}");
    }

    #[test]
    fn each_status_has_its_word() {
        let mut view = view(3);
        let group = &mut view.groups[0];
        (group.rows[0].status, group.statuses[0]) = (BoardStatus::Below, BoardStatus::Below);
        let shown = texts(&view, (100, 20)).join("\n");
        assert!(shown.contains("below the floor"), "{shown}");
        assert_eq!(
            counts(&[BoardStatus::Equal, BoardStatus::In]),
            "1 in, 1 as good"
        );
        assert_eq!(
            counts(&[BoardStatus::Lost, BoardStatus::In, BoardStatus::In]),
            "2 in, 1 lost"
        );
    }
}
