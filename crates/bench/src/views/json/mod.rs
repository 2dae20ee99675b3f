//! One JSON document for each run, with a file for each part of it. The form for a measured run and that for an
//! imported run are in the same file. Other programs read their keys: none is renamed or retyped without raising
//! [`SCHEMA`].

mod flow;
mod phase;
mod target;
mod workload;

use jiff::Timestamp;
use record::{Finding, ImportedRun, Origin, Run, RunId, Verdict};
use serde::Serialize;

use ui::json::SCHEMA;

use crate::answer::SuiteResult;
use crate::conclusion::Conclusion;
use crate::judged::ImportConclusion;
use phase::{ImportedPhase, PhaseDocument};
use target::{ImportedMachine, ImportedTarget, TargetDocument};

pub use target::MachineDocument;

/// Document of one run, with a line end.
pub(crate) fn document(run: &Run, conclusion: &Conclusion) -> String {
    text(&RunDocument::of(run, conclusion))
}

/// Document of another tool's run, with a line end.
pub(crate) fn imported(run: &ImportedRun, judged: &ImportConclusion) -> String {
    text(&ImportedDocument::of(run, judged))
}

fn text(document: &impl Serialize) -> String {
    // Only memory allocation could fail, which Rust does not report.
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// The document of `bench --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunDocument<'a> {
    /// Version of the document's form.
    schema: u32,
    /// `bench`, the command that made the document.
    command: &'static str,
    /// Version of the program that measured.
    disksmith: &'a str,
    /// Id of the run.
    run: &'a RunId,
    /// Start of the run.
    started: Timestamp,
    origin: &'a Origin,
    /// True if a signal ended the run before its last phase was done.
    interrupted: bool,
    target: TargetDocument<'a>,
    machine: MachineDocument<'a>,
    /// Name of the suite; `workload` for a single workload of `--workload`.
    suite: &'a str,
    /// Phases that ran, in order.
    phases: Vec<PhaseDocument<'a>>,
    /// Results of the suite beside the figures of its phases; null where the suite has none or nothing was measured.
    answer: &'a Option<SuiteResult>,
    /// Reasons to doubt the figures; empty without one.
    findings: &'a [Finding],
    /// Sum of the findings.
    verdict: Verdict,
    /// Remarks for people, as sentences, such as which phases were left out.
    notes: &'a [String],
}

impl<'a> RunDocument<'a> {
    fn of(run: &'a Run, conclusion: &'a Conclusion) -> RunDocument<'a> {
        let phases = run.phases.iter().zip(&conclusion.phases);
        RunDocument {
            schema: SCHEMA,
            command: "bench",
            disksmith: &run.disksmith,
            run: &run.id,
            started: run.started,
            origin: &run.origin,
            interrupted: run.interrupted,
            target: TargetDocument::of(&run.target),
            machine: MachineDocument::of(&run.machine),
            suite: &run.suite,
            phases: phases
                .map(|(phase, figures)| PhaseDocument::of(phase, figures))
                .collect(),
            answer: &conclusion.answer,
            findings: &conclusion.findings,
            verdict: conclusion.verdict,
            notes: &run.notes,
        }
    }
}

/// The document of `import --json`, for one run: the keys of [`RunDocument`] that other tools give, and a few more.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ImportedDocument<'a> {
    /// Version of the document's form.
    schema: u32,
    /// `import`, the command that made the document.
    command: &'static str,
    /// Version of the program that imported the run.
    disksmith: &'a str,
    /// Id of the run; null where nothing was kept (`--dry-run`).
    pub(crate) run: Option<&'a RunId>,
    /// Time at which the tool ran; null where its output does not say.
    started: Option<Timestamp>,
    /// Time of the import.
    imported: Timestamp,
    origin: ImportedOrigin<'a>,
    /// File that the run was read from.
    source: &'a str,
    /// Always false: it is not known of another tool's run.
    interrupted: bool,
    target: ImportedTarget<'a>,
    machine: ImportedMachine<'a>,
    /// Name of the tool, such as `fio`, in place of a suite's name.
    suite: &'a str,
    /// Phases of the run, in the order of the tool's output.
    phases: Vec<ImportedPhase<'a>>,
    /// Reasons to doubt the figures; empty without one.
    findings: &'a [Finding],
    /// Sum of the findings.
    verdict: Verdict,
    /// Empty: only runs of this program have notes.
    notes: [&'a str; 0],
}

impl<'a> ImportedDocument<'a> {
    pub(crate) fn of(run: &'a ImportedRun, judged: &'a ImportConclusion) -> ImportedDocument<'a> {
        let summary = &run.summary;
        ImportedDocument {
            schema: SCHEMA,
            command: "import",
            disksmith: &run.disksmith,
            run: Some(&run.id),
            started: summary.ran,
            imported: run.imported,
            origin: ImportedOrigin::Imported {
                tool: &summary.tool,
            },
            source: &run.source,
            interrupted: false,
            target: ImportedTarget::of(summary),
            machine: ImportedMachine::of(summary),
            suite: run.suite(),
            phases: summary.phases.iter().map(ImportedPhase::of).collect(),
            findings: &judged.findings,
            verdict: judged.verdict,
            notes: [],
        }
    }
}

/// The tool that measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ImportedOrigin<'a> {
    /// Read from another tool's output.
    Imported {
        /// Tool and its version, such as `fio 3.33`.
        tool: &'a str,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::views::imported::sample as imported_sample;
    use crate::views::sample;

    /// The keys that the design promises, for other programs.
    #[test]
    fn the_document_holds_what_was_promised() {
        let (run, conclusion) = sample::database_run(1);
        let text = document(&run, &conclusion);
        let document: Value = serde_json::from_str(&text).unwrap();
        let promised = [
            (
                "",
                "schema command disksmith run target machine suite phases findings verdict",
            ),
            ("/target", "path kind device model size_bytes"),
            (
                "/machine",
                "hostname kernel cpu cores memory_bytes filesystem scheduler cloud",
            ),
            (
                "/phases/1",
                "name workload seconds stopped read write sync threads_fairness cpu windows",
            ),
            (
                "/phases/1/workload",
                "pattern read_fraction block_bytes threads depth rate_per_s span_bytes",
            ),
            ("/phases/1/read", "ops bytes iops bytes_per_s latency_ns"),
            ("/phases/1/read/iops", "mean low high"),
            (
                "/phases/1/read/latency_ns",
                "min mean stddev p50 p90 p95 p99 p99_9 p99_99 max",
            ),
            ("/phases/1/threads_fairness", "ops_mean ops_stddev"),
            ("/phases/1/cpu", "user_s system_s"),
            ("/phases/1/windows/0", "t_s ops bytes p50_ns p99_ns max_ns"),
        ];
        for (place, keys) in promised {
            let object = document.pointer(place).unwrap();
            for key in keys.split(' ') {
                assert!(object.get(key).is_some(), "{place} has no {key}");
            }
        }
        assert_eq!(document["schema"], 1);
        assert_eq!(document["command"], "bench");
        assert!(document["phases"][1]["write"].is_null());
        assert!(document["phases"][1]["read"]["iops"]["mean"].is_f64());
        assert!(matches!(
            document["verdict"].as_str(),
            Some("trusted" | "doubtful" | "invalid")
        ));
    }

    #[test]
    fn what_is_not_known_is_null_and_never_a_zero() {
        let run = imported_sample::bonnie();
        let judged = ImportConclusion::of(&run);
        let value = serde_json::to_value(ImportedDocument::of(&run, &judged)).unwrap();
        let block = &value["phases"][0];
        assert_eq!(block["write"]["bytes_per_s"]["mean"], 61022.0 * 1024.0);
        for unknown in ["ops", "bytes"] {
            assert!(block["write"][unknown].is_null(), "{block:#}");
        }
        assert!(block["write"]["iops"]["mean"].is_null());
        assert!(block["write"]["latency_ns"]["p99"].is_null());
        assert!(block["seconds"].is_null() && block["cpu"]["user_s"].is_null());
        assert_eq!(block["cpu"]["share"], 0.09);
        assert_eq!(value["phases"][1]["stat"]["too_fast"], true);
        assert!(value["target"]["path"].is_null());
    }
}
