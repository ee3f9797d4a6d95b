//! A paper's evaluation with other engines in the same run.

use crate::output::{self, Failure, Stages};
use quipu_bench::{Config, Row};
use quipu_lab::bench::paper::{self, Paper, Preset, Run, Scale};
use quipu_rivals::engines::Choice;
use quipu_rivals::{Place, compare};

/// Figures of a paper, and the engines beside our designs.
pub struct Evaluation {
    /// The paper.
    pub paper: &'static Paper,
    /// Its figures.
    pub presets: Vec<&'static Preset>,
    /// The engines that stand beside the designs of each figure.
    pub beside: Vec<Choice>,
    /// The place of all, and the cache of those beside.
    pub place: Place,
    /// How large it is to be, and where.
    pub scale: Scale,
    /// Whether to print JSON in place of tables.
    pub json: bool,
}

impl Evaluation {
    /// Runs the figures one after another, and in each of their settings the engines one after another.
    ///
    /// # Errors
    /// [`Failure::Usage`] before anything runs, for a figure that only our designs can give.
    pub fn run(&self) -> Result<(), Failure> {
        self.scale.check()?;
        for preset in &self.presets {
            (preset.runs)(&self.scale).iter().try_for_each(|run| self.check(preset, run))?;
        }
        self.presets.iter().try_for_each(|preset| self.figure(preset))
    }

    fn figure(&self, preset: &'static Preset) -> Result<(), Failure> {
        let mut rows = Vec::new();
        preset.rounds(&self.scale).try_for_each(|run| self.setting(preset, &run, &mut rows))?;
        if self.json {
            return Ok(());
        }
        let (ratios, compared) = (preset.ratios(self.paper, &rows), preset.compare(self.paper, &rows));
        output::print(&format!("{}\n", paper::text(preset, &rows, &ratios, &compared)))
    }

    /// Runs all engines with one setting of a figure.
    fn setting(&self, preset: &Preset, run: &Run, rows: &mut Vec<Row>) -> Result<(), Failure> {
        let choices = self.choices(run);
        let config = Config { designs: Vec::new(), ..run.config.clone() };
        let mut refused = None;
        compare::run(&choices, &run.benchmark, &config, &self.place, &Stages, &mut |_, row| {
            let row = run.stamp(self.paper, preset, row);
            if self.json {
                refused = refused.take().or(output::json_line(&row).err());
            }
            rows.push(row);
        })?;
        refused.map_or(Ok(()), Err)
    }

    /// The designs of a run, and the engines beside them.
    fn choices(&self, run: &Run) -> Vec<Choice> {
        let ours = run.config.designs.iter().map(|design| Choice::ours(*design));
        ours.chain(self.beside.iter().copied().filter(|_| !run.is_of_ours)).collect()
    }

    /// Refuses a run that not every engine can do.
    fn check(&self, preset: &Preset, run: &Run) -> Result<(), Failure> {
        if run.benchmark.is_of_any_engine() {
            return output::can_all(&self.choices(run), &run.benchmark);
        }
        Err(Failure::Usage(format!(
            "figure {} of {} measures what only Quipu's designs do: run it with quipu-lab bench paper, or choose others \
             with --figure",
            preset.figure, self.paper.name
        )))
    }
}
