//! What `twill fit` says, at the buffer or value to blame, or at the loop.

use super::{Annotation, Level, Place, Rule, place_of};
use twill_driver::performance::PerformanceError;
use twill_driver::{Error, Fit, Places, Verdict};
use twill_graph::{Source, grouped, grouped_real};

const DOES_NOT_FIT: Rule =
    Rule { id: "does-not-fit", meaning: "No schedule of the kernel fits the machine.", level: Level::Error };
const MAY_NOT_FIT: Rule = Rule {
    id: "may-not-fit",
    meaning: "The schedule that takes least does not fit, and it is not proved that none does.",
    level: Level::Warning,
};
const FITS: Rule = Rule {
    id: "fits",
    meaning: "The kernel fits the machine; the least interval that is possible.",
    level: Level::Note,
};
pub(super) const NOT_READ: Rule =
    Rule { id: "not-lowered", meaning: "The kernel cannot be read, lowered or generated.", level: Level::Error };

const WORSE: Rule = Rule { id: "worse", meaning: "The kernel got worse than its baseline.", level: Level::Error };

/// Those of `twill check-perf`.
pub(crate) const PERFORMANCE_RULES: [Rule; 2] = [WORSE, NOT_READ];
/// Those of `twill fit`.
pub(crate) const RULES: [Rule; 4] = [DOES_NOT_FIT, MAY_NOT_FIT, FITS, NOT_READ];

/// Annotations of a kernel.
pub(crate) fn fitted(fit: &Fit, places: Option<&Places>) -> Vec<Annotation> {
    let loop_place = |index: usize| place_of(places.and_then(|all| all.loops.get(index)), &fit.input);
    let rule = match fit.verdict {
        Verdict::Fits => FITS,
        Verdict::DoesNotFit => DOES_NOT_FIT,
        Verdict::Unknown => MAY_NOT_FIT,
    };
    if let Some(misfit) = fit.misfit.as_ref().filter(|_| rule != FITS) {
        let message = format!("{} for {}: {}\n{}", fit.kernel, fit.machine, misfit.reason, misfit.way_out);
        let place = culprit(fit).map_or_else(|| loop_place(0), Place::of);
        let mut one = Annotation::new(rule, place, message).of(&fit.kernel);
        let holders = fit.needs.iter().filter(|need| need.required > need.available).flat_map(|need| {
            let unit = need.resource.unit();
            let stands = need.largest.iter().filter_map(|holder| Some((holder, holder.source.as_ref()?)));
            stands.map(move |(holder, source)| {
                (Place::of(source), format!("{} takes {} {unit}", holder.name, grouped(holder.amount)))
            })
        });
        one.related = holders.collect();
        return vec![one];
    }
    let each = fit.loops.iter().enumerate().map(|(index, one)| {
        let bound = grouped(one.bound.interval.0);
        let rate = one.teraflops.map(|rate| format!(", at most {} TFLOP/s", grouped_real(rate, Some(1))));
        let message =
            format!("{} on {}: {}; I >= {bound}{}", one.name, fit.machine, fit.verdict, rate.unwrap_or_default());
        Annotation::new(rule, loop_place(index), message).of(&fit.kernel)
    });
    each.collect()
}

/// Where what takes most stands.
fn culprit(fit: &Fit) -> Option<&Source> {
    let name = fit.misfit.as_ref()?.culprit.as_ref()?;
    fit.needs.iter().flat_map(|need| &need.largest).find(|holder| holder.name == *name)?.source.as_ref()
}

/// The annotation of a kernel that got worse.
pub(crate) fn worsened(input: &str, kernel: &str, changes: &[String], places: Option<&Places>) -> Annotation {
    let place = place_of(places.map(|all| all.loops.first().unwrap_or(&all.kernel)), input);
    Annotation::new(WORSE, place, format!("{kernel} got worse:\n{}", changes.join("\n"))).of(kernel)
}

/// The annotation of a kernel that cannot be looked at.
pub(crate) fn refused(input: &str, error: &crate::error::Error) -> Annotation {
    let of_kernel = match error {
        crate::error::Error::Driver(error) => Some(error),
        crate::error::Error::Performance(error) => match &**error {
            PerformanceError::Kernel(error) => Some(error),
            _ => None,
        },
        _ => None,
    };
    let place = of_kernel.and_then(Error::line);
    Annotation::new(NOT_READ, place_of(place.as_ref(), input), error.to_string())
}
