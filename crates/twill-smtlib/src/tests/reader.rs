//! S-expressions as SMT-LIB 2.6 has them (section 3.1), without strings: the text has none.

/// A symbol, number or keyword, or a list.
#[derive(Debug, PartialEq)]
pub(super) enum Item<'a> {
    Symbol(&'a str),
    List(Vec<Item<'a>>),
}

impl<'a> Item<'a> {
    pub(super) fn list(&self) -> Option<&[Item<'a>]> {
        match self {
            Item::List(items) => Some(items),
            Item::Symbol(_) => None,
        }
    }
}

/// Everything in the text, comments skipped; panics where it is no S-expression.
pub(super) fn read(text: &str) -> Vec<Item<'_>> {
    let mut open = vec![Vec::new()];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            ' ' | '\n' | '\t' | '\r' => 1,
            ';' => rest.find('\n').unwrap_or(rest.len()),
            '(' => {
                open.push(Vec::new());
                1
            }
            ')' => {
                let list = Item::List(open.pop().unwrap());
                open.last_mut().unwrap().push(list);
                1
            }
            '|' => {
                let end = rest[1..].find('|').unwrap();
                assert!(!rest[1..=end].contains('\\'), "{rest}");
                open.last_mut().unwrap().push(Item::Symbol(&rest[1..=end]));
                end + 2
            }
            _ => {
                let end = rest.find(|c: char| " \n\t\r;()|".contains(c)).unwrap_or(rest.len());
                let simple = |c: char| c.is_ascii_alphanumeric() || "~!@$%^&*_-+=<>.?/:".contains(c);
                assert!(rest[..end].chars().all(simple), "{}", &rest[..end]);
                open.last_mut().unwrap().push(Item::Symbol(&rest[..end]));
                end
            }
        };
        rest = &rest[length..];
    }
    assert_eq!(open.len(), 1, "a list is open at the end");
    open.remove(0)
}
