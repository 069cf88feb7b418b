//! A page as one file. Everything is in it, and its Content-Security-Policy lets it ask for nothing else: script and style are
//! allowed by their hashes, so that nothing in the data could run even if it were taken for markup.

use super::{Page, packed};
use crate::markup::escape;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The code that shows the data.
const SCRIPT: &str = include_str!("../../page/dist/report.js");

/// Its style.
const STYLE: &str = include_str!("../../page/dist/report.css");

/// The page as an HTML file.
pub fn html(page: &Page) -> String {
    let (script, style) = (lines(SCRIPT), lines(STYLE));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data: blob:; base-uri 'none'; form-action 'none'",
        policy_hash(&script),
        policy_hash(&style)
    );
    let title = match &page.machine {
        Some(machine) => format!("{} on {machine} - Twill", page.name),
        None => format!("{} - Twill", page.name),
    };
    let (title, name) = (escape(&title), escape(&page.name));
    let (headline, text) = (escape(&page.headline), escape(&page.text));
    let data = packed::packed(&page.to_json());
    let version = page.twill;
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="Twill {version}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="app"></div>
<noscript>
<h1>{name}</h1>
<p>{headline}</p>
<p>Pictures need JavaScript; this is the report as text.</p>
<pre>
{text}</pre>
</noscript>
<script type="application/zlib" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"#
    )
}

/// Returns whether a text is a file that [`html`] made.
pub fn is_page(text: &str) -> bool {
    text.starts_with("<!doctype html>")
        && text.contains("<meta name=\"generator\" content=\"Twill ")
        && text.contains(" id=\"data\">")
}

/// A text as HTML parsers hand it on, for its hash.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// A script or a style sheet as a Content-Security-Policy names it: `sha256-…`. `text` has Unix line ends.
pub fn policy_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
