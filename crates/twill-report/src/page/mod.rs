//! A report as a page: one HTML file with everything in it, to be looked at without a network (docs/report.md).
//!
//! | file | what |
//! |---|---|
//! | `data` | the data of the page, from replayed schedules |
//! | `storage` | registers and memories over the cycles of the steady state |
//! | `packed` | the data as they stand in the file |
//! | `html` | the file |
//! | `link` | a playground's address with an input in it |
//! | `../../page/` | what shows the data: script and style |

mod data;
mod html;
mod link;
mod packed;
mod storage;
#[cfg(test)]
mod tests;

pub use data::{Assembly, Chip, Code, CodeLine, Excluded, Finding, Language, LoopReport, Page, WhatIfAnswer};
pub use html::{Document, html, is_page};
pub use link::playground_link;
pub use storage::{Buffer, GroupRegisters, Memory, MemoryKind, Unit};
