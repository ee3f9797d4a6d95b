//! Shapes in the house's style, on a page whose y grows downwards.

use svg::Document;
use svg::Node;
use svg::node::element::{Circle, Group, Line, Rectangle, Text, Title};

/// Letters that every system has.
const FONTS: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// Width of a letter, as a share of its height: on the safe side for these fonts.
const LETTER: f64 = 0.62;

/// The colour of text.
const INK: &str = "#222222";

/// Where a text stands, from its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
pub(super) struct Pen(Group);

impl Pen {
    /// An empty picture.
    pub(super) fn new() -> Pen {
        Pen(Group::new().set("font-family", FONTS).set("fill", INK))
    }

    /// The document, of a width and height that are known at last.
    pub(super) fn document(self, width: f64, height: f64) -> Document {
        let paper = Rectangle::new().set("width", width).set("height", height).set("fill", "white");
        Document::new()
            .set("viewBox", (0.0, 0.0, width, height))
            .set("width", width)
            .set("height", height)
            .add(paper)
            .add(self.0)
    }

    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.0.append(node);
    }

    fn text_node(at: (f64, f64), size: f64, anchor: Anchor, text: &str) -> Text {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        Text::new(text)
            .set("x", rounded(at.0))
            .set("y", rounded(at.1))
            .set("font-size", size)
            .set("text-anchor", anchor)
    }

    /// A line of text.
    pub(super) fn text(&mut self, at: (f64, f64), size: f64, anchor: Anchor, text: &str) {
        self.add(Pen::text_node(at, size, anchor, text));
    }

    /// A line of text that stands out.
    pub(super) fn heading(&mut self, at: (f64, f64), size: f64, text: &str) {
        self.add(Pen::text_node(at, size, Anchor::Start, text).set("font-weight", "bold"));
    }

    /// A line of text that runs upwards from its point.
    pub(super) fn upwards(&mut self, at: (f64, f64), size: f64, text: &str) {
        let turn = format!("rotate(-90 {} {})", rounded(at.0), rounded(at.1));
        self.add(Pen::text_node(at, size, Anchor::Start, text).set("transform", turn));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let line = Line::new()
            .set("x1", rounded(from.0))
            .set("y1", rounded(from.1))
            .set("x2", rounded(to.0))
            .set("y2", rounded(to.1))
            .set("stroke", colour)
            .set("stroke-width", width);
        self.add(line);
    }

    /// A filled box from its upper left corner; `said` is shown to who points at it.
    pub(super) fn bar(&mut self, at: (f64, f64), size: (f64, f64), colour: &str, said: &str) {
        let bar = Rectangle::new()
            .set("x", rounded(at.0))
            .set("y", rounded(at.1))
            .set("width", rounded(size.0))
            .set("height", rounded(size.1))
            .set("fill", colour)
            .add(Title::new(said));
        self.add(bar);
    }

    /// A dot, filled with the colour of its edge or with white.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, colour: &str, filled: bool, said: &str) {
        let dot = Circle::new()
            .set("cx", rounded(at.0))
            .set("cy", rounded(at.1))
            .set("r", radius)
            .set("stroke", colour)
            .set("stroke-width", 2)
            .set("fill", if filled { colour } else { "white" })
            .add(Title::new(said));
        self.add(dot);
    }
}

/// About how wide a text is.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER
}

/// Breaks a text between words into lines that fit a width.
pub(super) fn wrapped(text: &str, size: f64, width_of_line: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + size <= width_of_line => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A tenth of a pixel is enough, and keeps files small.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
