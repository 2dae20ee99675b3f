//! Stub.
use super::decided::Decided;
use super::record::SweepRecord;
pub(crate) fn decide(record: &SweepRecord) -> Decided {
    Decided {
        rows: vec![],
        winner: None,
        ties: vec![],
        frontier: vec![],
        over: record.blocks.len() >= 2,
        drift: None,
        effects: vec![],
        curves: vec![],
        answers: vec![],
        doubts: vec![],
    }
}
pub(crate) fn wanted(record: &SweepRecord, _: &Decided) -> Vec<usize> {
    (0..record.layouts.len()).collect()
}
