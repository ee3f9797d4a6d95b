//! Latencies: for each phase and design a line from the median to the time that one call in a thousand exceeds.

use super::data::{Data, colour};
use super::pen::{Anchor, Pen};
use super::picture::Panel;
use super::scale::duration;

/// What the marks mean, for the heading.
pub(super) const LEGEND: &str = "dot: median, dash: 99 %, ring: 99.9 % of calls";

/// Draws the panel.
pub(super) fn draw(pen: &mut Pen, panel: &Panel, data: &Data<'_>) {
    let times = || data.placed().flat_map(|(_, _, row)| [row.p50_ns, row.p999_ns]).flatten();
    let log = |ns: u64| (ns.max(1) as f64).log10();
    let lowest = times().min().map_or(0.0, log).floor() as i32;
    let highest = (times().max().map_or(1.0, log).ceil() as i32).max(lowest + 1);
    let y = |log: f64| {
        let share = (log - f64::from(lowest)) / f64::from(highest - lowest);
        panel.bottom - share * (panel.bottom - panel.top)
    };
    for decade in lowest..=highest {
        panel.mark(pen, y(f64::from(decade)), &duration(decade));
    }
    panel.phases(pen, data);
    for (phase, design, row) in data.placed() {
        let (Some(p50), Some(p99), Some(p999)) = (row.p50_ns, row.p99_ns, row.p999_ns) else { continue };
        let (left, breadth) = panel.slot(data, phase, design);
        let (x, colour) = (left + breadth * 0.46, colour(design));
        let said = format!("{}, {}: {p50} ns, {p99} ns, {p999} ns", row.design, row.phase);
        pen.line((x, y(log(p50))), (x, y(log(p999))), colour, 2.0);
        pen.line((x - 6.0, y(log(p99))), (x + 6.0, y(log(p99))), colour, 3.0);
        pen.dot((x, y(log(p999))), 3.5, colour, false, &said);
        pen.dot((x, y(log(p50))), 4.0, colour, true, &said);
    }
    if data.phases.iter().any(|phase| phase == "get_many") {
        let text = "A call of get_many reads 32 keys.";
        pen.text((panel.right, panel.top - 16.0), 12.0, Anchor::End, text);
    }
    panel.axis(pen);
}
