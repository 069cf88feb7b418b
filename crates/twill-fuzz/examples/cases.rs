//! `cargo run --release -p twill-fuzz --example cases -- [SEEDS [OF_A_KIND]] > crates/twill-check/tests/certificates/cases.json`:
//! what the checker's tests of certificates read, since the checker does not know the engine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let number = |k: usize, otherwise: u64| numbers.get(k).copied().unwrap_or(otherwise);
    let cases = twill_fuzz::cases::cases(number(0, 2000), usize::try_from(number(1, 4))?);
    // A case a line, so that a difference can be read.
    let lines: Result<Vec<String>, _> = cases.iter().map(serde_json::to_string).collect();
    println!("[\n{}\n]", lines?.join(",\n"));
    Ok(())
}
