//! The page as text; `browser_tests` examines it in a browser.

use super::*;
use crate::views::sample;
use ui::output::OutputFormat;

/// A path that would break out of any HTML context that does not escape it.
const HOSTILE: &str =
    "/srv/</script><img src=x onerror=\"document.title='owned'\">'&amp;%{x}données\u{202e}☃";

pub(super) fn render(runs: &[(Run, Conclusion)]) -> String {
    String::from_utf8(page(runs, &[], &[]).unwrap()).unwrap()
}

/// A run in which every string is hostile.
pub(super) fn hostile_run() -> (Run, Conclusion) {
    let (mut run, _) = sample::database_run(5);
    run.target.path = HOSTILE.to_owned();
    run.target.device = Some(HOSTILE.to_owned());
    run.target.model = Some(HOSTILE.to_owned());
    run.target.serial = Some(HOSTILE.to_owned());
    run.machine.hostname = HOSTILE.to_owned();
    run.machine.cpu = HOSTILE.to_owned();
    run.machine.scheduler = Some(HOSTILE.to_owned());
    run.command.push(HOSTILE.to_owned());
    run.suite = HOSTILE.to_owned();
    run.notes.push(HOSTILE.to_owned());
    run.phases.truncate(2);
    run.phases[0].name = HOSTILE.to_owned();
    run.phases[0].engine.detail = HOSTILE.to_owned();
    run.id = HOSTILE.parse().unwrap();
    let mut conclusion = sample::conclusion(&run);
    conclusion.findings.push(record::Finding {
        code: record::FindingCode::Cached,
        severity: record::Severity::Invalid,
        phase: Some(HOSTILE.to_owned()),
        text: HOSTILE.to_owned(),
    });
    conclusion.verdict = record::Verdict::Invalid;
    (run, conclusion)
}

/// The page without the charting library, whose comment has a URL.
fn without_library(page: &str) -> String {
    let script = page::LIBRARY;
    assert!(page.contains(script));
    page.replacen(script, "", 1)
}

#[test]
fn the_page_beside_its_data_is_small_and_embeds_the_library_once() {
    let page = render(&[sample::database_run(1), sample::database_run(9)]);
    assert_eq!(page.matches(page::LIBRARY).count(), 1);
    page::browser::assert_small(&page);
}

#[test]
fn nothing_in_the_page_names_another_place_to_load_from() {
    let page = without_library(&render(&[sample::database_run(1)]));
    for word in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn text_from_data_cannot_leave_its_place() {
    let page = without_library(&render(&[hostile_run(), sample::database_run(1)]));
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3, "our own three");
    assert!(page.contains("données"));
}

#[test]
fn each_phase_has_its_section_its_row_and_its_four_charts() {
    let (run, conclusion) = sample::database_run(1);
    let names: Vec<_> = run.phases.iter().map(|phase| phase.name.clone()).collect();
    let page = render(&[(run, conclusion)]);
    for (i, name) in names.iter().enumerate() {
        let anchor = format!("phase-{}", i + 1);
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{name}");
        assert!(
            page.contains(&format!("href=\"#{anchor}\" class=\"data\">{name}</a>")),
            "{name}"
        );
        let charts = page.matches(&format!("aria-label=\"{name}: ")).count();
        let heatmaps = if name == "page-mixed" { 2 } else { 1 };
        assert_eq!(charts, 3 + heatmaps, "{name}");
    }
}

#[test]
fn a_run_without_windows_has_its_figures_and_says_what_is_missing() {
    let page = render(&[sample::imported_run(1)]);
    assert!(page.contains("No windows: not measured over time."));
    assert!(page.contains("Measured by <span class=\"data\">fio 3.33</span>"));
    assert!(page.contains("no interval"));
    assert!(page.contains("Latency distribution"));
    assert!(!page.contains("Latency heatmap"));
}

#[test]
fn an_interrupted_run_is_marked() {
    let page = render(&[sample::interrupted_run(1)]);
    assert!(page.contains("This run was interrupted"));
    assert!(page.contains("This phase was interrupted"));
}

#[test]
fn a_run_in_which_nothing_was_measured_is_still_a_page() {
    let (mut run, _) = sample::database_run(1);
    run.phases.clear();
    let conclusion = sample::conclusion(&run);
    let page = render(&[(run, conclusion)]);
    assert!(page.contains("No phase of this run was measured"));
    assert!(!page.contains("id=\"results\""));
    assert!(render(&[]).contains("No runs"));
}

#[test]
fn a_conclusion_that_lacks_a_phase_does_not_hide_what_was_measured() {
    let (run, mut conclusion) = sample::database_run(1);
    conclusion.phases.clear();
    assert!(render(&[(run, conclusion)]).contains("page-write"));
}

#[test]
fn a_report_is_written_as_a_whole_and_may_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [sample::interrupted_run(1)];
    let path = folder.path().join("a report.html");
    let output = OutputFile::check(&path, OutputFormat::Page, false).unwrap();
    write_file(&output, &runs, &[], &[]).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("</html>"));
    // A page is recognized as one.
    OutputFile::check(&path, OutputFormat::Page, false).unwrap();
}

/// A page with only another tool's run.
pub(super) fn render_imported() -> String {
    let run = crate::views::imported::sample::bonnie();
    let judged = crate::judged::ImportConclusion::of(&run);
    String::from_utf8(page(&[], &[(run, judged)], &[]).unwrap()).unwrap()
}

#[test]
fn the_figures_of_other_tools_stand_in_a_table_of_their_own() {
    let mut run = crate::views::imported::sample::fio();
    run.summary.phases[0].name = HOSTILE.to_owned();
    run.source = HOSTILE.to_owned();
    let judged = crate::judged::ImportConclusion::of(&run);
    let page = String::from_utf8(page(&[sample::database_run(1)], &[(run, judged)], &[]).unwrap())
        .unwrap();
    for words in [
        "Imported: <span class=\"data\">fio 3.33",
        "no interval",
        "6.10 ms",
    ] {
        assert!(page.contains(words), "no {words}");
    }
    assert!(page.contains("2 runs compared"));
    assert!(!page.contains(HOSTILE), "what comes from data is escaped");
}
