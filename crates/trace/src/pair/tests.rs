use super::*;
use proptest::prelude::*;

const DISK: DeviceIndex = DeviceIndex(0);
const DONE: RequestStep = RequestStep::Completed { failed: false };

fn event(time: u64, step: RequestStep, op: Op, offset: u64, length: u64) -> Event {
    Event {
        time: Nanos(time),
        device: DISK,
        step,
        op,
        fua: false,
        flush_first: false,
        marked_write: op == Op::Write,
        offset: Bytes(offset),
        length: Bytes(length),
        process: None,
        thread: None,
    }
}

/// I/Os of these events, and the number of ambiguous completions.
fn paired(events: &[Event]) -> (Vec<Io>, u64) {
    let mut pairing = Pairing::default();
    let mut ios = Vec::new();
    for event in events {
        pairing.push(*event);
        ios.extend(std::iter::from_fn(|| pairing.pop()));
    }
    pairing.end();
    ios.extend(std::iter::from_fn(|| pairing.pop()));
    (ios, pairing.ambiguous)
}

/// Queued, issued, completed.
fn times(io: &Io) -> (Option<u64>, u64, Option<u64>) {
    (
        io.queued.map(|t| t.0),
        io.issued.0,
        io.completed.map(|t| t.0),
    )
}

#[test]
fn io_leaves_in_the_order_of_its_issue() {
    let (ios, ambiguous) = paired(&[
        event(0, RequestStep::Queued, Op::Read, 0, 8),
        event(1, RequestStep::Queued, Op::Read, 100, 8),
        event(2, RequestStep::Issued, Op::Read, 0, 8),
        event(3, RequestStep::Issued, Op::Read, 100, 8),
        event(4, DONE, Op::Read, 100, 8),
        event(9, DONE, Op::Read, 0, 8),
    ]);
    assert_eq!(times(&ios[0]), (Some(0), 2, Some(9)));
    assert_eq!(times(&ios[1]), (Some(1), 3, Some(4)));
    assert_eq!((ios.len(), ambiguous), (2, 0));
}

#[test]
fn merged_bios_are_queued_with_the_first_and_parts_of_one_with_the_whole() {
    let (ios, _) = paired(&[
        event(1, RequestStep::Queued, Op::Write, 8, 8),
        event(2, RequestStep::Queued, Op::Write, 0, 8),
        event(3, RequestStep::Issued, Op::Write, 0, 16),
        event(4, RequestStep::Queued, Op::Write, 100, 20),
        event(5, RequestStep::Issued, Op::Write, 100, 10),
        event(6, RequestStep::Issued, Op::Write, 110, 10),
    ]);
    assert_eq!(times(&ios[0]), (Some(1), 3, None));
    assert_eq!(times(&ios[1]), (Some(4), 5, None));
    assert_eq!(times(&ios[2]), (Some(4), 6, None));
}

#[test]
fn completions_of_parts_add_up() {
    let (ios, ambiguous) = paired(&[
        event(1, RequestStep::Issued, Op::Read, 0, 24),
        event(2, DONE, Op::Read, 0, 8),
        event(3, DONE, Op::Read, 8, 8),
        event(4, DONE, Op::Read, 16, 8),
        // After an error the driver continues with the rest (scsi_io_completion), or ends all at once.
        event(5, RequestStep::Issued, Op::Write, 0, 24),
        event(6, RequestStep::Completed { failed: true }, Op::Write, 0, 8),
        event(7, DONE, Op::Write, 8, 16),
        event(8, RequestStep::Issued, Op::Write, 0, 24),
        event(9, RequestStep::Completed { failed: true }, Op::Write, 0, 24),
    ]);
    assert_eq!(times(&ios[0]), (None, 1, Some(4)));
    assert_eq!(times(&ios[1]), (None, 5, Some(7)));
    assert_eq!(times(&ios[2]), (None, 8, Some(9)));
    assert!(!ios[0].failed && ios[1].failed && ios[2].failed);
    assert_eq!(ambiguous, 0);
}

/// md, and dm before Linux 6.0: each part of a bio has an event of its own (bio_split), in any order. The event of the
/// bio itself, which is then the last part, is the last one.
#[test]
fn a_bio_that_was_split_ends_with_its_last_part() {
    let (ios, ambiguous) = paired(&[
        event(0, RequestStep::Queued, Op::Read, 1024, 8),
        event(1, DONE, Op::Read, 1024, 8),
        event(2, RequestStep::Queued, Op::Read, 0, 768),
        event(3, RequestStep::Queued, Op::Read, 1024, 8),
        event(4, DONE, Op::Read, 256, 256),
        event(5, DONE, Op::Read, 1024, 8),
        event(6, RequestStep::Completed { failed: true }, Op::Read, 0, 256),
        event(7, DONE, Op::Read, 512, 256),
    ]);
    assert_eq!(times(&ios[1]), (None, 2, Some(7)));
    assert_eq!(times(&ios[2]), (None, 3, Some(5)));
    let failed: Vec<bool> = ios.iter().map(|io| io.failed).collect();
    assert_eq!((failed, ambiguous), (vec![false, true, false], 0));
}

/// dm since Linux 6.0 cuts off the part that it has sent (bio_trim), and only the rest has an event. A RAM disk has
/// advanced a bio to its end when it completes.
#[test]
fn a_bio_that_was_trimmed_ends_with_what_is_left_of_it() {
    let (ios, ambiguous) = paired(&[
        event(0, RequestStep::Queued, Op::Read, 1024, 8),
        event(1, DONE, Op::Read, 1024, 8),
        event(2, RequestStep::Queued, Op::Read, 0, 768),
        event(3, DONE, Op::Read, 512, 256),
        event(4, RequestStep::Queued, Op::Read, 0, 768),
        event(5, DONE, Op::Read, 768, 0),
    ]);
    let times: Vec<_> = ios[1..].iter().map(times).collect();
    assert_eq!(times, [(None, 2, Some(3)), (None, 4, Some(5))]);
    assert_eq!((ios[1].length, ambiguous), (Bytes(768), 0));
}

/// The first completion shows how a device is traced, also if it is of a bio that was trimmed.
#[test]
fn a_trimmed_bio_shows_a_device_without_requests() {
    let mut pairing = Pairing::default();
    pairing.push(event(1, RequestStep::Queued, Op::Read, 0, 768));
    pairing.push(event(2, DONE, Op::Read, 512, 256));
    assert_eq!(times(&pairing.pop().unwrap()), (None, 1, Some(2)));
}

/// The scheduler gives requests of any process to whichever sends one to the driver.
#[test]
fn an_io_is_of_the_process_that_made_its_bio() {
    let of = |process, event| Event { process, ..event };
    let dispatcher = Some(NameIndex(1));
    for process in [None, Some(NameIndex(2))] {
        let (ios, _) = paired(&[
            of(process, event(1, RequestStep::Queued, Op::Write, 0, 8)),
            of(dispatcher, event(2, RequestStep::Issued, Op::Write, 0, 8)),
            // A request whose bio was not seen.
            of(dispatcher, event(3, RequestStep::Issued, Op::Write, 8, 8)),
        ]);
        assert_eq!(ios[0].process, process);
        assert_eq!(ios[1].process, dispatcher);
    }
}

#[test]
fn a_request_that_was_given_back_is_one_io() {
    let (ios, _) = paired(&[
        event(1, RequestStep::Queued, Op::Read, 0, 8),
        event(2, RequestStep::Issued, Op::Read, 0, 8),
        event(3, RequestStep::Requeued, Op::Read, 0, 8),
        event(4, RequestStep::Issued, Op::Read, 0, 8),
        event(5, DONE, Op::Read, 0, 8),
    ]);
    assert_eq!(ios.len(), 1);
    assert_eq!(times(&ios[0]), (Some(1), 4, Some(5)));
}

#[test]
fn a_request_whose_rest_was_given_back_keeps_what_was_completed() {
    let (ios, ambiguous) = paired(&[
        event(1, RequestStep::Queued, Op::Read, 100, 24),
        event(2, RequestStep::Issued, Op::Read, 100, 24),
        event(3, DONE, Op::Read, 100, 8),
        event(4, RequestStep::Requeued, Op::Read, 108, 16),
        event(5, RequestStep::Issued, Op::Read, 108, 16),
        event(6, DONE, Op::Read, 108, 16),
    ]);
    assert_eq!(times(&ios[0]), (Some(1), 5, Some(6)));
    assert_eq!((ios[0].offset, ios[0].length), (Bytes(100), Bytes(24)));
    assert_eq!((ios.len(), ambiguous), (1, 0));
}

#[test]
fn requests_of_one_place_are_distinguished_by_their_length_and_counted() {
    let (ios, ambiguous) = paired(&[
        event(1, RequestStep::Issued, Op::Read, 8, 8),
        event(2, RequestStep::Issued, Op::Read, 0, 16),
        event(3, DONE, Op::Read, 8, 8),
        event(4, DONE, Op::Read, 0, 16),
        // Of a request whose issue was not seen.
        event(5, DONE, Op::Read, 64, 8),
    ]);
    assert_eq!(times(&ios[0]), (None, 1, Some(3)));
    assert_eq!(times(&ios[1]), (None, 2, Some(4)));
    // The first can be the last part of the longer one.
    assert_eq!(ambiguous, 2);
}

#[test]
fn devices_without_requests_are_traced_by_their_bios() {
    let (ios, ambiguous) = paired(&[
        event(1, RequestStep::Queued, Op::Read, 0, 8),
        event(2, RequestStep::Queued, Op::Write, 8, 8),
        event(3, DONE, Op::Read, 0, 8),
        event(4, DONE, Op::Write, 8, 8),
    ]);
    assert_eq!(times(&ios[0]), (None, 1, Some(3)));
    assert_eq!(times(&ios[1]), (None, 2, Some(4)));
    assert_eq!(ambiguous, 0);
}

#[test]
fn a_flush_before_a_write_is_recorded_of_devices_without_requests() {
    let write = |time, step| Event {
        fua: true,
        flush_first: true,
        ..event(time, step, Op::Write, 8, 8)
    };
    let (ios, ambiguous) = paired(&[write(1, RequestStep::Queued), write(5, DONE)]);
    let fields: Vec<_> = ios.iter().map(|io| (io.op, io.fua, times(io))).collect();
    assert_eq!(
        fields,
        [
            (Op::Flush, false, (None, 1, None)),
            (Op::Write, true, (None, 1, Some(5))),
        ]
    );
    assert_eq!(ambiguous, 0);
    // On a device with requests, the kernel issues a separate request for it.
    let (ios, _) = paired(&[
        write(1, RequestStep::Queued),
        event(2, RequestStep::Issued, Op::Flush, 0, 0),
        event(3, DONE, Op::Flush, 0, 0),
        event(4, RequestStep::Issued, Op::Write, 8, 8),
        event(5, DONE, Op::Write, 8, 8),
    ]);
    assert_eq!(ios.len(), 2);
}

/// Two programs sync: the kernel flushes for the second before it completes the request of the first.
#[test]
fn a_repeated_completion_ends_no_later_flush() {
    let asked = |time, step| Event {
        marked_write: true,
        ..event(time, step, Op::Flush, 0, 0)
    };
    let (ios, ambiguous) = paired(&[
        event(1, RequestStep::Issued, Op::Flush, 0, 0),
        event(2, DONE, Op::Flush, 0, 0),
        event(3, RequestStep::Issued, Op::Flush, 0, 0),
        asked(4, DONE),
        event(5, DONE, Op::Flush, 0, 0),
        asked(6, DONE),
    ]);
    let times: Vec<_> = ios.iter().map(times).collect();
    assert_eq!(times, [(None, 1, Some(2)), (None, 3, Some(5))]);
    assert_eq!(ambiguous, 0);
    // Arrays have no requests, and the bio is the flush.
    let (ios, _) = paired(&[
        asked(1, RequestStep::Queued),
        asked(2, DONE),
        event(3, RequestStep::Queued, Op::Read, 0, 8),
        event(4, DONE, Op::Read, 0, 8),
    ]);
    assert_eq!(ios[0].completed, Some(Nanos(2)));
}

#[test]
fn a_request_that_hangs_holds_back_a_bounded_number() {
    let mut pairing = Pairing::default();
    pairing.push(event(0, RequestStep::Issued, Op::Read, 0, 8));
    let mut left = 0;
    for n in 1..=MAX_HELD_REQUESTS as u64 + 10 {
        pairing.push(event(n, RequestStep::Issued, Op::Write, n * 8, 8));
        pairing.push(event(n, DONE, Op::Write, n * 8, 8));
        while pairing.pop().is_some() {
            left += 1;
        }
    }
    assert_eq!(left, MAX_HELD_REQUESTS as u64 + 11);
    assert!(pairing.requests.are_none_under_way());
}

#[test]
fn a_request_that_hangs_holds_back_others_for_a_while() {
    let mut pairing = Pairing::default();
    pairing.push(event(0, RequestStep::Issued, Op::Read, 0, 8));
    pairing.push(event(1, RequestStep::Issued, Op::Write, 8, 8));
    pairing.push(event(2, DONE, Op::Write, 8, 8));
    pairing.advance(MAX_HELD_TIME - Nanos(1));
    assert!(pairing.pop().is_none());
    pairing.advance(MAX_HELD_TIME);
    assert_eq!(times(&pairing.pop().unwrap()), (None, 0, None));
    assert_eq!(times(&pairing.pop().unwrap()), (None, 1, Some(2)));
}

/// The completion of the first flush is among what was lost: those that follow have their own.
#[test]
fn where_events_were_lost_what_was_under_way_has_no_completion() {
    for by_completion in [false, true] {
        let mut pairing = match by_completion {
            true => Pairing::by_completion(),
            false => Pairing::default(),
        };
        pairing.push(event(1, RequestStep::Issued, Op::Flush, 0, 0));
        pairing.push(event(2, RequestStep::Issued, Op::Read, 0, 8));
        pairing.give_up();
        for begin in [10, 20, 30] {
            pairing.push(event(begin, RequestStep::Issued, Op::Flush, 0, 0));
            pairing.push(event(begin + 1, DONE, Op::Flush, 0, 0));
        }
        // Not lost after all.
        pairing.push(event(40, DONE, Op::Read, 0, 8));
        let left = std::iter::from_fn(|| pairing.pop());
        let left: Vec<_> = left.map(|io| times(&io)).collect();
        let given_up = [(None, 1, None), (None, 2, None)];
        let later = [10, 20, 30].map(|begin| (None, begin, Some(begin + 1)));
        match by_completion {
            true => assert_eq!(left, later),
            false => assert_eq!(left, [&given_up[..], &later].concat()),
        }
        assert_eq!(pairing.ambiguous, 1);
        assert!(pairing.requests.are_none_under_way() && pairing.requests.len() == 0);
    }
}

#[test]
fn by_completion_a_request_that_hangs_leaves_when_it_ends() {
    let mut pairing = Pairing::by_completion();
    pairing.push(event(0, RequestStep::Issued, Op::Read, 0, 8));
    let mut left = 0;
    for n in 1..=3 * MAX_IN_FLIGHT as u64 {
        pairing.push(event(n, RequestStep::Issued, Op::Write, n * 8, 8));
        pairing.push(event(n, DONE, Op::Write, n * 8, 8));
        while let Some(io) = pairing.pop() {
            assert_eq!(io.op, Op::Write);
            left += 1;
        }
        assert!(pairing.requests.len() <= MAX_IN_FLIGHT + 1);
    }
    assert_eq!(left, 3 * MAX_IN_FLIGHT);
    pairing.push(event(u64::MAX, DONE, Op::Read, 0, 8));
    assert_eq!(times(&pairing.pop().unwrap()), (None, 0, Some(u64::MAX)));
    assert!(pairing.pop().is_none() && pairing.requests.len() == 0);
    assert_eq!(pairing.ambiguous, 0);
}

proptest! {
    /// Requests of any offsets and lengths, some in flight at once, which complete in any order.
    #[test]
    fn every_request_leaves_once(requests in prop::collection::vec((0_u64..4, 1_u64..3, 0_u64..20), 1..60)) {
        let mut events = Vec::new();
        for (n, (offset, length, latency)) in requests.iter().enumerate() {
            let n = n as u64;
            events.push(event(n * 2, RequestStep::Issued, Op::Read, offset * 8, length * 8));
            events.push(event(n * 2 + latency * 2 + 1, DONE, Op::Read, offset * 8, length * 8));
        }
        events.sort_by_key(|event| event.time);
        let (ios, _) = paired(&events);
        prop_assert_eq!(ios.len(), requests.len());
        prop_assert!(ios.iter().all(|io| io.completed.is_some()));
        let mut sorted = ios.clone();
        sorted.sort_by_key(|io| io.issued);
        prop_assert_eq!(sorted, ios);
    }
}
