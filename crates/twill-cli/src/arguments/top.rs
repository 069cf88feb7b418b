//! `--top`: further schedules.

use clap::Args;
use twill_driver::TopOptions;

/// How many different schedules are wanted.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Several schedules")]
pub(crate) struct TopArguments {
    /// Find K different schedules of one loop.
    ///
    /// The best is first. They differ in groups, order, or stages, have the least interval as long as there are any, and at most one more stage.
    /// JSON is then an array, and twill compile writes the folders 1, 2, ... into its output, one for each kernel.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// With --top: percent by which an interval may exceed the least.
    #[arg(long, value_name = "PERCENT", requires = "top", default_value_t = 0.0, value_parser = percent, allow_negative_numbers = true)]
    pub(crate) within: f64,
}

impl TopArguments {
    /// What is wanted, if more than the best is.
    pub(crate) fn options(&self) -> Option<TopOptions> {
        self.top.map(|most| TopOptions { most: most.into(), within: self.within / 100.0 })
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1000.0).contains(&value) { Ok(value) } else { Err("must be from 0 to 1000".into()) }
}
