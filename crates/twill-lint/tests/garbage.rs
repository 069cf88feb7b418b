//! Texts that are no machine code, or damaged: an error or a report, and never a panic.

use twill_lint::lint;

const GEMM: &str = include_str!("listings/gemm_tma.sass");

/// Numbers that look random (Marsaglia, Xorshift RNGs, 2003).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

#[test]
fn damaged_listings_are_reported_on_or_refused() {
    let lines: Vec<&str> = GEMM.lines().collect();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut read = 0;
    for _ in 0..60 {
        let mut damaged: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        for _ in 0..40 {
            let at = next(&mut state) % damaged.len();
            let other = next(&mut state) % lines.len();
            match next(&mut state) % 5 {
                0 => damaged[at].clear(),
                1 => damaged[at] = lines[other].to_owned(),
                2 => damaged[at] = damaged[at].replace(['R', ','], "`("),
                3 => damaged[at].truncate(next(&mut state) % 60),
                _ => damaged[at] = damaged[at].replace("0x", "0xffffffffffffffffffff"),
            }
        }
        read += usize::from(lint(&damaged.join("\n")).is_ok());
    }
    assert!(read > 50, "{read}");
}

#[test]
fn other_texts_are_refused() {
    for text in ["", "hello", "\u{7f}ELF\0\0", "/*", "/*0000*/", ".section .text.", "\t.section\t.text.k\n/*zz*/ NOP ;"]
    {
        assert!(lint(text).is_err(), "{text:?}");
    }
}
