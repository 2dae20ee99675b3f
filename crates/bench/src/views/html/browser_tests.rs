//! The report in a browser.

use page::browser::{assert_drawn, assert_narrow, open_page};

use super::tests::{hostile_run, render, render_imported};
use crate::views::sample;

#[test]
fn chromium_renders_the_report_without_errors_or_requests() {
    let one = sample::database_run(1);
    assert_drawn("one", &render(std::slice::from_ref(&one)));
    let two = render(&[one, sample::database_run(9)]);
    assert_drawn("two", &two);
    assert_narrow("two", &two);
}

#[test]
fn chromium_renders_imported_interrupted_and_hostile_runs() {
    assert_drawn(
        "imported",
        &render(&[sample::imported_run(1), sample::database_run(9)]),
    );
    assert_drawn("another tool's", &render_imported());
    assert_drawn("interrupted", &render(&[sample::interrupted_run(3)]));
    assert_drawn(
        "hostile",
        &render(&[hostile_run(), sample::database_run(1)]),
    );
}

#[test]
fn chromium_asks_for_nothing_even_when_no_policy_forbids_it() {
    let page = render(&[sample::database_run(1)]);
    let policy = page
        .lines()
        .find(|line| line.contains("Content-Security-Policy"))
        .unwrap();
    assert_drawn("no-policy", &page.replacen(policy, "", 1));
}

#[test]
fn chromium_runs_no_script_without_the_nonce() {
    let page = render(&[sample::database_run(1)]);
    let injected = "<body><script>document.title = 'owned'</script><img src=\"data:,\" onerror=\"document.title = 'owned'\">";
    let Some(seen) = open_page("injected", &page.replacen("<body>", injected, 1)) else {
        return;
    };
    assert!(!seen.dom.contains("<title>owned"));
    assert!(seen.dom.contains("data-charts=\"drawn\""));
}

#[test]
fn the_pointer_names_the_rate_and_the_latency_that_it_is_on() {
    let page = render(&[sample::database_run(1)]);
    let (_, rest) = page.split_once("nonce=\"").unwrap();
    let (nonce, _) = rest.split_once('"').unwrap();
    let script = r#"
      const point = () => {
        if (!document.documentElement.dataset.charts) return setTimeout(point, 10);
        for (const chart of [...document.querySelectorAll(".chart")].slice(0, 4)) {
          const area = chart.querySelector(".u-over");
          const box = area.getBoundingClientRect();
          for (let down = 0.05; down < 1 && chart.querySelector(".tip").hidden; down += 0.05) {
            const place = { clientX: box.left + box.width * 0.4, clientY: box.top + box.height * down };
            area.dispatchEvent(new MouseEvent("mousemove", { ...place, bubbles: true }));
          }
        }
      };
      point();"#;
    let pointing = format!("<script nonce=\"{nonce}\">{script}</script></body>");
    let Some(seen) = open_page("pointer", &page.replacen("</body>", &pointing, 1)) else {
        return;
    };
    assert_eq!(seen.console, Vec::<String>::new());
    let tips: Vec<&str> = seen
        .dom
        .split("<div class=\"tip\"")
        .skip(1)
        .take(4)
        .map(|rest| &rest[rest.find('>').unwrap() + 1..rest.find("</div>").unwrap()])
        .collect();
    let [rate, latency, map, share] = tips[..] else {
        panic!("{tips:?}")
    };
    assert!(rate.starts_with("at ") && rate.contains("/s"), "{rate}");
    assert!(
        latency.contains("p50 ") && latency.contains("p99 "),
        "{latency}"
    );
    assert!(map.contains("s at ") && map.ends_with("/s"), "{map}");
    assert!(share.contains(" % within "), "{share}");
}

/// Checks that the tests detect an error and a request: otherwise an empty console and log would prove nothing.
#[test]
fn chromium_tests_would_notice_an_error_and_a_request() {
    let page = "<img src=\"http://elsewhere.test/pixel\"><script>missing()</script>";
    let Some(seen) = open_page("control", page) else {
        return;
    };
    assert!(
        seen.console
            .iter()
            .any(|line| line.contains("missing is not defined"))
    );
    assert_eq!(seen.requests, ["http://elsewhere.test/pixel"]);
}
