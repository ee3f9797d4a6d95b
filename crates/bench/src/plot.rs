//! Results as a picture: an SVG of throughput and latencies.
//!
//! A table answers "how much", a picture "which, and by how far". Each panel has a group for each phase and a
//! bar for each design in it; over utilizations, and by the second, throughput is a line for each design. The
//! colours are told apart by people who see few of them (Okabe and Ito's), every bar has its number, and the
//! text stays text, so that it can be searched and read out.

use super::report::Row;
use crate::distinct::distinct;
use charts_rs::{
    AxisScale, BarChart, Box as Margins, ChildChart, Color, FontConfig, LegendCategory, MultiChart, Series,
    SeriesBand, SeriesCategory, Symbol, TextConfig,
};

/// Okabe and Ito's colours, without the yellow, which white paper swallows, and with a violet and a grey.
const COLOURS: [&str; 9] =
    ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#222222", "#6E4B9E", "#8C8C8C"];

/// Text is measured in the first of these, which the library has.
const FONTS: &str = "Roboto, Helvetica, Arial, sans-serif";

const WIDTH: f32 = 1120.0;
const HEIGHT: f32 = 320.0;
const MARGIN: f32 = 28.0;
/// Height of a line of text, and characters that fit it.
const LINE: f32 = 18.0;
const COLUMNS: usize = 150;

/// Draws rows that have times as an SVG document, under a title that names the measurement; `notes` stand
/// below.
///
/// # Panics
/// If the library cannot draw such a chart, which is a fault of this module.
pub fn plot(title: &str, notes: &[String], rows: &[Row]) -> String {
    let grid = Grid::new(rows);
    let mut panels = vec![grid.panel("Throughput, million operations a second", 3, |row| row.mops)];
    panels.extend(grid.by_second());
    if rows.iter().any(|row| row.roofline.is_some()) {
        let share = |row: &Row| Some(row.roofline? * 100.0);
        panels.push(grid.panel("Share of the medium's limit, per cent", 1, share));
    }
    if rows.iter().any(|row| row.p50_ns.is_some()) {
        panels.push(grid.latencies());
    }
    let unsteady = rows.iter().filter(|row| row.utilized.as_ref().is_some_and(|at| !at.steady));
    let unsteady = unsteady.map(|row| format!("Not steady: {}, {}.", design(row), phase(row)));
    let notes: Vec<String> = notes.iter().cloned().chain(unsteady).collect();
    let mut texts = lines(&[title.to_owned()], 15.0, |text, at| TextConfig { top: Some(at), ..text });
    texts.extend(lines(&notes, 12.0, |text, at| TextConfig { bottom: Some(at), ..text }));
    let picture = MultiChart {
        charts: panels.into_iter().map(|panel| ChildChart::Bar(panel, None)).collect(),
        gap: 10.0,
        align_plots: true,
        font_family: FONTS.to_owned(),
        margin: Margins::from(MARGIN),
        background_color: Some(Color::white()),
        texts,
        ..MultiChart::new()
    };
    picture.svg().expect("the font is the library's own, and the panels are complete")
}

/// Texts as lines of a size, each at its distance from an edge of the picture.
fn lines(texts: &[String], size: f32, at_edge: fn(TextConfig, f32) -> TextConfig) -> Vec<TextConfig> {
    let wrapped: Vec<_> = texts.iter().flat_map(|text| textwrap::wrap(text, COLUMNS)).collect();
    let is_below = at_edge(TextConfig::default(), 0.0).bottom.is_some();
    let line = |(number, text): (usize, &std::borrow::Cow<'_, str>)| {
        let number = if is_below { wrapped.len() - 1 - number } else { number };
        let font = FontConfig { size, color: "#222222".into(), ..FontConfig::default() };
        let text = TextConfig {
            text: text.to_string(),
            left: Some(MARGIN),
            font,
            reserve: true,
            ..TextConfig::default()
        };
        at_edge(text, MARGIN / 2.0 + number as f32 * LINE)
    };
    wrapped.iter().enumerate().map(line).collect()
}

/// Rows by phase and design, each in the order of its first appearance.
struct Grid<'a> {
    phases: Vec<String>,
    designs: Vec<String>,
    rows: &'a [Row],
}

/// The phase of a row; of rows at given utilizations, each of these is one.
fn phase(row: &Row) -> String {
    utilization(row).map_or(row.phase.clone(), |percent| format!("{percent} % used"))
}

fn utilization(row: &Row) -> Option<u64> {
    row.utilized.as_ref()?.utilization
}

/// The design of a row; each choice of keys is one too, and of a paper's rows each setting, with each number
/// of threads where keys are not chosen.
fn design(row: &Row) -> String {
    if let Some(at) = &row.utilized {
        let setting = row.paper.as_ref().map_or(String::new(), |paper| format!(", {}", paper.setting));
        format!("{}, {}{setting}", row.design, at.distribution)
    } else if let Some(paper) = &row.paper {
        let Row { design, threads, .. } = row;
        format!("{design}, {}, {threads} thread{}", paper.setting, if *threads == 1 { "" } else { "s" })
    } else {
        row.keys.map_or(row.design.clone(), |keys| format!("{}, {keys}", row.design))
    }
}

impl<'a> Grid<'a> {
    fn new(rows: &'a [Row]) -> Grid<'a> {
        let (phases, designs) = (distinct(rows.iter().map(phase)), distinct(rows.iter().map(design)));
        Grid { phases, designs, rows }
    }

    /// A value of each phase that a design has.
    fn values(&self, of: &str, value: impl Fn(&Row) -> Option<f64>) -> Vec<Option<f32>> {
        let row = |at: &String| self.rows.iter().rfind(|row| design(row) == of && phase(row) == *at);
        self.phases.iter().map(|at| row(at).and_then(&value).map(|value| value as f32)).collect()
    }

    /// A chart of one value of all rows, written with so many decimals.
    fn panel(&self, heading: &str, decimals: usize, value: impl Fn(&Row) -> Option<f64>) -> BarChart {
        let over_utilizations = self.rows.iter().any(|row| utilization(row).is_some());
        let series = |design: &String| Series {
            label_show: true,
            category: over_utilizations.then_some(SeriesCategory::Line),
            ..Series::new_nullable(design.clone(), self.values(design, &value))
        };
        let mut chart = chart(heading, self.designs.iter().map(series).collect(), self.phases.clone());
        chart.series.label.formatter = format!("{{:.{decimals}}}");
        chart.series.label.hide_overlap = true;
        chart.tooltip.show = true;
        chart
    }

    /// Throughput by the second of the rows that have it.
    fn by_second(&self) -> Option<BarChart> {
        let of = |row: &Row| Some((design(row), row.steady.clone()?.times?.mops_by_second));
        let lines: Vec<(String, Vec<f64>)> = self.rows.iter().filter_map(of).collect();
        let seconds = lines.iter().map(|(_, by_second)| by_second.len()).max()?;
        let series = |(design, by_second): (String, Vec<f64>)| Series {
            category: Some(SeriesCategory::Line),
            symbol: Some(Symbol::None),
            ..Series::new(design, by_second.into_iter().map(|mops| mops as f32).collect())
        };
        let seconds = (1..=seconds).map(|second| second.to_string()).collect();
        let heading = "Throughput by the second, million operations";
        Some(chart(heading, lines.into_iter().map(series).collect(), seconds))
    }

    /// Medians as bars, and above them what few calls exceed.
    fn latencies(&self) -> BarChart {
        let of = |ns: fn(&Row) -> Option<u64>| move |row: &Row| ns(row).map(|ns| ns as f64);
        let mut chart = self.panel("Latency of a call, ns, logarithmic", 0, of(|row| row.p50_ns));
        let has_batches = self.phases.iter().any(|phase| phase == "get_many");
        let batches = if has_batches { "; a call of get_many reads 32 keys" } else { "" };
        chart.sub_title.text = format!("bar: median, line: from 99 % to 99.9 % of the calls{batches}");
        for series in &mut chart.series_list {
            let (lower, upper) = (of(|row| row.p99_ns), of(|row| row.p999_ns));
            series.error_bar = Some(SeriesBand {
                lower: self.values(&series.name, lower),
                upper: self.values(&series.name, upper),
                ..SeriesBand::default()
            });
            series.category = None;
        }
        for axis in &mut chart.y_axis_configs {
            axis.scale = AxisScale::Log(10.0);
        }
        chart
    }
}

/// A chart of series over these names.
fn chart(heading: &str, series: Vec<Series>, names: Vec<String>) -> BarChart {
    let mut chart = BarChart::new(series, names);
    (chart.width, chart.height) = (WIDTH, HEIGHT);
    chart.font_family = FONTS.to_owned();
    chart.title.text = heading.to_owned();
    chart.legend.category = LegendCategory::RoundRect;
    chart.series.colors = COLOURS.map(Color::from).to_vec();
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InPaper, Steadiness, Steady, Utilized};
    use roxmltree::{Document, Node};

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
        let is_text = |node: &Node<'_, '_>| node.is_text() && !node.text().unwrap().trim().is_empty();
        document.descendants().filter(is_text).map(|node| node.text().unwrap().trim().to_owned()).collect()
    }

    fn assert_has(texts: &[String], labels: &[&str]) {
        for label in labels {
            assert!(texts.iter().any(|text| text == label), "{label}: {texts:?}");
        }
    }

    #[test]
    fn everything_has_its_label() {
        let rows = [
            row("quipu", "insert", 4.25, Some(0.5)),
            row("a<b & \"c\"", "insert", 0.0123, None),
            row("quipu", "get", 10.0, None),
        ];
        let texts = texts(&plot("Two <designs> & more", &["A note on <both>.".to_owned()], &rows));
        let heads = ["Two <designs> & more", "A note on <both>.", "quipu", "a<b & \"c\"", "insert", "get"];
        assert_has(&texts, &heads);
        assert_has(&texts, &["4.25", "0.012", "10", "50", "90", "100k"]);
        let units = ["million operations a second", "per cent", "ns, logarithmic", "99.9 %"];
        assert!(units.iter().all(|unit| texts.iter().any(|text| text.contains(unit))), "{texts:?}");
    }

    #[test]
    fn everything_stays_on_the_page() {
        let designs: Vec<String> = (0..12).map(|number| format!("engine{number}:process")).collect();
        let rows: Vec<Row> = designs
            .iter()
            .flat_map(|design| {
                ["insert", "get", "get_many", "update", "blind_delete"].map(|phase| (design, phase))
            })
            .map(|(design, phase)| row(design, phase, 12.5, Some(0.25)))
            .collect();
        let picture = plot(&"a long title ".repeat(30), &["a long note ".repeat(50)], &rows);
        let document = Document::parse(&picture).unwrap();
        let root = document.root_element();
        let number = |node: Node<'_, '_>, name: &str| node.attribute(name)?.parse::<f64>().ok();
        let (wide, high) = (number(root, "width").unwrap(), number(root, "height").unwrap());
        for node in document.descendants() {
            for (name, most) in [("x", wide), ("x1", wide), ("x2", wide), ("y", high), ("y1", high)] {
                assert!(number(node, name).is_none_or(|at| (0.0..=most).contains(&at)), "{node:?}");
            }
            if let (Some(y), Some(height)) = (number(node, "y"), number(node, "height")) {
                assert!(height >= 0.0 && y + height <= high, "{node:?}");
            }
        }
        let bars = document.descendants().filter(|node| node.attribute("fill") == Some(COLOURS[8]));
        assert!(bars.count() >= 3 * 5, "a bar of the ninth design for each phase in each panel");
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
        let labels = ["quipu, uniform", "quipu, zipf 0.99", "50 % used", "90 % used", "2", "1.111"];
        assert_has(&texts(&picture), &labels);
        assert_has(&texts(&picture), &["Not steady: quipu, uniform, 90 % used."]);
        let document = Document::parse(&picture).unwrap();
        // Of the throughput, one for each choice of keys.
        let is_curve = |node: &Node<'_, '_>| {
            node.has_tag_name("path")
                && node.attribute("fill") == Some("none")
                && COLOURS.iter().any(|colour| node.attribute("stroke") == Some(*colour))
        };
        assert_eq!(document.descendants().filter(is_curve).count(), 2);
    }

    #[test]
    fn seconds_are_joined_by_a_line_of_each_design() {
        let of = |design: &str, mops_by_second: Vec<f64>| {
            let times = Some(Steadiness { mops_by_second, ..Steadiness::default() });
            Row { steady: Some(Steady { times, ..Steady::default() }), ..row(design, "steady", 1.0, None) }
        };
        let rows = [of("quipu", vec![1.0; 900]), of("xp", vec![0.5; 600])];
        let picture = plot("Steady", &[], &rows);
        let found = texts(&picture);
        assert_has(&found, &["quipu", "xp", "1", "Throughput by the second, million operations"]);
        let seconds = found.iter().filter(|text| text.parse().is_ok_and(|second: u64| second > 100));
        assert!(seconds.count() < 40, "most have no room: {found:?}");
        let other = texts(&plot("Ops", &[], &[row("quipu", "get", 1.0, None)]));
        assert!(!other.iter().any(|text| text.contains("second, million")), "{other:?}");
    }

    #[test]
    fn designs_of_one_setting_of_a_paper_are_told_apart() {
        let of = |design: &str, mops| Row {
            paper: Some(InPaper { setting: "random".into(), ..InPaper::default() }),
            threads: 2,
            ..row(design, "get", mops, None)
        };
        let texts = texts(&plot("Memtables", &[], &[of("one", 1.5), of("other", 2.5)]));
        assert_has(&texts, &["one, random, 2 threads", "other, random, 2 threads", "1.5", "2.5"]);
    }

    #[test]
    fn rows_without_latencies_have_one_panel() {
        let reopen = Row { p50_ns: None, p99_ns: None, p999_ns: None, ..row("quipu", "reopen", 1.0, None) };
        let texts = texts(&plot("Reopening", &[], &[reopen]));
        assert!(texts.iter().any(|text| text == "reopen"));
        assert!(!texts.iter().any(|text| text.starts_with("Latency")), "{texts:?}");
    }
}
