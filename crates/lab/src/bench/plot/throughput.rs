//! Throughput: bars in groups, one group for each phase, each bar with its number; over utilizations, lines.

use super::data::{Data, colour};
use super::pen::{Anchor, Pen, width};
use super::picture::Panel;
use super::scale::{self, digits};

/// Height of the numbers on bars.
const SMALL: f64 = 11.5;

/// Room above the tallest bar for its number, as a share of the axis.
const HEADROOM: f64 = 1.3;

/// Draws the panel.
pub(super) fn draw(pen: &mut Pen, panel: &Panel, data: &Data<'_>) {
    let most = data.placed().filter_map(|(_, _, row)| row.mops).fold(0.0, f64::max);
    let step = scale::step(most);
    let top = most.max(step) * HEADROOM;
    let y = |mops: f64| panel.bottom - mops / top * (panel.bottom - panel.top);
    let mut mark = 0.0;
    while mark <= top {
        panel.mark(pen, y(mark), &scale::mark(mark, step));
        mark += step;
    }
    panel.phases(pen, data);
    if data.has_utilizations() {
        curves(pen, panel, data, y);
    } else {
        bars(pen, panel, data, y);
    }
    panel.axis(pen);
}

/// A line for each design from phase to phase, with a dot for each row, filled where throughput was steady.
fn curves(pen: &mut Pen, panel: &Panel, data: &Data<'_>, y: impl Fn(f64) -> f64) {
    let mut last = vec![None; data.designs.len()];
    for (phase, design, row) in data.placed() {
        let (Some(mops), Some(at)) = (row.mops, &row.utilized) else { continue };
        let (colour, point) = (colour(design), (panel.middle(data, phase), y(mops)));
        if let Some(from) = last[design].replace(point) {
            pen.line(from, point, colour, 2.0);
        }
        let number = digits(mops);
        let phase = &data.phases[phase];
        let said = format!("{}, {}, {phase}: {number} Mops/s", row.design, at.distribution);
        pen.dot(point, 4.0, colour, at.steady, &said);
        let share = row.roofline.map_or(String::new(), |share| format!(" · {}", scale::percent(share)));
        pen.text((point.0 + 8.0, point.1 - 6.0), SMALL, Anchor::Start, &format!("{number}{share}"));
    }
}

fn bars(pen: &mut Pen, panel: &Panel, data: &Data<'_>, y: impl Fn(f64) -> f64) {
    for (phase, design, row) in data.placed() {
        let Some(mops) = row.mops else { continue };
        let (left, breadth) = panel.slot(data, phase, design);
        let share = row.roofline.map(scale::percent);
        let number = digits(mops);
        let said = format!("{}, {}: {number} Mops/s", row.design, row.phase);
        pen.bar((left, y(mops)), (breadth * 0.92, panel.bottom - y(mops)), colour(design), &said);
        let middle = left + breadth * 0.46;
        let fits = |text: &String| width(text, SMALL) <= breadth + 2.0;
        if fits(&number) && share.as_ref().is_none_or(fits) {
            let above = if let Some(share) = share {
                pen.text((middle, y(mops) - 5.0), SMALL, Anchor::Middle, &share);
                18.0
            } else {
                5.0
            };
            pen.text((middle, y(mops) - above), SMALL, Anchor::Middle, &number);
        } else {
            let label = share.map_or(number.clone(), |share| format!("{number} · {share}"));
            pen.upwards((middle + SMALL * 0.35, y(mops) - 5.0), SMALL, &label);
        }
    }
}
