//! The whole verb over a scripted engine with known results.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use engine::scripted::ScriptedEngine;
use engine::{Engine, EngineError, Job};
use linux::Root;
use record::{Bytes, Slice, Window, WindowFlow};
use serde_json::Value;

use super::bench;
use crate::args::tests::parsed;
use ui::context::Context;
use ui::exit::{CommandEnd, Failure, Outcome};

/// Captured output, shared with the context that prints it.
#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Vec<u8>>>);

impl io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `bench` on `folder` with `arguments` over `engine`; returns the outcome and the output.
pub(super) fn run(folder: &Path, arguments: &str, engine: &dyn Engine) -> (Outcome, String) {
    let words = ["disksmith", "bench"]
        .into_iter()
        .chain(arguments.split(' '));
    let args = parsed(words.chain([folder.to_str().unwrap()])).unwrap();
    let paper = Paper::default();
    let mut context = Context {
        root: Root::host(),
        ledger: Some(folder.join("ledger.db")),
        out: Box::new(paper.clone()),
        watched: false,
        answers_a_person: false,
        columns: 100,
    };
    let outcome = bench(&args, &mut context, engine, &AtomicBool::new(false));
    let text = String::from_utf8(paper.0.take()).unwrap();
    (outcome, text)
}

/// `count` windows of `ops` requests each, all of which took `latency` nanoseconds.
pub(super) fn windows(job: &Job<'_>, count: usize, ops: u64, latency: u64) -> Vec<Window> {
    let seconds = job.window.as_secs_f64();
    let window = |index: usize| {
        let slice = Slice {
            ops: ops / 10,
            bytes: ops / 10 * job.workload.block.0,
        };
        let mut flow = WindowFlow {
            slices: vec![slice; 10],
            ..WindowFlow::default()
        };
        flow.latency.record_many(latency, ops);
        Window {
            t_s: index as f64 * seconds,
            seconds,
            slice_seconds: seconds / 10.0,
            read: job.workload.reads().then(|| flow.clone()),
            write: job.workload.writes().then(|| flow.clone()),
            in_flight: job.workload.in_flight(),
            idle_fraction: 0.9,
            ..Window::default()
        }
    };
    (0..count).map(window).collect()
}

/// A disk that serves 1,000 requests of 1 ms a window, and fails in the phases that `fails` selects.
fn disk(fails: fn(&str) -> bool) -> impl Engine {
    ScriptedEngine::new(move |job| {
        if fails(job.name) {
            return Err(EngineError::Setup(io::Error::other("as scripted")));
        }
        // The file is laid out in one window; a phase has its maximum of windows.
        let count = if job.name == "lay out" { 1 } else { 8 };
        Ok(windows(job, count, 1000, 1_000_000))
    })
}

#[test]
fn known_answers_come_out_as_known_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, text) = run(
        folder.path(),
        "--json --size 1000M --phase page-read --seconds 8s",
        &disk(|_| false),
    );
    assert_eq!(outcome.unwrap(), CommandEnd::Done);
    let document: Value = serde_json::from_str(&text).unwrap();
    let phase = &document["phases"][0];
    assert_eq!(phase["read"]["iops"]["mean"], 1000.0);
    assert_eq!(phase["read"]["iops"]["low"], 1000.0);
    assert_eq!(phase["read"]["latency_ns"]["max"], 1_000_000);
    assert_eq!(document["target"]["size_bytes"], Bytes::mib(1000).0);
    // Steady and exact: the phase ended as early as possible.
    assert_eq!(phase["stopped"], "precise");
    assert!(phase["seconds"].as_f64().unwrap() <= 5.0);
}

#[test]
fn precision_0_lasts_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "--json --size 1000M --phase seek --precision 0";
    let (_, text) = run(folder.path(), arguments, &disk(|_| false));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["phases"][0]["stopped"], "time");
    assert_eq!(document["phases"][0]["seconds"], 8.0);
}

#[test]
fn a_phase_that_fails_leaves_those_before_it_in_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "--json --size 1000M --phase seek,page-read,scan";
    let (outcome, text) = run(folder.path(), arguments, &disk(|name| name == "page-read"));
    let Err(Failure::Midway(error)) = outcome else {
        panic!("{outcome:?}")
    };
    let error = format!("{error:#}");
    assert!(
        error.contains("page-read on ") && error.contains("as scripted"),
        "{error}"
    );
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["phases"].as_array().unwrap().len(), 1);
    assert!(
        document["notes"][0]
            .as_str()
            .unwrap()
            .contains("page-read failed")
    );
}

#[test]
fn a_file_that_cannot_be_laid_out_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "--json --size 1000M --phase seek";
    let (outcome, text) = run(folder.path(), arguments, &disk(|name| name == "lay out"));
    assert!(matches!(outcome, Err(Failure::Midway(_))), "{outcome:?}");
    assert_eq!(text, "");
}
