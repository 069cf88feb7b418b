//! The day, the machine, and the time that children took of it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Today, UTC.
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    // Days from civil dates, backwards: H. Hinnant, "chrono-compatible low-level date algorithms".
    let day = (seconds / 86_400) as i64 + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Cores, and what they are where the system says so.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    format!("{cores} core{} of {model}", if cores == 1 { "" } else { "s" })
}

/// CPU seconds of all children that have ended, where the system counts them (proc(5): cutime and cstime, in hundredths).
pub fn seconds_of_children() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}
