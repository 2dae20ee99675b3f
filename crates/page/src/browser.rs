//! Pages as a browser shows them: a headless Chromium opens a page offline and logs what it would request from the
//! network. Without a Chromium these tests report that they were skipped.
//!
//! With `DISKSMITH_KEEP_REPORTS=DIR` the pages are written there as well, to be examined.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// Time after which a browser is considered to hang.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Result of opening a page.
pub struct RenderedPage {
    /// The document after its scripts have run.
    pub dom: String,
    /// Lines written to the console.
    pub console: Vec<String>,
    /// Network requests that the page attempted.
    pub requests: Vec<String>,
}

/// The browser to test with: `DISKSMITH_CHROMIUM`, or the first of the usual names on the PATH.
pub fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("DISKSMITH_CHROMIUM") {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|program| program.is_file())
}

/// Opens `page` in Chromium; `None`, with a note, where there is no Chromium.
pub fn open_page(name: &str, page: &str) -> Option<RenderedPage> {
    let Some(program) = chromium() else {
        skip::skipped("no Chromium found (set DISKSMITH_CHROMIUM to one)");
        return None;
    };
    if let Some(folder) = env::var_os("DISKSMITH_KEEP_REPORTS") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join(format!("{name}.html")), page).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, page).unwrap();
    let place = |name| folder.path().join(name);
    let (dom, log, net) = (place("dom"), place("log"), place("net"));
    let mut child = Command::new(program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
        ])
        .args([
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1280,1000",
        ])
        .args([
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=60000",
        ])
        .arg(format!("--user-data-dir={}", place("profile").display()))
        // A proxy that does not exist, so that no request leaves this machine.
        .args([
            "--proxy-server=http://127.0.0.1:9",
            "--proxy-bypass-list=<-loopback>",
        ])
        .arg(format!("--log-net-log={}", net.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!(
                "Chromium did not answer: {}",
                fs::read_to_string(&log).unwrap()
            );
        }
        thread::sleep(Duration::from_millis(20));
    }
    let log = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    Some(RenderedPage {
        dom: String::from_utf8_lossy(&fs::read(&dom).unwrap()).into_owned(),
        console: log
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .map(String::from)
            .collect(),
        requests: requests(&fs::read(&net).unwrap()),
    })
}

/// The addresses in Chromium's network log that a page requested. The browser makes requests of its own, such as for
/// updates: those do not have a page's origin.
fn requests(log: &[u8]) -> Vec<String> {
    let log: serde_json::Value = serde_json::from_slice(log).unwrap();
    let events = log["events"].as_array().unwrap();
    let from_a_page = events.iter().filter_map(|event| {
        let params = &event["params"];
        let initiator = params["initiator"].as_str()?;
        (initiator != "not an origin").then(|| params["url"].as_str())?
    });
    from_a_page.map(String::from).collect()
}

/// Checks that every chart of `page` is drawn, no error was reported, and nothing was requested.
pub fn assert_drawn(name: &str, page: &str) {
    assert_small(page);
    let Some(seen) = open_page(name, page) else {
        return;
    };
    assert_eq!(seen.console, Vec::<String>::new(), "{name}");
    assert_eq!(seen.requests, Vec::<String>::new(), "{name}");
    assert!(
        seen.dom.contains("data-charts=\"drawn\""),
        "{name}: not all charts were drawn"
    );
    let charts: Vec<&str> = seen.dom.split(" data-figure=\"").skip(1).collect();
    assert_eq!(
        charts.len(),
        page.matches(" data-figure=\"").count(),
        "{name}"
    );
    for chart in charts {
        assert!(chart.contains("class=\"uplot"), "{name}: {:.60}", chart);
    }
}

/// Checks that the page as a whole is not wider than a window of 400 px, once its charts are drawn.
pub fn assert_narrow(name: &str, page: &str) {
    // In a frame, since a window of Chromium has a minimum width.
    let source = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<iframe style='width: 400px; height: 1000px; border: 0' onload='measure(this)' srcdoc=\"{source}\">\
         </iframe>"
    );
    let measure = "<script>
        const measure = (frame) => {
            const root = frame.contentDocument.documentElement;
            const timer = setInterval(() => {
                if (root.dataset.charts === 'drawn') {
                    clearInterval(timer);
                    document.body.dataset.beyond = root.scrollWidth - root.clientWidth;
                }
            }, 20);
        };
        </script>";
    let Some(seen) = open_page(&format!("{name}-narrow"), &(measure.to_owned() + &frame)) else {
        return;
    };
    let beyond = seen.dom.split_once("data-beyond=\"");
    let beyond = beyond.and_then(|(_, rest)| rest.split_once('"'));
    let beyond = beyond.map(|(beyond, _)| beyond);
    assert_eq!(beyond, Some("0"), "{name}: pixels beyond 400");
}

/// Maximum size of a page in bytes, besides its data.
const MAX_PAGE_BYTES: usize = 400 * 1024;

/// Checks that the page is small compared with its charts' data, and that it contains no host name except in the
/// comment of the library.
pub fn assert_small(page: &str) {
    let (before, rest) = page.split_once("id=\"figures\">").unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    let bytes = before.len() + after.len();
    assert!(bytes <= MAX_PAGE_BYTES, "{bytes} bytes beside the data");
    let own = page.replacen(crate::LIBRARY, "", 1);
    for word in ["http://", "https://", "@import", "url("] {
        assert!(!own.contains(word), "{word}");
    }
}
