use super::*;
use crate::race::test_races;
use page::browser::{assert_drawn, assert_narrow};

fn render(run: &FleetRun) -> String {
    let record = run.race.as_ref().unwrap();
    let concluded = crate::race::conclude(run, record);
    let view = RaceView {
        run,
        record,
        concluded: &concluded,
    };
    String::from_utf8(page(view).unwrap()).unwrap()
}

/// The page without the charting library, whose comment names its home.
fn without_library(page: &str) -> String {
    page.replacen(page::LIBRARY, "", 1)
}

#[test]
fn each_host_has_its_row_and_each_zone_its_place() {
    let run = test_races::raced(&[1000.0, 900.0, 800.0, 700.0, 300.0]);
    let page = render(&run);
    let table = page.split("<table class=\"sweep\">").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr class=\"").count(), run.hosts.len());
    // By zone, by type, and round by round.
    assert_eq!(page.matches(" data-figure=\"").count(), 3);
    assert!(page.contains("2 of 5 hosts are kept"));
    for word in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!without_library(&page).contains(word), "{word}");
    }
}

#[test]
fn text_from_hosts_cannot_leave_its_place() {
    const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\">'&amp;%{x}☃";
    let mut run = test_races::raced(&[1000.0, 900.0, 300.0]);
    for host in &mut run.hosts {
        host.host = HOSTILE.to_owned();
        host.zone = Some(HOSTILE.to_owned());
        host.kind = Some(HOSTILE.to_owned());
        host.id = Some(HOSTILE.to_owned());
    }
    let page = render(&run);
    let own = without_library(&page);
    assert!(!own.contains("<img"));
    assert_eq!(own.matches("</script>").count(), 3, "our own three");
    assert_drawn("race-hostile", &page);
}

#[test]
fn chromium_draws_a_race_and_one_that_was_ended() {
    let mut run = test_races::raced(&[1000.0, 900.0, 800.0, 700.0, 300.0]);
    assert_drawn("race", &render(&run));
    assert_narrow("race", &render(&run));
    let record = run.race.as_mut().unwrap();
    record.rounds.truncate(1);
    record.interrupted = true;
    let page = render(&run);
    assert!(page.contains("not over"));
    assert_drawn("race-ended", &page);
    run.race.as_mut().unwrap().rounds.clear();
    assert_drawn("race-empty", &render(&run));
}
