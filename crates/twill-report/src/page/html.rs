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

/// One HTML file. Its policy allows its script and style sheet by their hashes, pictures that it makes, and nothing else.
pub struct Document<'a> {
    /// Its title, escaped.
    pub title: &'a str,
    /// The version of Twill that made it.
    pub version: &'a str,
    /// Its style sheet.
    pub style: &'a str,
    /// Markup of the body before the script.
    pub body: &'a str,
    /// Its script, which the body ends with. It may not have the end of an element in it.
    pub script: &'a str,
    /// Whether the script may start workers of its own text, and WebAssembly in them.
    pub has_engine: bool,
}

impl Document<'_> {
    /// The file.
    pub fn html(&self) -> String {
        let Self { title, version, body, has_engine, .. } = self;
        let (script, style) = (lines(self.script), lines(self.style));
        let (wasm, workers) = if *has_engine { (" 'wasm-unsafe-eval'", " worker-src blob:;") } else { ("", "") };
        let policy = format!(
            "default-src 'none'; script-src '{}'{wasm}; style-src '{}';{workers} img-src data: blob:; base-uri 'none'; \
             form-action 'none'",
            policy_hash(&script),
            policy_hash(&style)
        );
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
{body}
<script>{script}</script>
</body>
</html>
"#
        )
    }
}

/// The page as an HTML file.
pub fn html(page: &Page) -> String {
    let title = match &page.machine {
        Some(machine) => format!("{} on {machine} - Twill", page.name),
        None => format!("{} - Twill", page.name),
    };
    let (title, name) = (escape(&title), escape(&page.name));
    let (headline, text) = (escape(&page.headline), escape(&page.text));
    let data = packed::packed(&page.to_json());
    let body = format!(
        r#"<div id="app"></div>
<noscript>
<h1>{name}</h1>
<p>{headline}</p>
<p>Pictures need JavaScript; this is the report as text.</p>
<pre>
{text}</pre>
</noscript>
<script type="application/zlib" id="data">{data}</script>"#
    );
    let (title, version) = (title.as_ref(), page.twill);
    Document { title, version, style: STYLE, body: &body, script: SCRIPT, has_engine: false }.html()
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
fn policy_hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
