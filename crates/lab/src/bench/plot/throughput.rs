//! Throughput: bars in groups, one group for each phase, each bar with its number.

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
    panel.axis(pen);
}
