//! A sweep as plain text: its settings, the table with the best first, and the conclusions.

use std::fmt::Write as _;

use super::sentences::{
    alike, devices, effort, exclusions, figure_title, frontier, further_figures, goal,
    layout as layout_name, place, plus_minus, resume, survivors, ties, varying, winner,
};
use super::units::{FigureUnit, outcome_label, share, share_interval};
use crate::{Factor, Figure, LayoutResult, Objective, SweepDecision, SweepRecord};
use ui::format::count;
use ui::table::{Column, layout, wrap};

/// The whole answer of `sweep`. `commands` build the winner, and are not wrapped, so that they can be pasted into a
/// shell.
pub(crate) fn sweep(
    record: &SweepRecord,
    decision: &SweepDecision,
    commands: &[String],
    columns: usize,
) -> String {
    let mut text = head(record, columns);
    text.push('\n');
    text.push_str(&table(record, decision, columns));
    let mut add = |sentence: &str, indent: &str| {
        let _ = writeln!(text, "{}", wrap(sentence, columns, indent));
    };
    add("", "");
    add(&winner(record, decision), "  ");
    if let Some(ties) = ties(record, decision) {
        add(&ties, "  ");
    }
    for survivor in survivors(record, decision) {
        add(&survivor, "  ");
    }
    if let Some(frontier) = frontier(record, decision) {
        add(&frontier, "  ");
    }
    for answer in &decision.answers {
        add(answer, "  ");
    }
    for out in exclusions(decision) {
        add(&out, "  ");
    }
    for left_out in &record.left_out {
        add(
            &format!("not measured: {}: {}", left_out.what, left_out.why),
            "  ",
        );
    }
    for doubt in &decision.doubts {
        add(&format!("warning: {doubt}"), "  ");
    }
    if let Some(drift) = &decision.drift {
        add(&drift.text, "  ");
    }
    text.push_str(&effects(decision, columns));
    text.push_str(&to_build(record, decision, commands));
    if let Some(resume) = resume(record, decision) {
        let _ = writeln!(text, "\n{}", wrap(&resume, columns, "  "));
    }
    text
}

fn head(record: &SweepRecord, columns: usize) -> String {
    let lines = [
        format!(
            "Sweep {}: {} of {}, at {}",
            record.id,
            count(record.layouts.len(), "layout"),
            devices(&record.settings),
            place(record)
        ),
        format!("Wanted: {}.", goal(&record.settings)),
        format!("Measured: {}.", effort(record)),
        alike(record),
    ];
    let mut text = String::new();
    for line in lines.iter().filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "{}", wrap(line, columns, "  "));
    }
    text
}

/// Text of a column in a row, by the index of the row.
type Cell<'a> = dyn Fn(usize, &LayoutResult) -> String + 'a;

/// A column and its text.
struct Field<'a> {
    title: String,
    /// True if its cells are words, which are left-aligned.
    is_text: bool,
    /// Rank of the [`Column`].
    rank: u8,
    cell: Box<Cell<'a>>,
}

impl<'a> Field<'a> {
    fn new(
        title: impl Into<String>,
        rank: u8,
        cell: impl Fn(usize, &LayoutResult) -> String + 'a,
    ) -> Field<'a> {
        Field {
            title: title.into(),
            is_text: false,
            rank,
            cell: Box::new(cell),
        }
    }

    fn left_aligned(self) -> Field<'a> {
        Field {
            is_text: true,
            ..self
        }
    }

    fn column(&self) -> Column<'_> {
        if self.is_text {
            Column::text(&self.title).ranked(self.rank)
        } else {
            Column::numbers(&self.title, self.rank)
        }
    }
}

fn table(record: &SweepRecord, decision: &SweepDecision, columns: usize) -> String {
    let fields = fields(record);
    let rows: Vec<Vec<String>> = decision
        .rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            fields
                .iter()
                .map(|field| (field.cell)(place, row))
                .collect()
        })
        .collect();
    let titles: Vec<Column<'_>> = fields.iter().map(Field::column).collect();
    layout(&titles, &rows, columns)
}

/// Columns of the table. The factors, the objective and the outcome are never dropped.
fn fields(record: &SweepRecord) -> Vec<Field<'_>> {
    let settings = &record.settings;
    let unit = FigureUnit::of_objective(&settings.objective);
    let mut fields = vec![Field::new("#", 0, |place, _| (place + 1).to_string())];
    fields.extend(
        varying(record)
            .into_iter()
            .map(|factor| setting(record, factor)),
    );
    fields.push(Field::new(unit.name(), 0, move |_, row| {
        row.value
            .map_or_else(|| "–".to_owned(), |value| unit.digits(value.mean))
    }));
    fields.push(Field::new("95 %", 4, move |_, row| plus_minus(row, unit)));
    fields.push(Field::new("of best", 1, |_, row| {
        row.of_winner
            .map_or_else(String::new, |value| share(value.mean))
    }));
    fields.push(Field::new("interval", 7, |_, row| {
        row.of_winner.map_or_else(String::new, share_interval)
    }));
    for figure in further_figures(settings) {
        fields.push(other_figure(figure_title(settings, figure), figure));
    }
    if settings.objective != Objective::Cost {
        fields.push(Field::new("$/month", 3, |_, row| {
            row.cost.map_or_else(String::new, |cost| {
                FigureUnit::Dollars.digits(cost.per_month)
            })
        }));
    }
    if matches!(settings.objective, Objective::Figure(_)) {
        let unit = unit.per_dollar();
        fields.push(Field::new(unit.name(), 5, move |_, row| {
            let rate = row.cost.and_then(|cost| cost.rate_per_dollar);
            rate.map_or_else(String::new, |rate| unit.digits(rate))
        }));
    }
    fields.push(Field::new("blocks", 6, |_, row| row.blocks.to_string()));
    fields.push(Field::new("", 0, |_, row| outcome_label(row.outcome).to_owned()).left_aligned());
    fields.push(Field::new("why", 8, |_, row| row.why.clone()).left_aligned());
    fields
}

/// A figure besides the objective's.
fn other_figure(title: String, figure: &Figure) -> Field<'_> {
    let unit = FigureUnit::of_metric(figure.metric);
    Field::new(title, 2, move |_, row| {
        row.figures
            .get(figure)
            .map_or_else(|| "–".to_owned(), |value| unit.digits(value.mean))
    })
}

/// A layout's setting of a factor. Sizes are in their short form, as typed.
fn setting(record: &SweepRecord, factor: Factor) -> Field<'_> {
    let title = match factor {
        Factor::Members => "of",
        Factor::Scheduler => "sched",
        other => other.name(),
    };
    let field = Field::new(title, 0, move |_, row| {
        record
            .layouts
            .get(row.layout)
            .map_or_else(String::new, |layout| short_size(&layout.setting(factor)))
    });
    match factor {
        Factor::Members | Factor::Chunk => field,
        Factor::Level | Factor::Fs | Factor::Scheduler => field.left_aligned(),
    }
}

fn short_size(text: &str) -> String {
    text.replace(" KiB", "k")
        .replace(" MiB", "M")
        .replace(" GiB", "G")
}

fn effects(decision: &SweepDecision, columns: usize) -> String {
    if decision.effects.is_empty() {
        return String::new();
    }
    let mut text = "\nWhat each setting did, all else equal:\n".to_owned();
    for effect in &decision.effects {
        let _ = writeln!(
            text,
            "{}",
            wrap(&format!("  {}", effect.text), columns, "    ")
        );
    }
    text
}

fn to_build(record: &SweepRecord, decision: &SweepDecision, commands: &[String]) -> String {
    let (Some(winner), false) = (decision.winner, commands.is_empty()) else {
        return String::new();
    };
    let mut text = format!("\nTo build {}:\n", layout_name(record, winner));
    for command in commands {
        let _ = writeln!(text, "  {command}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn shown(sample: &(SweepRecord, SweepDecision), columns: usize) -> String {
        sweep(&sample.0, &sample.1, &sample::commands(), columns)
    }

    /// The lines of the table, without the text above and below.
    fn table_of(text: &str) -> Vec<&str> {
        let table = text.split("\n\n").nth(1).unwrap();
        table.lines().collect()
    }

    #[test]
    fn the_answer_fits_its_columns_but_for_the_commands() {
        for sample in [
            sample::measured(),
            sample::large(),
            sample::unfinished(),
            sample::all_failed(),
        ] {
            for columns in [60, 80, 100, 160] {
                let text = shown(&sample, columns);
                let commands = sample::commands();
                for line in text.lines() {
                    let command = commands.iter().any(|command| line.trim() == command);
                    assert!(
                        command || line.chars().count() <= columns,
                        "{columns}: {line}"
                    );
                }
                assert_eq!(table_of(&text).len(), 1 + sample.0.layouts.len(), "{text}");
            }
        }
    }

    #[test]
    fn columns_go_by_their_importance() {
        let sample = sample::measured();
        let titles = |columns| table_of(&shown(&sample, columns))[0].to_owned();
        for (columns, has, has_not) in [
            (
                60,
                ["level", "chunk", "IOPS", "of best"],
                ["interval", "blocks"],
            ),
            (
                80,
                ["read p99 ms", "$/month", "95 %", "of best"],
                ["interval", "blocks"],
            ),
            (
                100,
                ["blocks", "IOPS/$", "95 %", "of best"],
                ["interval", "why"],
            ),
            (
                200,
                ["interval", "blocks", "IOPS/$", "why"],
                ["sched", "fs"],
            ),
        ] {
            let titles = titles(columns);
            assert!(has.iter().all(|title| titles.contains(title)), "{titles}");
            assert!(
                !has_not.iter().any(|title| titles.contains(title)),
                "{titles}"
            );
        }
    }

    #[test]
    fn all_factors_that_vary_stay_on_a_narrow_terminal() {
        let text = shown(&sample::large(), 60);
        let titles = table_of(&text)[0];
        for title in ["#", "level", "of", "chunk", "fs", "sched", "ms"] {
            assert!(titles.contains(title), "{titles}");
        }
        assert!(table_of(&text)[1].ends_with("best"), "{text}");
    }

    #[test]
    fn each_objective_has_its_unit_and_no_column_twice() {
        for (sample, wanted, titles) in [
            (
                sample::per_dollar(),
                "most page-mixed.iops/$, with",
                " #  level  of  chunk  IOPS/$  95 %  of best    IOPS  read p99 ms  $/month  blocks",
            ),
            (
                sample::cheapest(),
                "least cost, with page-mixed.read.p99 < 25.0 ms",
                " #  level  of  chunk  $/month  95 %  of best  page-mixed read p99 ms  blocks",
            ),
        ] {
            let text = shown(&sample, 100);
            assert!(text.contains(wanted), "{text}");
            assert_eq!(table_of(&text)[0], titles);
        }
    }

    #[test]
    fn conclusions_are_shown() {
        let (record, decision) = sample::measured();
        let text = sweep(&record, &decision, &sample::commands(), 100);
        for words in [
            "Wanted: most page-mixed.iops",
            "Best: RAID 0 of 8",
            "As good",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = decision.answers.iter().chain(&decision.doubts);
        for sentence in sentences.chain(decision.effects.iter().map(|effect| &effect.text)) {
            assert!(flat.contains(sentence.as_str()), "{sentence}");
        }
        for command in sample::commands() {
            assert!(text.contains(&format!("\n  {command}\n")), "{command}");
        }
        assert!(
            flat.contains("not measured: scheduler bfq: the kernel"),
            "{text}"
        );
        assert!(!text.contains("continues it"), "{text}");
    }

    #[test]
    fn the_frontier_is_shown_where_prices_are_known() {
        let (record, decision) = sample::per_dollar();
        assert!(!decision.frontier.is_empty());
        let text = sweep(&record, &decision, &[], 100);
        assert!(
            text.contains("Not beaten in cost, speed and redundancy"),
            "{text}"
        );
        let (record, mut decision) = sample::measured();
        decision.frontier.clear();
        assert!(!sweep(&record, &decision, &[], 100).contains("Not beaten"));
    }

    #[test]
    fn an_unfinished_sweep_shows_how_to_resume() {
        let (record, decision) = sample::unfinished();
        let text = sweep(&record, &decision, &[], 100);
        assert!(text.contains("Best so far: "), "{text}");
        assert!(text.contains("continues it: disksmith sweep"), "{text}");
        assert!(!text.contains("To build"), "{text}");
    }

    #[test]
    fn a_sweep_without_a_winner_shows_the_reason() {
        let (record, decision) = sample::all_failed();
        let text = sweep(&record, &decision, &sample::commands(), 80);
        assert!(text.contains("No layout could be built"), "{text}");
        assert!(text.contains("mdadm ended with status 1."), "{text}");
        assert!(!text.contains("To build"), "{text}");
    }
}
