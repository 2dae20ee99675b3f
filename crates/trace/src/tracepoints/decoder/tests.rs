use super::*;
use crate::io::Io;
use crate::pair::{IoLayer, Pairing};

/// Kernel versions, with the offset and the length of the letters in their events.
const KERNELS: [(&str, usize, usize); 3] = [("5.10", 32, 8), ("6.1", 32, 9), ("6.18", 34, 10)];

/// A `format` file of an event with letters at this offset and of this length, followed by `rest`.
fn format(letters: (usize, usize), rest: &str) -> EventFormat {
    let (offset, size) = letters;
    let text = format!(
        "name: an_event\nID: 77\nformat:\n\
         \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
         \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
         \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
         \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
         {rest}\
         \tfield:char rwbs[{size}];\toffset:{offset};\tsize:{size};\tsigned:0;\n"
    );
    EventFormat::parse(&text).unwrap()
}

fn format_of(tracepoint: Tracepoint, letters: (usize, usize)) -> EventFormat {
    let rest = match tracepoint {
        Tracepoint::Complete | Tracepoint::BioComplete => {
            "\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;\n"
        }
        _ => "\tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n",
    };
    format(letters, rest)
}

/// The bytes of an event of device 8:16 by thread 7, the process `jbd2`.
fn event(format: &EventFormat, sector: u64, sectors: u32, rwbs: &str, error: i32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut put = |name: &str, value: &[u8]| {
        if let Some(field) = format.field(name) {
            bytes[field.offset..field.offset + value.len()].copy_from_slice(value);
        }
    };
    put("common_type", &77_u16.to_ne_bytes());
    put("common_pid", &7_u32.to_ne_bytes());
    put("dev", &(8_u32 << 20 | 16).to_ne_bytes());
    put("sector", &sector.to_ne_bytes());
    put("nr_sector", &sectors.to_ne_bytes());
    put("error", &error.to_ne_bytes());
    put("comm", b"jbd2");
    put("rwbs", rwbs.as_bytes());
    bytes
}

/// An event: tracepoint, sector, sectors, letters, error.
type EventFields = (Tracepoint, u64, u32, &'static str, i32);

/// Decodes events; their times are their indices.
fn decoded(events: &[EventFields], letters: (usize, usize)) -> Vec<Event> {
    let decode = |(time, fields): (usize, &EventFields)| {
        let (tracepoint, sector, sectors, rwbs, error) = *fields;
        let format = format_of(tracepoint, letters);
        let bytes = event(&format, sector, sectors, rwbs, error);
        let decoder = Decoder::of(tracepoint, &format).unwrap();
        let raw = RawEvent {
            time: time as u64,
            bytes: &bytes,
        };
        let decoded = decoder.decode(raw)?;
        assert_eq!((decoded.device, decoded.thread), (8 << 20 | 16, 7));
        Some(decoded.event)
    };
    events.iter().enumerate().filter_map(decode).collect()
}

/// The I/Os that events are paired into.
fn paired(events: &[EventFields], letters: (usize, usize), traced: IoLayer) -> Vec<Io> {
    let mut pairing = Pairing::default();
    pairing.set_traced(DeviceIndex(0), traced);
    for event in decoded(events, letters) {
        pairing.push(event);
    }
    pairing.end();
    assert_eq!(pairing.ambiguous, 0);
    std::iter::from_fn(|| pairing.pop()).collect()
}

/// Operation, FUA, first sector, sectors, queued, issued, completed.
type DecodedIo = (Op, bool, u64, u64, Option<u64>, u64, Option<u64>);

fn seen(ios: &[Io]) -> Vec<DecodedIo> {
    let one = |io: &Io| {
        (
            io.op,
            io.fua,
            io.offset.0 / SECTOR,
            io.length.0 / SECTOR,
            io.queued.map(|time| time.0),
            io.issued.0,
            io.completed.map(|time| time.0),
        )
    };
    ios.iter().map(one).collect()
}

#[test]
fn letters_of_fua_and_flushes_are_read_where_each_kernel_has_them() {
    for (rwbs, sectors, expected) in [
        ("WFS", 8, Some((Op::Write, true, false))),
        ("WFSM", 8, Some((Op::Write, true, false))),
        ("FWFS", 8, Some((Op::Write, true, true))),
        ("FWFSM", 8, Some((Op::Write, true, true))),
        ("FWS", 8, Some((Op::Write, false, true))),
        ("WS", 8, Some((Op::Write, false, false))),
        ("FF", 0, Some((Op::Flush, false, false))),
        ("FWS", 0, Some((Op::Flush, false, false))),
        ("NS", 2048, Some((Op::Discard, false, false))),
        ("WZS", 2048, Some((Op::Discard, false, false))),
    ] {
        for (kernel, offset, size) in KERNELS {
            let events = [(Tracepoint::Issue, 800, sectors, rwbs, 0)];
            let events = decoded(&events, (offset, size));
            let found = events.first().map(|e| (e.op, e.fua, e.flush_first));
            assert_eq!(found, expected, "{rwbs} of {kernel}");
        }
    }
}

/// Both complete without a sector; the first, such as one of SG_IO, has the letter of write-zeroes on older kernels.
#[test]
fn a_command_that_is_passed_through_is_none_and_a_flush_is_one() {
    let events = [
        (Tracepoint::Complete, u64::MAX, 1, "N", 0),
        (Tracepoint::Complete, u64::MAX, 0, "FF", 0),
    ];
    for (kernel, offset, size) in KERNELS {
        let found = decoded(&events, (offset, size));
        let found: Vec<Op> = found.iter().map(|event| event.op).collect();
        assert_eq!(found, [Op::Flush], "{kernel}");
    }
}

/// An fsync(2): its bio, the kernel's request for the flush, and the completion of the bio's own request. Before Linux
/// 4.10 the kernel's request has the letters of the bio.
#[test]
fn an_fsync_is_one_flush() {
    for own in ["FF", "FWS"] {
        let events = [
            (Tracepoint::Queue, 0, 0, "FWS", 0),
            (Tracepoint::Issue, 0, 0, own, 0),
            (Tracepoint::Complete, 0, 0, own, -5),
            (Tracepoint::Complete, 0, 0, "FWS", -5),
        ];
        for (kernel, offset, size) in KERNELS {
            let ios = paired(&events, (offset, size), IoLayer::Requests);
            let expected = [(Op::Flush, false, 0, 0, Some(0), 1, Some(2))];
            assert_eq!(seen(&ios), expected, "{own} of {kernel}");
            assert!(ios[0].failed);
        }
    }
}

/// A commit of a journal on a device that takes FUA: the kernel flushes, and then writes with FUA.
#[test]
fn a_commit_after_a_flush_on_a_device_with_fua_is_a_flush_and_a_write_with_fua() {
    let events = [
        (Tracepoint::Queue, 800, 8, "FWFS", 0),
        (Tracepoint::Issue, 0, 0, "FF", 0),
        (Tracepoint::Complete, 0, 0, "FF", 0),
        (Tracepoint::Issue, 800, 8, "WFS", 0),
        (Tracepoint::Complete, 800, 8, "WFS", 0),
    ];
    for (kernel, offset, size) in KERNELS {
        let ios = paired(&events, (offset, size), IoLayer::Requests);
        let expected = [
            (Op::Flush, false, 0, 0, None, 1, Some(2)),
            (Op::Write, true, 800, 8, Some(0), 3, Some(4)),
        ];
        assert_eq!(seen(&ios), expected, "{kernel}");
    }
}

/// A commit without FUA: a flush before the write, the write, and a flush after it, after which the write completes
/// again.
#[test]
fn a_commit_on_a_device_without_fua_is_a_write_between_two_flushes() {
    let events = [
        (Tracepoint::Queue, 800, 8, "FWFS", 0),
        (Tracepoint::Issue, 0, 0, "FF", 0),
        (Tracepoint::Complete, 0, 0, "FF", 0),
        (Tracepoint::Issue, 800, 8, "WS", 0),
        (Tracepoint::Complete, 800, 8, "WS", 0),
        (Tracepoint::Issue, 0, 0, "FF", 0),
        (Tracepoint::Complete, 0, 0, "FF", 0),
        (Tracepoint::Complete, 808, 0, "WS", 0),
    ];
    for (kernel, offset, size) in KERNELS {
        let ios = paired(&events, (offset, size), IoLayer::Requests);
        let expected = [
            (Op::Flush, false, 0, 0, None, 1, Some(2)),
            (Op::Write, false, 800, 8, Some(0), 3, Some(4)),
            (Op::Flush, false, 0, 0, None, 5, Some(6)),
        ];
        assert_eq!(seen(&ios), expected, "{kernel}");
    }
}

#[test]
fn bios_of_md_and_dm_tell_fua_and_the_flush_before_a_write() {
    let events = [
        (Tracepoint::Queue, 800, 8, "FWFS", 0),
        (Tracepoint::BioComplete, 800, 8, "FWFS", 0),
        (Tracepoint::Queue, 0, 0, "FWS", 0),
        (Tracepoint::BioComplete, 0, 0, "FWS", 0),
        (Tracepoint::Queue, 808, 8, "WFS", 0),
        (Tracepoint::BioComplete, 808, 8, "WFS", -5),
    ];
    for (kernel, offset, size) in KERNELS {
        let ios = paired(&events, (offset, size), IoLayer::Bios);
        let expected = [
            (Op::Flush, false, 0, 0, None, 0, None),
            (Op::Write, true, 800, 8, None, 0, Some(1)),
            (Op::Flush, false, 0, 0, None, 2, Some(3)),
            (Op::Write, true, 808, 8, None, 4, Some(5)),
        ];
        assert_eq!(seen(&ios), expected, "{kernel}");
        let failed: Vec<bool> = ios.iter().map(|io| io.failed).collect();
        assert_eq!(failed, [false, false, false, true]);
    }
}
