//! Rows in the order of the picture: phases from left to right, designs beside each other.

use crate::bench::Row;

/// Colours for designs in their order, which then begin again: Okabe and Ito's, without
/// the yellow, which white paper swallows, and with a violet and a grey.
const COLOURS: [&str; 9] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#222222", "#6e4b9e", "#8c8c8c"];

/// Rows by phase and design, each in the order of its first appearance. Of rows at given utilizations, each of these is a
/// phase, and each choice of keys a design; of a paper's, each setting is a design, alone or with each number of threads.
pub(super) struct Data<'a> {
    rows: &'a [Row],
    /// The phases.
    pub(super) phases: Vec<String>,
    /// The designs.
    pub(super) designs: Vec<String>,
}

fn phase(row: &Row) -> String {
    utilization(row).map_or(row.phase.clone(), |percent| format!("{percent} % used"))
}

fn utilization(row: &Row) -> Option<u64> {
    row.utilized.as_ref()?.utilization
}

fn design(row: &Row) -> String {
    if let Some(at) = &row.utilized {
        let setting = row.paper.as_ref().map_or(String::new(), |paper| format!(", {}", paper.setting));
        format!("{}, {}{setting}", row.design, at.distribution)
    } else if let Some(paper) = &row.paper {
        let threads = row.threads;
        format!("{}, {threads} thread{}", paper.setting, if threads == 1 { "" } else { "s" })
    } else {
        row.design.clone()
    }
}

impl<'a> Data<'a> {
    /// Sorts out `rows`.
    pub(super) fn new(rows: &'a [Row]) -> Data<'a> {
        let (mut phases, mut designs) = (Vec::new(), Vec::new());
        for row in rows {
            let (phase, design) = (phase(row), design(row));
            if !phases.contains(&phase) {
                phases.push(phase);
            }
            if !designs.contains(&design) {
                designs.push(design);
            }
        }
        Data { rows, phases, designs }
    }

    /// The rows with the positions of their phase and design.
    pub(super) fn placed(&self) -> impl Iterator<Item = (usize, usize, &'a Row)> {
        self.rows.iter().filter_map(|row| {
            let (phase, design) = (phase(row), design(row));
            let phase = self.phases.iter().position(|known| *known == phase)?;
            let design = self.designs.iter().position(|known| *known == design)?;
            Some((phase, design, row))
        })
    }

    /// Whether any row has a share of a limit.
    pub(super) fn has_limits(&self) -> bool {
        self.rows.iter().any(|row| row.roofline.is_some())
    }

    /// Whether throughput is a function of utilization, to be drawn as lines.
    pub(super) fn has_utilizations(&self) -> bool {
        self.rows.iter().any(|row| utilization(row).is_some())
    }

    /// Whether any row has latencies.
    pub(super) fn has_latencies(&self) -> bool {
        self.rows.iter().any(|row| row.p50_ns.is_some())
    }
}

/// The colour of the design at `position`.
pub(super) fn colour(position: usize) -> &'static str {
    COLOURS[position % COLOURS.len()]
}
