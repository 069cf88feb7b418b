//! The data of a page as they stand in its file: JSON in which every text stands once, compressed (zlib, RFC 1950), in base64.
//! Graphs of thousands of operations repeat long names, too far from each other for the compression to see it; and what is packed
//! has no letter that could end the element it stands in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use std::collections::HashMap;
use std::fmt::Write as _;

/// How hard data are compressed, of 10: more takes long and saves little.
const EFFORT: u8 = 6;

/// JSON without spaces, packed.
pub(super) fn packed(json: &str) -> String {
    STANDARD.encode(compress_to_vec_zlib(each_once(json).as_bytes(), EFFORT))
}

/// `{"strings":[…],"page":…}`: in the place of a text, in quotes, is its number in the list. Names of fields stay.
fn each_once(json: &str) -> String {
    let (mut numbers, mut strings, mut page) = (HashMap::new(), Vec::new(), String::new());
    let mut rest = json;
    while let Some(start) = rest.find('"') {
        let (before, literal) = rest.split_at(start);
        let (literal, after) = literal.split_at(length(literal));
        page.push_str(before);
        if after.starts_with(':') {
            page.push_str(literal);
        } else {
            let number = *numbers.entry(literal).or_insert_with(|| {
                strings.push(literal);
                strings.len() - 1
            });
            // Writing to a string cannot fail.
            let _ = write!(page, "\"{number}\"");
        }
        rest = after;
    }
    page.push_str(rest);
    format!("{{\"strings\":[{}],\"page\":{page}}}", strings.join(","))
}

/// Bytes of the string that a text begins with, quotes included.
fn length(text: &str) -> usize {
    let mut is_escaped = true;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = !std::mem::replace(&mut is_escaped, false) && byte == b'\\';
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::each_once;

    #[test]
    fn every_text_stands_once_and_fields_keep_their_names() {
        let json = r#"{"a":["x","y\\","x","\"","",null,1.5],"x":"a\":"}"#;
        let found = each_once(json);
        assert_eq!(
            found,
            r#"{"strings":["x","y\\","\"","","a\":"],"page":{"a":["0","1","0","2","3",null,1.5],"x":"4"}}"#
        );
        assert_eq!(each_once("{}"), r#"{"strings":[],"page":{}}"#);
    }
}
