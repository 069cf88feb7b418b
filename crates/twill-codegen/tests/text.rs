//! Warp programs as text: what is printed reads back as the same program.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

#[allow(dead_code, reason = "each file of tests needs a part of it")]
mod common;

use common::{Scheduled, coarsening};
use twill_backend::cuda;
use twill_backend::{Header, gluon};
use twill_codegen::ir::{Detail, Node, WarpProgram};
use twill_codegen::passes::structure_returns::structure;
use twill_codegen::{Error, check};
use twill_triton::Options;

fn reads_back(program: &WarpProgram) {
    let text = program.to_string();
    let read: WarpProgram = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(read == *program, "{} reads back as another program:\n{text}", program.name);
}

#[test]
fn generated_programs_read_back() {
    for (example, machine) in [
        ("gemm_tma", "h200"),
        ("gemm_pointers", "h200"),
        ("attention_backward_d64", "h200"),
        ("tutorial_attention", "b200"),
    ] {
        let scheduled = Scheduled::soon(example, machine, &Options::default());
        let program = scheduled.program(true, 1, true).or_else(|_| scheduled.program(false, 1, true)).unwrap();
        reads_back(&program);
    }
    let shared = Scheduled::soon("attention_forward_d64_m64", "h200", &coarsening(2));
    reads_back(&shared.program(false, 2, false).unwrap());
    let scheduled = Scheduled::soon("gemm_tma", "h200", &Options::default());
    reads_back(&scheduled.clusters(true, 2).unwrap());
    let traced = check(scheduled.program(true, 2, true).unwrap()).unwrap().traced(16, Detail::Segments);
    reads_back(&traced);
}

/// Two loops in one another, a `while`, branches, an early return, and an operation that no pass has a rule for.
const CONTROL_FLOW: &str = r#"
warp_program walk {
  parameter n : i32 {divisible_by_16}
  parameter out : !tt.ptr<f32>
  tiles linear {cta_coarsening = [1, 1, 1]}
  group compute_0 {id = 0, warps = 4, registers = 168} {
    variable %i [] : i32
    variable %j [] : i32
    variable %sum [] : i32
    begin {
    }
    body {
      let %sum = integer(0) : [] i32
      if arith.cmpi<sle>(parameter n : [] i32, integer(0) : [] i32) : [] i1 {
        return
      }
      for %i = integer(0) : [] i32 to parameter n : [] i32 step integer(1) : [] i32 {
        for %j = integer(0) : [] i32 to %i step integer(1) : [] i32 {
          let %sum = arith.addi(%sum, %j) : [] i32
        }
      }
      while {
        let %sum = arith.addi(%sum, integer(1) : [] i32) : [] i32
      } condition arith.cmpi<slt>(%sum, integer(100) : [] i32) : [] i1 {
        let %sum = arith.muli(%sum, integer(2) : [] i32) : [] i32
      }
      if arith.cmpi<eq>(%sum, integer(101) : [] i32) : [] i1 {
        let %sum = integer(7) : [] i32
      } else {
        let %j = %sum
      }
      global_store arith.sitofp(%sum) : [] f32 to parameter out : [] !tt.ptr<f32>
    }
    end {
    }
  }
}
"#;

const OPAQUE: &str = r#"opaque "tt.histogram" {bins = "8 : i32"} (%sum) to [%sum]"#;

#[test]
fn loops_and_branches_read_back_are_proved_and_are_printed() {
    let mut program: WarpProgram = CONTROL_FLOW.parse().unwrap();
    reads_back(&program);
    assert!(matches!(check(program.clone()), Err(Error::NotProved { why }) if why.contains("early return")));
    structure(&mut program.groups[0].body);
    assert!(!program.to_string().contains("return"));
    assert!(
        matches!(&program.groups[0].body[1], Node::If { then, otherwise, .. } if then.is_empty() && otherwise.len() == 4)
    );
    let checked = check(program).unwrap();
    let header = Header { machine: "h200".into(), architecture: "sm_90a".into(), ..Header::default() };
    gluon::check(&checked).unwrap();
    let gluon = gluon::source(&checked, &header);
    let loops = ["for j in range(scalar(0, gl.int32), i, scalar(1, gl.int32)):", "while sum < scalar(100, gl.int32):"];
    assert!(loops.iter().all(|text| gluon.contains(text)), "{gluon}");
    let cuda = cuda::source(&checked, &header).unwrap();
    assert!(cuda.contains("for (j = 0; j < i_; j += 1) {") && cuda.contains("while (true) {"), "{cuda}");
}

#[test]
fn operations_without_a_rule_are_kept_and_named_where_they_cannot_be_printed() {
    let text = CONTROL_FLOW.replace("        return\n", "").replace("let %j = %sum", OPAQUE);
    let program: WarpProgram = text.parse().unwrap();
    reads_back(&program);
    let checked = check(program).unwrap();
    gluon::check(&checked).unwrap();
    let gluon = gluon::source(&checked, &Header::default());
    assert!(gluon.contains("gl.histogram("), "{gluon}");
    let unknown: WarpProgram = text.replace("tt.histogram", "tt.dot_scaled").parse().unwrap();
    let refused = gluon::check(&check(unknown).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("tt.dot_scaled"), "{refused}");
    let refused = cuda::source(&checked, &Header::default()).unwrap_err();
    assert!(refused.to_string().contains("tt.histogram"), "{refused}");
}

#[test]
fn what_is_undefined_on_a_way_through_a_branch_is_found() {
    let text = CONTROL_FLOW.replace("        return\n", "").replace("      let %sum = integer(0) : [] i32\n", "");
    let refused = check(text.parse().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("uses what nobody has made: sum"), "{refused}");
}

#[test]
fn errors_name_the_line() {
    for (from, to, what) in [
        ("global_store", "global_load", "`global_load` is no operation"),
        ("%sum = integer(7)", "%total = integer(7)", "there is no variable `total`"),
        ("cmpi<sle>", "cmpi<less>", "`arith.cmpi` is no expression"),
        ("registers = 168", "register = 168", "`register` is no attribute of a group"),
        (": !tt.ptr<f32>\n  tiles", ": !tt.ptr<f32\n  tiles", "a type is expected"),
    ] {
        let text = CONTROL_FLOW.replacen(from, to, 1);
        let line = 1 + CONTROL_FLOW.lines().position(|line| line.contains(from.lines().next().unwrap())).unwrap();
        let error = text.parse::<WarpProgram>().unwrap_err();
        assert!(error.line == line && error.what.contains(what), "{error}");
    }
    assert_eq!("".parse::<WarpProgram>().unwrap_err().to_string(), "line 1: `warp_program` is expected");
}
