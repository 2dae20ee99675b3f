//! The content of a chart, in the form that the page's script reads: traces, axes, shapes and annotations.

use serde::Serialize;

/// A builder of optional fields: setters of `into` fields accept any convertible value, those of `exact` fields only
/// the type itself.
macro_rules! document {
    ($(#[$doc:meta])* $name:ident {
        into { $($into:ident: $into_type:ty = $into_key:literal,)* }
        exact { $($exact:ident: $exact_type:ty = $exact_key:literal,)* }
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Serialize)]
        pub struct $name {
            $(#[serde(rename = $into_key, skip_serializing_if = "Option::is_none")] $into: Option<$into_type>,)*
            $(#[serde(rename = $exact_key, skip_serializing_if = "Option::is_none")] $exact: Option<$exact_type>,)*
        }
        #[allow(missing_docs, reason = "each sets the field of its name")]
        impl $name {
            #[must_use] pub fn new() -> $name { $name::default() }
            $(#[must_use] pub fn $into(mut self, value: impl Into<$into_type>) -> $name {
                self.$into = Some(value.into());
                self
            })*
            $(#[must_use] pub fn $exact(mut self, value: $exact_type) -> $name {
                self.$exact = Some(value);
                self
            })*
        }
    };
}

/// Keywords of the document.
macro_rules! keywords {
    ($(#[$doc:meta])* $name:ident { $($word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Serialize)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum $name { $(#[serde(rename = $text)] $word,)* }
    };
}

/// A position on an axis: a number, the name of a category or a time of day, or a gap.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A number, or a gap.
    Number(Option<f64>),
    /// A name or a time of day.
    Text(String),
}

impl From<f64> for AxisValue {
    fn from(value: f64) -> AxisValue {
        AxisValue::Number(Some(value))
    }
}

impl From<Option<f64>> for AxisValue {
    fn from(value: Option<f64>) -> AxisValue {
        AxisValue::Number(value)
    }
}

impl From<usize> for AxisValue {
    fn from(value: usize) -> AxisValue {
        AxisValue::Number(Some(value as f64))
    }
}

impl From<String> for AxisValue {
    fn from(value: String) -> AxisValue {
        AxisValue::Text(value)
    }
}

keywords!(
    /// The pattern of a line.
    Dash { Solid = "solid", Dash = "dash", Dot = "dot", DashDot = "dashdot", }
);
keywords!(
    /// Interpolation between points: straight, or horizontal and then vertical.
    LineShape { Linear = "linear", Hv = "hv", }
);
keywords!(
    /// The parts of a trace that are drawn.
    Mode {
        Lines = "lines",
        Markers = "markers",
        LinesMarkers = "lines+markers",
        LinesMarkersText = "lines+markers+text",
        MarkersText = "markers+text",
    }
);
keywords!(
    /// The area of a trace that is filled: down to the trace before, or the trace's own outline.
    Fill { ToPrevious = "previous", ToSelf = "self", }
);
keywords!(
    /// The symbol at each point; by default a filled circle.
    Symbol { CircleOpen = "circle-open", DiamondOpen = "diamond-open", TickOpen = "tick", }
);
keywords!(
    /// The side of a point on which its text stands.
    Position {
        TopCenter = "top center",
        TopLeft = "top left",
        TopRight = "top right",
        BottomLeft = "bottom left",
        BottomRight = "bottom right",
    }
);
keywords!(
    /// The kind of an axis.
    Scale { Linear = "linear", Log = "log", Date = "date", Category = "category", }
);
keywords!(
    /// The points that are labelled under the pointer: one of each line, or the nearest.
    Hover { X = "x", Closest = "closest", }
);
keywords!(
    /// The form of a shape.
    ShapeKind { Line = "line", Rect = "rect", }
);
keywords!(
    /// The anchor of a text.
    Anchor { Left = "left", Right = "right", }
);

document!(
    /// A line's style.
    Line {
        into { color: String = "color", }
        exact { width: f64 = "width", dash: Dash = "dash", shape: LineShape = "shape", }
    }
);
document!(
    /// The style of points.
    Marker {
        into { color: String = "color", }
        exact { size: u32 = "size", symbol: Symbol = "symbol", }
    }
);
document!(
    /// Intervals around points: their extent upward and downward.
    Whiskers {
        into { color: String = "color", }
        exact { array: Vec<f64> = "up", array_minus: Vec<f64> = "down", thickness: f64 = "width", }
    }
);
document!(
    /// An axis. The range of a logarithmic one is in decimal logarithms.
    Axis {
        into { title: String = "title", }
        exact {
            scale: Scale = "scale",
            range: Vec<f64> = "range",
            tick_values: Vec<f64> = "ticks",
            tick_text: Vec<String> = "texts",
            from_zero: bool = "from_zero",
            whole: bool = "whole",
            grid: bool = "grid",
        }
    }
);
document!(
    /// A line or an area that is not a measurement. An axis without both positions is covered completely.
    Shape {
        into {
            x0: AxisValue = "x0", x1: AxisValue = "x1", y0: AxisValue = "y0", y1: AxisValue = "y1",
            fill_color: String = "fill",
        }
        exact { kind: ShapeKind = "kind", line: Line = "line", }
    }
);
document!(
    /// Text in a chart. Without `y` it is at the upper end, `row` lines further down.
    Annotation {
        into { x: AxisValue = "x", y: AxisValue = "y", text: String = "text", color: String = "color", }
        exact { row: usize = "row", anchor: Anchor = "anchor", size: u32 = "size", }
    }
);
document!(
    /// Axes, and everything that is drawn besides the measurements.
    Layout {
        into { }
        exact {
            x_axis: Axis = "x", y_axis: Axis = "y", legend: bool = "legend", hover: Hover = "hover",
            shapes: Vec<Shape> = "shapes", annotations: Vec<Annotation> = "annotations", height: usize = "height",
        }
    }
);
document!(
    /// The legend of a heat map's colours.
    ColorBar {
        into { title: String = "title", }
        exact { tick_values: Vec<f64> = "ticks", tick_text: Vec<String> = "texts", }
    }
);
document!(
    /// A line, points, or a heat map.
    Trace {
        into {
            name: String = "name", hover_template: String = "hover", fill_color: String = "fill_color",
            legend_group: String = "group",
        }
        exact {
            x: Vec<AxisValue> = "x", y: Vec<AxisValue> = "y", z: Vec<Vec<Option<f64>>> = "z",
            mode: Mode = "mode", line: Line = "line", marker: Marker = "marker", fill: Fill = "fill",
            error_x: Whiskers = "error_x", error_y: Whiskers = "error_y",
            text_array: Vec<String> = "text", text_matrix: Vec<Vec<String>> = "texts",
            labels: Vec<String> = "labels", label_side: Position = "side", label_size: u32 = "label_size",
            skip_hover: bool = "skip_hover", nameless: bool = "nameless", hide_in_legend: bool = "hide_in_legend",
            zmin: f64 = "zmin", zmax: f64 = "zmax", color_bar: ColorBar = "bar", gap: u32 = "gap",
        }
    }
);

impl Trace {
    /// A trace of points at `x` and `y`.
    pub fn points<X: Into<AxisValue>, Y: Into<AxisValue>>(x: Vec<X>, y: Vec<Y>) -> Trace {
        Trace::default()
            .x(x.into_iter().map(Into::into).collect())
            .y(y.into_iter().map(Into::into).collect())
    }

    /// A heat map: a row of `z` for each of `y`, starting at the bottom; positions with one more entry than `z` are
    /// edges.
    pub fn heat_map<X: Into<AxisValue>, Y: Into<AxisValue>>(
        x: Vec<X>,
        y: Vec<Y>,
        z: Vec<Vec<Option<f64>>>,
    ) -> Trace {
        Trace::points(x, y).z(z)
    }
}
