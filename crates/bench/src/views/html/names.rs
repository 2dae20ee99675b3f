//! Names of the runs of a report: a short, unique id, and a label.

use record::Run;

use crate::conclusion::Conclusion;

/// Maximum length of the host and target in a label, in characters.
const PLACE_CHARS: usize = 28;
/// Maximum length of a short id. Ids of this program fit; an imported run's id can be anything.
const SHORT_CHARS: usize = 24;

/// A run of the report.
pub struct Subject<'a> {
    /// Index of the run in the report, which decides its colour.
    pub slot: usize,
    /// The run that is shown.
    pub run: &'a Run,
    /// Figures and findings of the run.
    pub conclusion: &'a Conclusion,
    /// The shortest part of its id that is unique in the report.
    pub short: String,
    /// Name in a legend: the short id, and host and target if they fit.
    pub label: String,
}

/// The runs of the report with their names.
pub(super) fn subjects(runs: &[(Run, Conclusion)]) -> Vec<Subject<'_>> {
    let ids: Vec<&str> = runs.iter().map(|(run, _)| run.id.as_str()).collect();
    let ends: Vec<&str> = ids.iter().map(|id| last_part(id)).collect();
    let distinct = ends
        .iter()
        .enumerate()
        .all(|(i, end)| !ends[..i].contains(end));
    runs.iter()
        .enumerate()
        .map(|(slot, (run, conclusion))| {
            let short = shortened(if distinct { ends[slot] } else { ids[slot] }, SHORT_CHARS);
            let place = format!("{}:{}", run.machine.hostname, run.target.path);
            Subject {
                slot,
                run,
                conclusion,
                label: format!("{short} {}", shortened(&place, PLACE_CHARS)),
                short,
            }
        })
        .collect()
}

/// The last part of an id of this program; another id unchanged.
fn last_part(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((_, end)) if !end.is_empty() => end,
        _ => id,
    }
}

/// The first and the last characters of `text`, with an ellipsis for the part left out between them.
fn shortened(text: &str, longest: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= longest {
        return text.to_owned();
    }
    let head = longest / 2;
    let tail = longest - head - 1;
    let (first, last) = (&chars[..head], &chars[chars.len() - tail..]);
    first.iter().chain(['…'].iter()).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::sample;

    #[test]
    fn runs_are_distinguished_by_the_end_of_their_id_or_else_by_all_of_it() {
        let runs = [sample::database_run(1), sample::database_run(2)];
        let shorts: Vec<_> = subjects(&runs).iter().map(|s| s.short.len()).collect();
        assert_eq!(shorts, [8, 8]);
        let same = [runs[0].clone(), runs[0].clone()];
        assert_eq!(subjects(&same)[1].short, same[1].0.id.as_str());
    }

    #[test]
    fn a_long_path_loses_its_middle() {
        assert_eq!(shortened("/short", 28), "/short");
        let long = shortened("/srv/données/mysql/volumes/replica-17/data", 28);
        assert_eq!(long, "/srv/données/m…plica-17/data");
        assert_eq!(long.chars().count(), 28);
    }
}
