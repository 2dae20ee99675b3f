//! The page of a sweep as text; `browser_tests` open it in a browser.

use super::*;
use crate::views::sample;

pub(super) fn render(
    (record, decision): &(SweepRecord, SweepDecision),
    finalists: &[(String, Run)],
    commands: &[String],
) -> String {
    let view = PageView {
        record,
        decision,
        finalists,
    };
    String::from_utf8(page(view, commands).unwrap()).unwrap()
}

/// A page with all sections.
pub(super) fn whole() -> String {
    let sample = sample::measured();
    let finalists = sample::finalists(&sample.0, &sample.1);
    render(&sample, &finalists, &sample::commands())
}

/// A sweep in which every string contains markup, as an attack would.
pub(super) fn hostile() -> String {
    const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\">'&amp;%{x}☃";
    let (mut record, mut decision) = sample::measured();
    record.id = HOSTILE.parse().unwrap();
    record.machine.hostname = HOSTILE.to_owned();
    record.command.push(HOSTILE.to_owned());
    record.settings.devices[0].path = HOSTILE.into();
    record.settings.devices[0].model = Some(HOSTILE.to_owned());
    record.left_out[0].why = HOSTILE.to_owned();
    for layout in &mut record.layouts {
        layout.scheduler = Some(HOSTILE.to_owned());
    }
    for row in &mut decision.rows {
        row.why = HOSTILE.to_owned();
    }
    for effect in &mut decision.effects {
        effect.to = HOSTILE.to_owned();
        effect.text = HOSTILE.to_owned();
    }
    for curve in &mut decision.curves {
        curve.label = HOSTILE.to_owned();
    }
    decision.answers.push(HOSTILE.to_owned());
    decision.doubts.push(HOSTILE.to_owned());
    decision.over = false;
    let finalists = sample::finalists(&record, &decision);
    render(&(record, decision), &finalists, &[HOSTILE.to_owned()])
}

/// The page without the charting library, whose comment has a URL.
fn without_library(page: &str) -> String {
    page.replacen(page::LIBRARY, "", 1)
}

fn sections(page: &str) -> Vec<&str> {
    let sections = page.split("<section id=\"").skip(1);
    sections.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn a_whole_sweep_has_every_section() {
    let page = whole();
    assert_eq!(
        sections(&page),
        [
            "build",
            "maps",
            "growth",
            "factors",
            "finalists",
            "drift",
            "layouts",
            "left-out",
            "facts"
        ]
    );
    // Three levels with chunks and one without; scaling and cost; reads and writes of finalists.
    let maps = page.matches("aria-label=\"Chunk and members: ").count();
    assert_eq!(maps, 4);
    assert_eq!(page.matches(" data-figure=\"").count(), 4 + 2 + 1 + 2 + 1);
    for words in [
        "RAID 0 of 8, 256 KiB, xfs",
        "scheduler bfq",
        "disksmith array create",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn each_layout_has_its_row() {
    for sample in [sample::measured(), sample::large(), sample::all_failed()] {
        let page = render(&sample, &[], &[]);
        let table = page.split("<table class=\"sweep\">").nth(1).unwrap();
        let table = table.split("</table>").next().unwrap();
        let rows = table.matches("<tr class=\"").count();
        assert_eq!(rows, sample.0.layouts.len());
    }
}

#[test]
fn nothing_in_the_page_names_another_place_to_load_from() {
    let page = without_library(&whole());
    for word in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn text_from_data_cannot_leave_its_place() {
    let page = without_library(&hostile());
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3, "our own three");
    assert!(page.contains('☃'));
}

#[test]
fn a_sweep_without_prices_and_probe_has_no_charts_of_them() {
    let page = render(&sample::large(), &[], &[]);
    assert!(!page.contains("$/month") && !page.contains("$ a month"));
    assert!(!sections(&page).contains(&"growth"));
    assert!(sections(&page).contains(&"maps"));
}

#[test]
fn a_sweep_that_is_not_over_or_failed_is_still_a_page() {
    let page = render(&sample::unfinished(), &[], &[]);
    assert!(page.contains("The sweep is not complete") && page.contains("not over</p>"));
    let page = render(&sample::all_failed(), &[], &sample::commands());
    assert!(page.contains("No layout could be built"));
    assert_eq!(sections(&page), ["layouts", "left-out", "facts"]);
}
