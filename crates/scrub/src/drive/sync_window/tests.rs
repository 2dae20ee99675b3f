use super::*;

const MS: u64 = 1_000_000;
/// 1 MiB a second.
const RATE: Allowed = Allowed::Rate(1_048_576.0);

/// Window of RAID 10 over four pairs with chunks of 64 KiB, with a target in seconds.
fn raid10_window(kept: f64) -> SyncWindow {
    let mut window = SyncWindow::new(Sectors(0), BLOCK, 4, Nanos(0)).with_barrier_if(true);
    window.ends_at(Sectors(1 << 40));
    window.keep(Some(kept));
    window
}

/// Sizes of the steps within `ms` milliseconds, in units. The arguments give the duration of a unit and the number of
/// requests in flight at each millisecond.
fn steps(
    window: &mut SyncWindow,
    ms: u64,
    unit_ms: u64,
    in_flight: impl Fn(u64) -> u64,
) -> Vec<u64> {
    let (mut live, mut over, mut all) = (Sectors(0), 0, Vec::new());
    for ms in 1..=ms {
        let now = Nanos(ms * MS);
        let before = live;
        if ms >= over {
            live = window.at();
        }
        window.follow(live, now);
        let bytes = Sectors(live.0 - before.0).bytes().0 as f64;
        window.throttle(RATE, live, bytes, 0.001);
        window.note_stop(now);
        if window.is_wanted(RATE, live, now) {
            let from = window.at().0;
            if let Some(to) = window.raise(RATE, live, in_flight(ms), now) {
                let units = (to.0 - from) / BLOCK.0;
                over = ms + units * unit_ms;
                all.push(units);
            }
        }
    }
    all
}

#[test]
fn a_step_is_as_long_as_half_of_what_is_kept_allows() {
    // 20 ms may be taken, and a second's worth is sixteen units of 64 KiB.
    let fast = steps(&mut raid10_window(0.040), 20_000, 5, |_| 0);
    assert_eq!((fast.first(), fast.last()), (Some(&1), Some(&4)));
    // A step is at least one unit, however long it takes.
    let slow = steps(&mut raid10_window(0.040), 20_000, 50, |_| 0);
    assert!(slow.iter().all(|units| *units == 1), "{slow:?}");
    assert!(slow.len() > 250, "and the rate is had: {}", slow.len());
    // A hundred megabytes a second in steps of 64 KiB would be nothing but superblocks.
    let mut quick = raid10_window(0.001);
    steps(&mut quick, 1000, 1, |_| 0);
    assert_eq!(quick.step(1e8).bytes().0 >> 16, 152);
}

#[test]
fn a_step_waits_for_few_requests_in_flight_but_not_for_ever() {
    // Every 13 ms few requests are in flight for a moment.
    let busy = |ms: u64| if ms.is_multiple_of(13) { 2 } else { 10 };
    let mut window = raid10_window(0.040);
    let some = steps(&mut window, 20_000, 50, busy);
    assert!(some.len() > 200, "{}", some.len());
    let usual = window.usual.unwrap_or_default();
    assert!(usual > 5.0, "what it waited for is not usual: {usual}");
    let always = steps(&mut raid10_window(0.040), 20_000, 50, |_| 10);
    assert!(always.len() > 200, "{}", always.len());
}

#[test]
fn where_nobody_waits_for_all_of_it_a_step_is_a_mebibyte_of_each_member() {
    let mut window = SyncWindow::new(Sectors(0), BLOCK, 4, Nanos(0));
    window.ends_at(Sectors(1 << 40));
    window.keep(Some(0.001));
    let all = steps(&mut window, 20_000, 5, |_| 0);
    assert!(all.iter().all(|units| *units == 64), "{all:?}");
}

#[test]
fn alone_md_stands_soon_and_then_seldom() {
    let mut window = SyncWindow::new(Sectors(0), BLOCK, 4, Nanos(0));
    window.ends_at(Sectors(1 << 40));
    let (mut live, mut stood) = (Sectors(0), Vec::new());
    for ms in (100..120_000).step_by(100) {
        let now = Nanos(ms * MS);
        let before = live;
        // 50 MiB a second.
        live = Sectors(before.0 + 10_240).min(window.at());
        let bytes = Sectors(live.0 - before.0).bytes().0 as f64;
        window.throttle(Allowed::All, live, bytes, 0.1);
        if live == window.at() {
            window.note_stop(now);
            stood.push(ms);
        }
        if window.is_wanted(Allowed::All, live, now) {
            window.raise(Allowed::All, live, 0, now);
        }
    }
    // The first is the beginning.
    assert!(stood[1] < 7000, "{stood:?}");
    assert!(
        stood.windows(2).skip(4).all(|two| two[1] - two[0] > 20_000),
        "{stood:?}"
    );
    assert!((6..9).contains(&stood.len()), "{stood:?}");
}
