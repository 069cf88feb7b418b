//! A listing: what nvdisasm prints of a cubin, or `cuobjdump -sass` of a program.

use super::instruction::{Instruction, SourceLine};
use std::collections::HashMap;
use std::rc::Rc;
use thiserror::Error;

/// The architecture whose rules are known.
const HOPPER: u32 = 90;

/// Code of one section: a kernel or a device function, with the subroutines that the assembler puts behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, as the cubin has it.
    pub name: String,
    /// True if the host can launch it, as far as the listing says.
    pub is_kernel: bool,
    /// Its first instruction.
    pub start: usize,
    /// The place after its last instruction.
    pub end: usize,
}

/// Functions and their instructions, all in one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Instructions of all functions.
    pub code: Vec<Instruction>,
    /// Functions in the order of the text.
    pub functions: Vec<Function>,
    /// Where labels stand.
    pub labels: HashMap<String, usize>,
    /// Lines in a function that look like instructions and do not read.
    pub unread: usize,
}

/// Why a text is no listing that can be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListingError {
    /// There is no instruction in it.
    #[error("it holds no machine code as `nvdisasm -c -g` or `cuobjdump -sass` prints it")]
    NoCode,
    /// It is for another GPU.
    #[error("it is machine code of sm_{0}, and the rules are those of sm_90 (Hopper)")]
    OtherArchitecture(u32),
}

impl Listing {
    /// Reads a listing.
    ///
    /// # Errors
    /// [`ListingError`] if it has no instructions, or only those of another architecture.
    pub fn read(text: &str) -> Result<Listing, ListingError> {
        let mut reader = Reader::default();
        for line in text.lines() {
            reader.listing_line = reader.listing_line.saturating_add(1);
            reader.line(line);
        }
        reader.end_function();
        let listing = reader.listing;
        match (listing.code.is_empty(), reader.other) {
            (false, _) => Ok(listing),
            (true, Some(other)) => Err(ListingError::OtherArchitecture(other)),
            (true, None) => Err(ListingError::NoCode),
        }
    }

    /// The function of an instruction.
    pub fn function_of(&self, at: usize) -> Option<&Function> {
        self.functions.iter().find(|function| (function.start..function.end).contains(&at))
    }

    /// The instruction at an offset of the function that this instruction is of, as `cuobjdump` names targets.
    pub fn at_offset(&self, near: usize, offset: u64) -> Option<usize> {
        let function = self.function_of(near)?;
        let code = &self.code[function.start..function.end];
        code.binary_search_by_key(&offset, |instruction| instruction.offset).ok().map(|at| function.start + at)
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    listing: Listing,
    /// The line that is read, from 1 on.
    listing_line: u32,
    /// The function whose code is read, and where it starts.
    open: Option<(String, usize)>,
    kernels: Vec<String>,
    line: Option<SourceLine>,
    /// True if the last line said a place that is inlined into the next one's.
    is_inlined: bool,
    files: HashMap<String, Rc<str>>,
    /// True while code is of another architecture.
    is_foreign: bool,
    other: Option<u32>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        if let Some(section) = text.strip_prefix(".section").filter(|rest| rest.starts_with(char::is_whitespace)) {
            self.end_function();
            let name = section.trim().split([',', ' ', '\t']).next().unwrap_or_default();
            if let Some(name) = name.trim_matches('"').strip_prefix(".text.") {
                self.begin_function(name);
            }
        } else if let Some(name) = text.strip_prefix("Function :") {
            self.end_function();
            self.kernels.push(name.trim().to_owned());
            self.begin_function(name.trim());
        } else if let Some(flags) = text.strip_prefix(".headerflags").or_else(|| text.strip_prefix("code for ")) {
            self.architecture(flags);
        } else if let Some(other) = text.strip_prefix(".other") {
            if let (true, Some((name, _))) = (other.contains("STO_CUDA_ENTRY"), other.split_once(',')) {
                self.kernels.push(name.trim().to_owned());
            }
        } else if let Some(place) = text.strip_prefix("//## File ") {
            self.place(place);
        } else if let Some(label) = text.strip_suffix(':') {
            if self.open.is_some() && !label.contains(char::is_whitespace) {
                let at = self.listing.code.len();
                self.listing.labels.entry(label.to_owned()).or_insert(at);
            }
        } else if text.starts_with("/*") {
            self.instruction(text);
        }
    }

    /// `@"EF_CUDA_SM90 …"`, or `sm_90a`.
    fn architecture(&mut self, text: &str) {
        let numbers = ["EF_CUDA_SM", "sm_"].iter().find_map(|prefix| text.split_once(prefix));
        let digits: String =
            numbers.map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect()).unwrap_or_default();
        if let Ok(number) = digits.parse::<u32>() {
            self.is_foreign = number != HOPPER;
            if self.is_foreign {
                self.other = Some(number);
            }
        }
    }

    fn begin_function(&mut self, name: &str) {
        self.open = Some((name.to_owned(), self.listing.code.len()));
        self.line = None;
    }

    fn end_function(&mut self) {
        let end = self.listing.code.len();
        if let Some((name, start)) = self.open.take()
            && start < end
        {
            let is_kernel = self.kernels.contains(&name);
            self.listing.labels.entry(name.clone()).or_insert(start);
            self.listing.functions.push(Function { name, is_kernel, start, end });
        }
    }

    /// `"kernel.py", line 7`, perhaps with `inlined at "other.py", line 9`, whose own line follows.
    fn place(&mut self, place: &str) {
        let was_inlined = std::mem::replace(&mut self.is_inlined, place.contains("inlined at"));
        if was_inlined {
            return;
        }
        let mut quoted = place.splitn(3, '"').skip(1);
        let (Some(file), Some(rest)) = (quoted.next(), quoted.next()) else { return };
        let number = rest.split_once("line ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
        let Some(Ok(line)) = number.map(|digits: String| digits.parse()) else { return };
        let file = self.files.entry(file.to_owned()).or_insert_with(|| file.into()).clone();
        self.line = Some(SourceLine { file, line });
    }

    /// `/*0050*/ @!P0 BRA `(.L_x_0) ; /* 0x… */`; a line of an encoding alone says nothing.
    fn instruction(&mut self, text: &str) {
        let Some((offset, rest)) = text.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) else { return };
        let Ok(offset) = u64::from_str_radix(offset.trim(), 16) else { return };
        if self.open.is_none() || self.is_foreign || rest.trim().is_empty() {
            return;
        }
        self.is_inlined = false;
        let body = rest.split(';').next().unwrap_or_default();
        match Instruction::read(offset, body, self.line.clone()) {
            Some(instruction) => {
                self.listing.code.push(Instruction { listing_line: self.listing_line, ..instruction });
            }
            None => self.listing.unread += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NVDISASM: &str = "
\t.headerflags\t@\"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)\"
\t.section\t.text.gemm,\"ax\",@progbits
	.sectionflags	@\"SHF_BARRIERS=3\"
        .other          gemm,@\"STO_CUDA_ENTRY STV_DEFAULT\"
gemm:
.text.gemm:
\t//## File \"a.py\", line 7 inlined at \"b.py\", line 9
\t//## File \"b.py\", line 9
        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x1 */
                                                           /* 0x2 */
.L_x_1:
        /*0010*/               @P0 BRA `(.L_x_1) ;
\t.section\t.nv.constant0.gemm,\"a\",@progbits
        /*0000*/ \t.byte\t0x00";

    #[test]
    fn functions_labels_and_lines_are_those_of_nvdisasm() {
        let listing = Listing::read(NVDISASM).unwrap();
        assert_eq!(listing.functions, [Function { name: "gemm".into(), is_kernel: true, start: 0, end: 2 }]);
        assert_eq!(listing.labels[".L_x_1"], 1);
        let line = listing.code[0].line.as_ref().unwrap();
        assert_eq!((&*line.file, line.line), ("a.py", 7));
        assert_eq!(listing.at_offset(0, 0x10), Some(1));
        assert!(NVDISASM.lines().nth(listing.code[1].listing_line as usize - 1).unwrap().contains("BRA"));
    }

    #[test]
    fn listings_of_cuobjdump_have_functions_and_offsets() {
        let text = "\tcode for sm_90a\n\t\tFunction : gemm\n\t.headerflags\t@\"EF_CUDA_SM90\"\n        /*0000*/   BRA 0x0 ; /* 0x1 */";
        let listing = Listing::read(text).unwrap();
        assert_eq!((listing.functions.len(), listing.code[0].operand(0)), (1, "0x0"));
    }

    #[test]
    fn other_texts_and_other_gpus_are_refused() {
        assert_eq!(Listing::read("hello"), Err(ListingError::NoCode));
        let other = NVDISASM.replace("EF_CUDA_SM90", "EF_CUDA_SM100");
        assert_eq!(Listing::read(&other), Err(ListingError::OtherArchitecture(100)));
    }
}
