use super::*;
use crate::io::tests::read_at;

fn of(ios: impl IntoIterator<Item = Io>) -> Figures {
    let mut figures = Figures::default();
    ios.into_iter().for_each(|io| figures.add(&io));
    figures
}

#[test]
fn depth_is_the_mean_over_time() {
    // Two in flight for 10 ns, one for 10 ns, none for 20 ns, then one with a latency of zero.
    let io = |issued, completed| Io {
        completed: Some(Nanos(completed)),
        ..read_at(issued, 0)
    };
    let mut figures = of([io(0, 10), io(0, 20), io(40, 40)]);
    let depth = figures.depth().unwrap();
    assert_eq!((depth.mean, depth.max), (30.0 / 40.0, 2));
    assert_eq!(of([read_at(0, 0)]).depth(), None);
}

#[test]
fn distinct_bytes_and_skew_are_exact_below_the_bound() {
    // 100 blocks, of which one has half of all accesses.
    let ios = (0..100).flat_map(|n| [read_at(n, n * 4096), read_at(n, 0)]);
    let figures = of(ios);
    assert_eq!(figures.distinct(), Bytes(100 * 4096));
    assert!(!figures.is_sampled());
    let skew = figures.skew();
    assert_eq!(skew[0].accesses, 101.0 / 200.0);
    assert_eq!(skew[2].accesses, 120.0 / 200.0);
}

#[test]
fn beyond_the_bound_they_are_estimated() {
    let mut blocks = Blocks::with_most(1 << 12);
    for n in 0..100_000 {
        blocks.add(&read_at(n, n * 4096));
    }
    assert!(blocks.is_sampled());
    let distinct = blocks.distinct().0 as f64 / (100_000.0 * 4096.0);
    assert!((0.9..1.1).contains(&distinct), "{distinct}");
    assert!((blocks.skew()[2].accesses - 0.2).abs() < 0.01);
}

#[test]
fn streams_that_alternate_are_sequential() {
    let ios = (0..50).flat_map(|n| [read_at(n, n * 4096), read_at(n, (1 << 30) + n * 4096)]);
    assert_eq!(of(ios).sequential, 98);
}

#[test]
fn slices_widen_and_keep_their_sums() {
    let figures = of((0..10_000).map(|n| read_at(n * 1_000_000_000, n * (1 << 20))));
    let slices = figures.over_time.slices();
    assert!(slices.len() <= series::MAX_SLICES);
    assert_eq!(slices.iter().map(|slice| slice.reads).sum::<u64>(), 10_000);
    assert_eq!(slices.last().unwrap().distinct, 10_000 * 4096);
    let heat = &figures.heat[&DeviceIndex(0)];
    let cells = heat.columns().slices().iter().flat_map(|column| column.0);
    assert_eq!(cells.map(u64::from).sum::<u64>(), 10_000);
    assert!(heat.row * heat::ROWS as u64 >= 10_000 << 20);
}
