//! The page: what was measured, who is who, the panels, and what else there is to know.

use super::data::{Data, colour};
use super::pen::{Anchor, Pen, width, wrapped};
use super::{latency, throughput};
use crate::bench::Row;

const WIDTH: f64 = 1180.0;
const MARGIN: f64 = 28.0;
/// Room for the numbers of the axes.
const AXIS: f64 = 62.0;
const TITLE: f64 = 16.0;
const HEADING: f64 = 14.0;
const LETTERS: f64 = 13.0;
const NOTES: f64 = 11.5;
const GRID: &str = "#dddddd";
const EDGE: &str = "#555555";

/// Where a panel is on the page.
pub(super) struct Panel {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Panel {
    fn new(top: f64, height: f64) -> Panel {
        Panel { left: MARGIN + AXIS, right: WIDTH - MARGIN, top, bottom: top + height }
    }

    fn group(&self, data: &Data<'_>) -> f64 {
        (self.right - self.left) / data.phases.len().max(1) as f64
    }

    /// The left edge and the breadth of what a design has in a phase.
    pub(super) fn slot(&self, data: &Data<'_>, phase: usize, design: usize) -> (f64, f64) {
        let group = self.group(data);
        let breadth = (group * 0.84 / data.designs.len().max(1) as f64).min(64.0);
        let empty = group - breadth * data.designs.len() as f64;
        (self.left + group * phase as f64 + empty / 2.0 + breadth * design as f64, breadth)
    }

    /// The middle of what a phase has.
    pub(super) fn middle(&self, data: &Data<'_>, phase: usize) -> f64 {
        self.left + self.group(data) * (phase as f64 + 0.5)
    }

    /// A line across the panel with a number.
    pub(super) fn mark(&self, pen: &mut Pen, y: f64, number: &str) {
        pen.line((self.left, y), (self.right, y), GRID, 1.0);
        pen.text((self.left - 8.0, y + 4.0), 12.0, Anchor::End, number);
    }

    /// The names of the phases, and lines between them.
    pub(super) fn phases(&self, pen: &mut Pen, data: &Data<'_>) {
        let group = self.group(data);
        for (position, phase) in data.phases.iter().enumerate() {
            let left = self.left + group * position as f64;
            if position > 0 && !data.has_utilizations() {
                pen.line((left, self.top), (left, self.bottom), GRID, 1.0);
            }
            pen.text((self.middle(data, position), self.bottom + 19.0), LETTERS, Anchor::Middle, phase);
        }
    }

    /// The line that the bars stand on.
    pub(super) fn axis(&self, pen: &mut Pen) {
        pen.line((self.left, self.bottom), (self.right, self.bottom), EDGE, 1.0);
    }
}

/// Draws rows that have times as an SVG document, under a title that says what was measured; `notes` stand below.
pub fn plot(title: &str, notes: &[String], rows: &[Row]) -> String {
    let data = Data::new(rows);
    let mut pen = Pen::new();
    let mut y = MARGIN;
    for line in wrapped(title, TITLE, WIDTH - 2.0 * MARGIN) {
        y += TITLE;
        pen.heading((MARGIN, y), TITLE, &line);
        y += 6.0;
    }
    y = legend(&mut pen, &data, y + 20.0);

    let share = if data.has_limits() { "; per cent: share of the medium's limit" } else { "" };
    pen.heading((MARGIN, y + 34.0), HEADING, &format!("Throughput, million operations a second{share}"));
    let panel = Panel::new(y + 52.0, 330.0);
    throughput::draw(&mut pen, &panel, &data);
    y = panel.bottom + 24.0;

    if data.has_latencies() {
        let heading = format!("Latency of a call, logarithmic ({})", latency::LEGEND);
        pen.heading((MARGIN, y + 34.0), HEADING, &heading);
        let panel = Panel::new(y + 66.0, 260.0);
        latency::draw(&mut pen, &panel, &data);
        y = panel.bottom + 24.0;
    }

    y += 20.0;
    for line in notes.iter().flat_map(|note| wrapped(note, NOTES, WIDTH - 2.0 * MARGIN)) {
        pen.text((MARGIN, y), NOTES, Anchor::Start, &line);
        y += NOTES + 5.0;
    }
    format!("{}\n", pen.document(WIDTH, y + MARGIN / 2.0))
}

/// Who is who, in as many lines as it takes; returns where the last one ends.
fn legend(pen: &mut Pen, data: &Data<'_>, top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top);
    for (position, design) in data.designs.iter().enumerate() {
        let whole = 20.0 + width(design, LETTERS) + 22.0;
        if x + whole > WIDTH - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 22.0);
        }
        pen.bar((x, y - 11.0), (13.0, 13.0), colour(position), design);
        pen.text((x + 20.0, y), LETTERS, Anchor::Start, design);
        x += whole;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Utilized;
    use roxmltree::Document;

    fn row(design: &str, phase: &str, mops: f64, roofline: Option<f64>) -> Row {
        Row {
            design: design.into(),
            phase: phase.into(),
            mops: Some(mops),
            p50_ns: Some(90),
            p99_ns: Some(1_100),
            p999_ns: Some(25_000),
            roofline,
            ..Row::default()
        }
    }

    fn texts(picture: &str) -> Vec<String> {
        let document = Document::parse(picture).expect("well-formed XML");
        let is_text =
            |node: &roxmltree::Node<'_, '_>| node.is_text() && !node.text().unwrap().trim().is_empty();
        document.descendants().filter(is_text).map(|node| node.text().unwrap().trim().to_owned()).collect()
    }

    #[test]
    fn everything_has_its_label() {
        let rows = [
            row("quipu", "insert", 4.25, Some(0.5)),
            row("a<b & \"c\"", "insert", 0.0123, None),
            row("quipu", "get", 10.0, None),
        ];
        let picture = plot("Two <designs> & more", &["A note on <both>.".to_owned()], &rows);
        let texts = texts(&picture);
        let expected = [
            "Two <designs> & more",
            "A note on <both>.",
            "quipu",
            "a<b & \"c\"",
            "insert",
            "get",
            "4.25",
            "50 %",
            "0.012",
            "10.0",
            "100 ns",
            "100 µs",
            "a<b & \"c\", insert: 0.012 Mops/s",
        ];
        for label in expected {
            assert!(texts.iter().any(|text| text == label), "{label}: {texts:?}");
        }
    }

    #[test]
    fn everything_stays_on_the_page() {
        let designs: Vec<String> = (0..12).map(|number| format!("engine{number}:process")).collect();
        let rows: Vec<Row> = designs
            .iter()
            .flat_map(|design| ["insert", "get", "get_many", "update", "delete"].map(|phase| (design, phase)))
            .map(|(design, phase)| row(design, phase, 12.5, Some(0.25)))
            .collect();
        let picture = plot(&"a long title ".repeat(30), &["a long note ".repeat(50)], &rows);
        let document = Document::parse(&picture).unwrap();
        let root = document.root_element();
        let number = |node: roxmltree::Node<'_, '_>, name: &str| {
            node.attribute(name).map(|text| text.parse::<f64>().unwrap())
        };
        let (wide, high) = (number(root, "width").unwrap(), number(root, "height").unwrap());
        for node in document.descendants() {
            for (name, most) in [
                ("x", wide),
                ("x1", wide),
                ("x2", wide),
                ("cx", wide),
                ("y", high),
                ("y1", high),
                ("cy", high),
            ] {
                assert!(number(node, name).is_none_or(|at| (0.0..=most).contains(&at)), "{node:?}");
            }
            if let (Some(y), Some(height)) = (number(node, "y"), number(node, "height")) {
                assert!(height >= 0.0 && y + height <= high, "{node:?}");
            }
        }
        assert_eq!(picture.matches("<circle").count(), 2 * rows.len());
    }

    #[test]
    fn utilizations_are_joined_by_lines_of_their_keys() {
        let at = |utilization: u64, distribution: &str, steady: bool| Row {
            utilized: Some(Utilized {
                utilization: Some(utilization),
                distribution: distribution.into(),
                steady,
                ..Utilized::default()
            }),
            ..row("quipu", "util", 100.0 / utilization as f64, None)
        };
        let rows = [
            at(50, "uniform", true),
            at(90, "uniform", false),
            at(50, "zipf 0.99", true),
            at(90, "zipf 0.99", true),
        ];
        let picture = plot("Nearly full", &[], &rows);
        let texts = texts(&picture);
        for label in ["quipu, uniform", "quipu, zipf 0.99", "50 % used", "90 % used", "2.00", "1.11"] {
            assert!(texts.iter().any(|text| text == label), "{label}: {texts:?}");
        }
        // Of the throughput, one for each choice of keys.
        let document = Document::parse(&picture).unwrap();
        let joins = document.descendants().filter(|node| {
            node.has_tag_name("line")
                && node.attribute("x1") != node.attribute("x2")
                && node.attribute("y1") != node.attribute("y2")
        });
        assert_eq!(joins.count(), 2);
    }

    #[test]
    fn rows_without_latencies_have_one_panel() {
        let reopen = Row { p50_ns: None, p99_ns: None, p999_ns: None, ..row("quipu", "reopen", 1.0, None) };
        let texts = texts(&plot("Reopening", &[], &[reopen]));
        assert!(texts.iter().any(|text| text == "reopen"));
        assert!(!texts.iter().any(|text| text.starts_with("Latency")), "{texts:?}");
    }
}
