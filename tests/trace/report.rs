//! The page of a trace in a real Chromium.

use std::fs;

use serde_json::{Value, json};

use super::chromium::Chromium;
use super::support::Place;

/// Keeps what is drawn on each canvas since it was cleared last: texts, and boxes as x, y, width and height.
const KEPT: &str = "{
    const kept = (c) => (c.canvas.kept ??= { texts: [], boxes: [] });
    const canvas = CanvasRenderingContext2D.prototype;
    for (const [name, keep] of Object.entries({
        clearRect: (c) => (c.canvas.kept = undefined),
        fillRect: (c, x, y, w, h) => kept(c).boxes.push([x, y, w, h]),
        fillText: (c, text, x, y) => {
            const at = new DOMPoint(x, y).matrixTransform(c.getTransform());
            kept(c).texts.push({ text, x: at.x, y: at.y, align: c.textAlign });
        },
    })) {
        const drawn = canvas[name];
        canvas[name] = function (...words) {
            keep(this, ...words);
            return drawn.apply(this, words);
        };
    }
}";

/// The state that the canvas of the heat map keeps.
const MAP: &str = "[...document.querySelectorAll('figure')]
    .find((one) => one.querySelector('strong').textContent.startsWith('Places on'))
    .querySelector('canvas').kept";

/// An axis: values and their places on the canvas.
struct Scale {
    value: [f64; 2],
    place: [f64; 2],
}

impl Scale {
    /// Scale of the numbers beside a canvas that are aligned so, of which the places are under `key`.
    fn of(texts: &[Value], align: &str, key: &str) -> Scale {
        let tick = |text: &Value| {
            let value: f64 = text["text"].as_str()?.parse().ok()?;
            (text["align"] == align).then_some((value, text[key].as_f64()?))
        };
        let ticks: Vec<(f64, f64)> = texts.iter().filter_map(tick).collect();
        assert!(ticks.len() > 2, "{align}: {texts:#?}");
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        let scale = Scale {
            value: [first.0, last.0],
            place: [first.1, last.1],
        };
        for (value, place) in &ticks {
            assert!(
                (scale.value_at(*place) - value).abs() <= scale.pixels(1.5),
                "{ticks:?}"
            );
        }
        scale
    }

    fn value_at(&self, place: f64) -> f64 {
        let share = (place - self.place[0]) / (self.place[1] - self.place[0]);
        self.value[0] + share * (self.value[1] - self.value[0])
    }

    /// So many pixels in values.
    fn pixels(&self, count: f64) -> f64 {
        (self.value_at(count) - self.value_at(0.0)).abs()
    }

    /// True if a value lies between two places, but for rounding.
    fn has(&self, value: f64, from: f64, to: f64) -> bool {
        let ends = [self.value_at(from), self.value_at(to)];
        let slack = self.pixels(1.5);
        ends[0].min(ends[1]) - slack <= value && value <= ends[0].max(ends[1]) + slack
    }
}

/// An I/O at each GiB, ten seconds after the one before: each is a cell, and lies where the numbers beside the map say.
#[test]
fn the_numbers_beside_a_heat_map_are_the_places_and_times_of_its_cells() {
    const IOS: u64 = 8;
    let Some(mut chromium) = Chromium::start() else {
        return;
    };
    let place = Place::new();
    let line = |n: u64| format!("{}.0 ; {} ; 8 ; R ; 0.0 ; 0.0\n", n * 10, n << 21);
    let ios: String = (0..IOS).map(line).collect();
    let trace = format!("start ; sector ; length ; op\n{ios}");
    fs::write(place.path("gib.load"), trace).unwrap();
    place
        .run(&["trace", "show", "gib.load", "--report", "gib.html"])
        .ends_with(0);
    chromium.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": KEPT }),
    );
    for width in [1280, 400] {
        chromium.emulate(width, "light");
        chromium.open(&format!("file://{}", place.path("gib.html").display()));
        chromium.wait_for("document.documentElement.dataset.charts === 'drawn'");
        let map = chromium.evaluate(MAP);
        let texts = map["texts"].as_array().unwrap();
        for title in ["GiB", "s since the start"] {
            assert!(texts.iter().any(|text| text["text"] == title), "{texts:#?}");
        }
        let (gib, seconds) = (
            Scale::of(texts, "right", "y"),
            Scale::of(texts, "center", "x"),
        );
        let boxes = map["boxes"].as_array().unwrap();
        assert_eq!(boxes.len() as u64, IOS, "{boxes:?}");
        for n in 0..IOS {
            let holds = |cell: &&Value| {
                let [x, y, wide, high] = [0, 1, 2, 3].map(|at| cell[at].as_f64().unwrap());
                gib.has(n as f64, y, y + high) && seconds.has(10.0 * n as f64, x, x + wide)
            };
            let cells = boxes.iter().filter(holds).count();
            assert_eq!(cells, 1, "{n} GiB at {width}: {map:#}");
        }
    }
}
