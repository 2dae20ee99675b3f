//! Effect of each factor, all else equal.

use study::compare::RatioInterval;
use study::effects::{Pair, effect};

use crate::decision::FactorEffect;
use crate::figure::Figure;
use crate::layout::{Factor, Layout, level_name};
use crate::record::Value;
use domain::raid::Level;
use ui::format::count;

use super::clauses::{amount, amounts, changed, direction};
use super::measurements::Measurements;

/// The effects of all factors, each setting compared with the first that was swept. A single disk has no level, no
/// chunk and one member, so that no layout differs from it in only one factor; the reference is then the next setting.
pub(super) fn of(measurements: &Measurements) -> Vec<FactorEffect> {
    let figure = measurements.speed();
    let mut effects = Vec::new();
    for factor in Factor::ALL {
        let settings = settings(&measurements.record.layouts, factor);
        let against = |at: usize, from: &String| {
            let others = settings.iter().skip(at + 1);
            let compared = others.filter_map(|to| one(measurements, &figure, factor, (from, to)));
            compared.collect::<Vec<FactorEffect>>()
        };
        let compared = settings.iter().enumerate();
        let mut compared = compared.map(|(at, from)| against(at, from));
        effects.extend(compared.find(|found| !found.is_empty()).unwrap_or_default());
    }
    effects
}

/// The settings of a factor in the order in which the layouts have them.
pub(super) fn settings(layouts: &[Layout], factor: Factor) -> Vec<String> {
    let mut settings: Vec<String> = Vec::new();
    for layout in layouts {
        let setting = layout.setting(factor);
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings
}

fn one(
    measurements: &Measurements,
    figure: &Figure,
    factor: Factor,
    (from, to): (&str, &str),
) -> Option<FactorEffect> {
    let found = effect(&pairs(measurements, figure, factor, (from, to)))?;
    let ratio = Value {
        mean: found.ratio,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
    };
    let names = format!("{} against {}", name(factor, to), name(factor, from));
    let sentence = EffectSentence {
        figure,
        factor,
        names,
        pairs: found.pairs,
        range: (found.least, found.most),
    };
    Some(FactorEffect {
        factor,
        from: from.to_owned(),
        to: to.to_owned(),
        pairs: found.pairs,
        ratio,
        range: (found.least, found.most),
        shown: found.is_shown(),
        text: sentence.text(found.ratio, found.interval),
    })
}

/// Pairs of layouts that differ only in this factor, with their figures in the same blocks.
fn pairs(
    measurements: &Measurements,
    figure: &Figure,
    factor: Factor,
    (from, to): (&str, &str),
) -> Vec<Pair> {
    let layouts = &measurements.record.layouts;
    let having = |setting: &str| {
        let layouts = layouts.iter().enumerate();
        let having = layouts.filter(|(_, layout)| layout.setting(factor) == setting);
        having.collect::<Vec<_>>()
    };
    let (from, to) = (having(from), having(to));
    let mut pairs = Vec::new();
    for (a, one) in &from {
        for (b, _) in to
            .iter()
            .filter(|(_, other)| differ_only_in(one, other, factor))
        {
            let (of_a, of_b) = (
                measurements.blocks(*a, figure),
                measurements.blocks(*b, figure),
            );
            let both = of_a
                .iter()
                .filter_map(|(block, a)| Some((a.mean, of_b.get(block)?.mean)));
            pairs.push(Pair {
                from: *a,
                to: *b,
                blocks: both.collect(),
            });
        }
    }
    pairs
}

/// True if two layouts differ in no other factor than this one.
fn differ_only_in(a: &Layout, b: &Layout, factor: Factor) -> bool {
    let others = Factor::ALL.into_iter().filter(|other| *other != factor);
    others
        .into_iter()
        .all(|other| a.setting(other) == b.setting(other))
}

/// A setting in prose.
fn name(factor: Factor, setting: &str) -> String {
    match (factor, setting) {
        (Factor::Level, level) => level_name(level, Level::title),
        (Factor::Members, members) => format!("{members} members"),
        (Factor::Chunk, "–") => "no chunk".to_owned(),
        (Factor::Fs, "xfs") => "XFS".to_owned(),
        (Factor::Scheduler, "–") => "the scheduler that was set".to_owned(),
        (Factor::Chunk | Factor::Fs | Factor::Scheduler, other) => other.to_owned(),
    }
}

/// A factor as the subject of a sentence.
pub(super) fn subject(factor: Factor) -> &'static str {
    match factor {
        Factor::Level => "the RAID level",
        Factor::Members => "the number of members",
        Factor::Chunk => "the chunk",
        Factor::Fs => "the file system",
        Factor::Scheduler => "the I/O scheduler",
    }
}

/// An effect that is formatted as a sentence.
struct EffectSentence<'a> {
    figure: &'a Figure,
    factor: Factor,
    names: String,
    pairs: usize,
    range: (f64, f64),
}

impl EffectSentence<'_> {
    fn text(&self, ratio: f64, interval: Option<RatioInterval>) -> String {
        let names = &self.names;
        let over = format!("over {} of layouts", count(self.pairs, "pair"));
        let Some(interval) = interval else {
            let how = direction(self.figure, ratio >= 1.0);
            return format!(
                "{names}: {how} by {} {over}, measured too seldom for an interval.",
                amount((ratio - 1.0).abs())
            );
        };
        let (least, most) = self.range;
        // Where a factor improves some layouts and worsens others, the mean alone would mislead.
        let by_pair = if self.pairs > 1 && least < 1.0 && most > 1.0 {
            format!("; by pair from {}", amounts(least, most))
        } else {
            String::new()
        };
        if interval.shows_difference() {
            return format!(
                "{names}: {} {over}{by_pair}.",
                changed(self.figure, interval)
            );
        }
        format!(
            "No effect of {} shown: {names} changes {} by {} ({}) {over}{by_pair}.",
            subject(self.factor),
            self.figure,
            amount(ratio - 1.0),
            amounts(interval.low, interval.high)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::decide;
    use super::super::testing::{Truth, raid10, sweep};
    use super::*;
    use domain::filesystem::Fs;
    use record::Bytes;

    /// RAID 10 of 2, 4, 6 and 8, with two chunks and two file systems: 16 layouts.
    fn layouts() -> Vec<Layout> {
        let mut layouts = Vec::new();
        for members in [2, 4, 6, 8] {
            for chunk in [64, 256] {
                for fs in [Fs::Ext4, Fs::Xfs] {
                    layouts.push(Layout {
                        chunk: Some(Bytes::kib(chunk)),
                        fs,
                        ..raid10(members)
                    });
                }
            }
        }
        layouts
    }

    fn effects(objective: &str, noise: f64, blocks: usize) -> Vec<FactorEffect> {
        let of = |layout: &Layout| {
            let fs = if layout.fs == Fs::Xfs { 1.05 } else { 1.0 };
            let iops = 3000.0 * layout.members as f64 * fs;
            vec![("page-mixed.iops", iops), ("page-mixed.p99", 1e11 / iops)]
        };
        let truth = Truth {
            of: &of,
            noise,
            drift: 0.05,
            seed: 5,
        };
        decide(&truth.all(sweep(objective, layouts()), blocks)).effects
    }

    /// A truth in which all layouts are equal.
    const FLAT: Truth = Truth {
        of: &|_| vec![("page-mixed.iops", 1000.0)],
        noise: 0.01,
        drift: 0.0,
        seed: 1,
    };

    fn of_factor(effects: &[FactorEffect], factor: Factor) -> &FactorEffect {
        effects
            .iter()
            .find(|effect| effect.factor == factor)
            .unwrap()
    }

    #[test]
    fn a_disk_alone_hides_no_effect_of_the_others() {
        let mut all = vec![Layout {
            level: None,
            members: 1,
            chunk: None,
            ..raid10(2)
        }];
        all.extend(layouts());
        let of = |layout: &Layout| vec![("page-mixed.iops", 3000.0 * layout.members as f64)];
        let truth = Truth {
            of: &of,
            noise: 0.01,
            drift: 0.0,
            seed: 5,
        };
        let effects = decide(&truth.all(sweep("page-mixed.iops", all), 3)).effects;
        for factor in [Factor::Members, Factor::Chunk, Factor::Fs] {
            assert!(effects.iter().any(|one| one.factor == factor), "{factor:?}");
        }
    }

    #[test]
    fn a_file_system_that_helps_is_shown_and_a_chunk_that_does_not_is_not() {
        let effects = effects("page-mixed.iops", 0.01, 3);
        let fs = of_factor(&effects, Factor::Fs);
        assert!(fs.shown && fs.pairs == 8, "{fs:?}");
        assert!((fs.ratio.mean - 1.05).abs() < 0.015, "{fs:?}");
        assert!(
            fs.text.starts_with("XFS against ext4: ") && fs.text.contains("% faster ("),
            "{}",
            fs.text
        );
        assert!(fs.text.ends_with("over 8 pairs of layouts."), "{}", fs.text);
        let chunk = of_factor(&effects, Factor::Chunk);
        assert!(!chunk.shown, "{chunk:?}");
        let begin =
            "No effect of the chunk shown: 256 KiB against 64 KiB changes page-mixed.iops by ";
        assert!(chunk.text.starts_with(begin), "{}", chunk.text);
        // Each number of members compared with the lowest.
        let members: Vec<&FactorEffect> = effects
            .iter()
            .filter(|e| e.factor == Factor::Members)
            .collect();
        let to: Vec<&str> = members.iter().map(|effect| effect.to.as_str()).collect();
        assert_eq!(to, ["4", "6", "8"]);
        assert!((members[2].ratio.mean - 4.0).abs() < 0.1);
        assert!(
            !effects
                .iter()
                .any(|e| matches!(e.factor, Factor::Level | Factor::Scheduler))
        );
    }

    #[test]
    fn the_effect_on_a_latency_is_worded_as_latency() {
        let effects = effects("page-mixed.p99", 0.01, 3);
        let fs = of_factor(&effects, Factor::Fs);
        assert!(fs.shown && fs.ratio.mean < 1.0, "{fs:?}");
        assert!(fs.text.contains("% lower latency ("), "{}", fs.text);
    }

    #[test]
    fn a_single_pair_in_one_block_has_no_interval() {
        let two = layouts().into_iter().take(2).collect();
        let decision = decide(&FLAT.all(sweep("page-mixed.iops", two), 1));
        let fs = of_factor(&decision.effects, Factor::Fs);
        assert!(!fs.shown && fs.ratio.low.is_none());
        assert!(
            fs.text.contains("too seldom for an interval"),
            "{}",
            fs.text
        );
    }

    #[test]
    fn layouts_that_differ_in_two_factors_are_no_pair() {
        let mut two = layouts();
        two.truncate(4);
        // 64 KiB with ext4 and 256 KiB with XFS.
        let two = vec![two[0].clone(), two[3].clone()];
        let decision = decide(&FLAT.all(sweep("page-mixed.iops", two), 2));
        assert_eq!(decision.effects, []);
        assert!(decision.answers.iter().any(|text| text
            == "What the chunk does was not measured: no two layouts that differ in it alone were \
                measured in the same block."));
    }
}
