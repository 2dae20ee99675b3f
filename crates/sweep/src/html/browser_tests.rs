//! The page of a sweep as a browser sees it.

use super::tests::{hostile, render, whole};
use crate::views::sample;
use page::browser::{assert_drawn, assert_narrow};

#[test]
fn chromium_draws_every_chart_of_a_sweep() {
    assert_drawn("sweep", &whole());
    assert_narrow("sweep", &whole());
    let large = sample::large();
    let finalists = sample::finalists(&large.0, &large.1);
    assert_drawn(
        "sweep-large",
        &render(&large, &finalists, &sample::commands()),
    );
}

#[test]
fn chromium_draws_a_sweep_by_cost() {
    let sample = sample::cheapest();
    let finalists = sample::finalists(&sample.0, &sample.1);
    assert_drawn("sweep-cost", &render(&sample, &finalists, &[]));
}

#[test]
fn chromium_draws_sweeps_that_are_partial_failed_or_hostile() {
    assert_drawn("sweep-partial", &render(&sample::unfinished(), &[], &[]));
    assert_drawn("sweep-failed", &render(&sample::all_failed(), &[], &[]));
    assert_drawn("sweep-hostile", &hostile());
}
