//! Job files of known options with values of the right kind, and some wrong ones.

#![no_main]

mod check;
#[path = "../../../../fuzz/grammar.rs"]
mod grammar;

use fiojob::{OPTIONS, OptionRow, OptionSupport};
use grammar::Draw;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check::check(&file(&mut Draw::new(data))));

fn file(draw: &mut Draw<'_>) -> String {
    let mut text = String::new();
    if draw.one_in(2) {
        text.push_str("[global]\n");
        lines(draw, &mut text);
    }
    let mut sections = 0;
    while sections == 0 || (draw.goes_on() && sections < 8) {
        let name = draw.of(&["a", "job", "x y", "global", "1"]);
        text.push_str(&format!("[{name}]\n"));
        lines(draw, &mut text);
        sections += 1;
    }
    text
}

fn lines(draw: &mut Draw<'_>, text: &mut String) {
    for _ in 0..draw.byte() % 8 {
        let line = match draw.byte() {
            0..6 => format!("; {}", draw.word()),
            6..10 => draw.word().replace('\n', " "),
            10..14 => format!("include {}", draw.of(&["abc", "a-long-name.fio", ""])),
            _ => option(draw),
        };
        text.push_str(&line);
        text.push_str(draw.of(&["\n", "\n", "\n", "\r\n", " # behind\n", "\n\n"]));
    }
}

fn option(draw: &mut Draw<'_>) -> String {
    let done: Vec<&OptionRow> = OPTIONS
        .iter()
        .filter(|row| row.kind == OptionSupport::Done)
        .collect();
    let row = match draw.one_in(16) {
        true => draw.of(&OPTIONS.iter().collect::<Vec<_>>()),
        false => draw.of(&done),
    };
    let names: Vec<&str> = [row.name]
        .into_iter()
        .chain(row.aliases.iter().copied())
        .collect();
    let name = draw.of(&names);
    if draw.one_in(24) {
        return name.to_owned();
    }
    let value = match draw.byte() {
        0..8 => draw.any(),
        8..16 => variable(draw),
        16..32 => calculation(draw, 0),
        _ => value(draw, row),
    };
    let space = if draw.one_in(8) { " " } else { "" };
    format!("{name}{space}={space}{value}")
}

fn variable(draw: &mut Draw<'_>) -> String {
    draw.of(&[
        "${NAME}",
        "${}",
        "4${k}",
        "${",
        "$ncpus",
        "${A}${B}",
        "$pagesize",
    ])
    .to_owned()
}

fn calculation(draw: &mut Draw<'_>, depth: u32) -> String {
    if depth > 70 || draw.one_in(3) {
        return draw
            .of(&[
                "$pagesize",
                "$mb_memory",
                "$ncpus",
                "4k",
                "1m",
                "7",
                "0",
                "",
            ])
            .to_owned();
    }
    let (left, right) = (calculation(draw, depth + 1), calculation(draw, depth + 20));
    let operator = draw.of(&["+", "-", "*", "/", "%", "^", " + "]);
    match draw.one_in(2) {
        true => format!("({left}{operator}{right})"),
        false => format!("{left}{operator}{right}"),
    }
}

/// Up to three values with a sign between, for reads, writes and trims.
fn several(draw: &mut Draw<'_>, between: &str, one: fn(&mut Draw<'_>) -> String) -> String {
    let count = draw.of(&[1, 1, 1, 2, 3]);
    (0..count)
        .map(|_| one(draw))
        .collect::<Vec<_>>()
        .join(between)
}

fn split(draw: &mut Draw<'_>) -> String {
    let shares = draw.of(&[
        &[100][..],
        &[50, 50],
        &[10, 30, 60],
        &[50, 0],
        &[60, 60],
        &[0, 0, 0],
    ]);
    let parts = shares.iter().map(|share| match share {
        0 => draw.size() + "/",
        share => format!("{}/{share}", draw.size()),
    });
    parts.collect::<Vec<_>>().join(":")
}

fn value(draw: &mut Draw<'_>, row: &OptionRow) -> String {
    if let OptionSupport::Stops([only, ..], _) = row.kind {
        return (*only).to_owned();
    }
    let word = match row.name {
        "rw" => draw.of(&[
            "read",
            "write",
            "rw",
            "readwrite",
            "randread",
            "randwrite",
            "randrw",
            "trim",
            "randtrimwrite",
            "randrw:8",
        ]),
        "ioengine" => draw.of(&[
            "io_uring", "libaio", "psync", "sync", "pvsync", "pvsync2", "mmap",
        ]),
        "fadvise_hint" => draw.of(&["0", "none", "1", "random"]),
        "zonemode" => draw.of(&["none", "strided", "zbd"]),
        "continue_on_error" => draw.of(&["none", "read", "io", "all", "1"]),
        "ignore_error" => draw.of(&["EIO", ",ENOSPC:122", "EIO,5,84", "EWARP"]),
        "rate_process" => draw.of(&["linear", "poisson"]),
        "kb_base" => draw.of(&["1000", "1024"]),
        "filename" => draw.of(&["a", "a:b", "a\\:b", "/dev/x", "-", "a::b"]),
        "directory" => draw.of(&["/d", "d:e", "."]),
        "random_distribution" => draw.of(&[
            "random",
            "zipf:1.2",
            "zipf",
            "pareto:0.3",
            "zipf:1",
            "normal:1",
            "pareto:",
        ]),
        "time_based" | "stonewall" | "new_group" | "group_reporting" | "norandommap" | "direct"
        | "buffered" | "invalidate" | "end_fsync" | "fsync_on_close" | "randrepeat"
        | "allrandrepeat" => draw.of(&["0", "1", "1", "", "2"]),
        "bs" => return several(draw, ",", |draw| draw.size()),
        "bssplit" => return several(draw, ",", split),
        "rate_iops" => return several(draw, ",", |draw| draw.whole()),
        "size" | "io_size" | "offset" | "offset_increment" => return draw.size(),
        "runtime" | "ramp_time" => return draw.time(),
        "name" | "description" => return draw.word().replace('\n', " "),
        _ => return draw.whole(),
    };
    word.to_owned()
}
