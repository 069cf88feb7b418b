//! Numbers as people read them: one form in all text. Files have plain digits.

/// A whole number with its thousands apart, from 10,000 on: `2048`, `65,536`.
pub fn grouped(number: impl Into<i128>) -> String {
    let number: i128 = number.into();
    let digits = separated(&number.unsigned_abs().to_string());
    if number < 0 { format!("-{digits}") } else { digits }
}

/// The same of any number, with as many digits after the point as are asked for, or as it has.
pub fn grouped_real(number: f64, digits: Option<usize>) -> String {
    let text = digits.map_or_else(|| number.to_string(), |digits| format!("{number:.digits$}"));
    let (sign, size) = text.strip_prefix('-').map_or(("", text.as_str()), |size| ("-", size));
    let (whole, fraction) = size.split_at(size.find('.').unwrap_or(size.len()));
    format!("{sign}{}{fraction}", separated(whole))
}

fn separated(digits: &str) -> String {
    if digits.len() <= 4 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return digits.to_owned();
    }
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart_from_ten_thousand_on() {
        let whole = [(0, "0"), (9999, "9999"), (10_000, "10,000"), (-1_000_000, "-1,000,000"), (65_536, "65,536")];
        for (number, text) in whole {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(grouped_real(110.1, None), "110.1");
        assert_eq!(grouped_real(-232_448.5, None), "-232,448.5");
        assert_eq!(grouped_real(232_448.0, Some(0)), "232,448");
        assert_eq!(grouped_real(9999.96, Some(1)), "10,000.0");
        assert_eq!(grouped_real(f64::INFINITY, None), "inf");
    }
}
