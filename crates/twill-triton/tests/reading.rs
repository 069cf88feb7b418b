//! The parse of small texts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use twill_triton::mlir::{Attribute, Definition, Dimension, FloatKind, Module, OperationId, ParseError, Type, parse};

fn read(text: &str) -> Module {
    parse(text, "test.ttir").unwrap_or_else(|error| panic!("{error}"))
}

/// The first operation of this name.
fn find(module: &Module, name: &str) -> OperationId {
    module.walk(module.top()).find(|id| module.operation(*id).name == name).unwrap()
}

fn result_type(module: &Module, name: &str) -> Type {
    module.type_of(module.operation(find(module, name)).results[0]).clone()
}

fn tensor(shape: &[u64], element: Type) -> Type {
    let shape = shape.iter().map(|extent| Dimension::Known(*extent)).collect();
    Type::Tensor { shape, element: Box::new(element), encoding: None }
}

/// `tl.debug_barrier`, as Triton 3.6 prints it and as 3.7 does.
#[test]
fn a_barrier_of_all_threads_has_one_name() {
    for barrier in ["gpu.barrier", "ttg.barrier all", "ttg.barrier local"] {
        let module = read(&format!("tt.func @f() {{ {barrier} loc(unknown) tt.return }}"));
        assert!(module.operation(find(&module, "gpu.barrier")).results.is_empty(), "{barrier}");
    }
}

#[test]
fn a_loop_has_its_parts() {
    let module = read(
        r"
        tt.func @f(%low: i32, %high: i32, %x: f32) {
          %r = scf.for %i = %low to %high step %low iter_args(%a = %x) -> (f32) : i32 {
            %b = arith.addf %a, %a : f32
            scf.yield %b : f32
          } {tt.num_stages = 3 : i32}
          scf.for %i = %low to %high step %low : i32 {
          }
          tt.return
        }",
    );
    let function = module.function("f").unwrap();
    let arguments = module.arguments(function);
    let loops: Vec<_> = module.innermost_loops(function).collect();
    let first = loops[0];
    assert_eq!(loops.len(), 2);
    assert_eq!((first.lower, first.upper, first.step), (arguments[0], arguments[1], arguments[0]));
    assert_eq!(first.initial, [arguments[2]]);
    assert_eq!(module.definition(first.induction), Definition::Argument { block: first.body, index: 0 });
    assert_eq!(module.definition(first.carried[0]), Definition::Argument { block: first.body, index: 1 });
    let addition = find(&module, "arith.addf");
    assert_eq!(module.definition(first.yielded[0]), Definition::Result { operation: addition, index: 0 });
    assert_eq!(module.value(first.results[0]).name, "r");
    assert_eq!(module.uses(first.carried[0]).len(), 2);
    assert_eq!(module.operation(first.operation).attributes.integer("tt.num_stages"), Some(3));
    assert_eq!(module.parent(addition), Some(first.operation));
    assert!(module.is_nested_in(addition, function) && !module.is_nested_in(function, addition));
    // The second has no yield of its own.
    assert_eq!(module.operation(loops[1].terminator).name, "scf.yield");
    assert_eq!((module.operation(first.operation).line, module.operation(first.operation).column), (3, 11));
}

#[test]
fn innermost_loops_hold_no_loops() {
    let module = read(
        r"
        tt.func @f(%n: i32) {
          scf.for %i = %n to %n step %n : i32 {
            scf.for %j = %n to %n step %n : i32 {
            }
          }
          tt.return
        }",
    );
    let function = module.function("f").unwrap();
    assert_eq!(module.for_loops(function).count(), 2);
    let inner: Vec<_> = module.innermost_loops(function).collect();
    assert_eq!(inner.len(), 1);
    assert_eq!(module.value(inner[0].induction).name, "j");
}

#[test]
fn types_of_results_follow_from_what_is_written() {
    let module = read(
        r"
        tt.func @f(%p: tensor<8x4x!tt.ptr<f16>>, %a: tensor<8x4xi32>, %d: !tt.tensordesc<tensor<8x4xf16>>, %i: i32, %q: !tt.ptr<f8E5M2>, %n: i64) {
          %0 = tt.load %p : tensor<8x4x!tt.ptr<f16>>
          %1 = arith.cmpi slt, %a, %a : tensor<8x4xi32>
          %2 = tt.addptr %p, %a : tensor<8x4x!tt.ptr<f16>>, tensor<8x4xi32>
          %3 = arith.select %1, %a, %a : tensor<8x4xi1>, tensor<8x4xi32>
          %4 = tt.descriptor_load %d[%i, %i] cacheModifier = ca : !tt.tensordesc<tensor<8x4xf16>> -> tensor<8x4xf16>
          %5 = tt.make_tensor_descriptor %q, [%i], [%n] : <f8E5M2>, <tensor<16xf8E5M2>>
          %6 = arith.extsi %i : i32 to i64
          %7 = arith.constant dense<0xFC00> : tensor<2x2xf16>
          tt.return
        }",
    );
    let half = Type::Float(FloatKind::F16);
    let pointer = Type::Pointer { pointee: Box::new(half.clone()), address_space: 1 };
    let block = tensor(&[16], Type::Float(FloatKind::F8E5M2));
    assert_eq!(result_type(&module, "tt.load"), tensor(&[8, 4], half.clone()));
    assert_eq!(result_type(&module, "arith.cmpi"), tensor(&[8, 4], Type::Integer(1)));
    assert_eq!(result_type(&module, "tt.addptr"), tensor(&[8, 4], pointer));
    assert_eq!(result_type(&module, "arith.select"), tensor(&[8, 4], Type::Integer(32)));
    assert_eq!(result_type(&module, "tt.descriptor_load"), tensor(&[8, 4], half));
    assert_eq!(result_type(&module, "tt.make_tensor_descriptor"), Type::TensorDescriptor(Box::new(block)));
    assert_eq!(result_type(&module, "arith.extsi"), Type::Integer(64));
    let load = module.operation(find(&module, "tt.descriptor_load"));
    assert_eq!(load.attributes.text("cache"), Some("ca"));
    let constant = module.operation(find(&module, "arith.constant")).attributes.get("value").unwrap();
    let Some(Attribute::Float { value, .. }) = constant.number() else { panic!("{constant}") };
    assert_eq!(value.0, f64::NEG_INFINITY);
}

#[test]
fn extents_that_are_unknown_and_extents_of_zero_are_read() {
    let module = read("tt.func private @f(tensor<?x0x8xf32>, tensor<i1>, tensor<4xf32, #layout<{a = [1 : i32]}>>)");
    let function = module.function("f").unwrap();
    let Some(Attribute::Type(Type::Function { inputs, .. })) =
        module.operation(function).attributes.get("function_type")
    else {
        panic!()
    };
    assert_eq!(inputs[0].shape().unwrap(), [Dimension::Dynamic, Dimension::Known(0), Dimension::Known(8)]);
    assert_eq!(inputs[0].known_shape(), None);
    assert_eq!(inputs[1].shape().unwrap(), []);
    assert!(matches!(&inputs[2], Type::Tensor { encoding: Some(text), .. } if text == "#layout<{a = [1 : i32]}>"));
    assert_eq!(inputs[2].to_string(), "tensor<4xf32, #layout<{a = [1 : i32]}>>");
}

#[test]
fn operations_are_read_in_one_order_of_operands() {
    let module = read(
        r"
        tt.func @f(%d: !tt.tensordesc<tensor<8x4xf16>>, %i: i32, %j: i32, %t: tensor<8x4xf16>) {
          tt.descriptor_store %d[%i, %j], %t : !tt.tensordesc<tensor<8x4xf16>>, tensor<8x4xf16>
          tt.descriptor_reduce add, %d[%i, %j], %t : !tt.tensordesc<tensor<8x4xf16>>, tensor<8x4xf16>
          tt.return
        }",
    );
    let names = |operation| -> Vec<&str> {
        let operands = &module.operation(find(&module, operation)).operands;
        operands.iter().map(|value| module.value(*value).name.as_str()).collect()
    };
    assert_eq!(names("tt.descriptor_store"), ["d", "t", "i", "j"]);
    assert_eq!(names("tt.descriptor_reduce"), ["d", "t", "i", "j"]);
}

#[test]
fn locations_are_resolved_through_aliases_and_calls() {
    let module = read(
        r##"
        #here = loc("kernel.py":3:4)
        module {
          tt.func @f(%a: f32) {
            %b = arith.addf %a, %a : f32 loc(#named)
            %c = arith.mulf %a, %a : f32 loc("x"("kernel.py":7:8))
            %d = arith.subf %a, %a : f32 loc(callsite(callsite("a.py":1:2 at "b.py":3:4) at "c"("kernel.py":5:6)))
            %e = arith.divf %a, %a : f32 loc(fused<{m = [1]}>[unknown, #here])
            %f = arith.maxnumf %a, %a : f32 loc(unknown)
            %g = arith.minnumf %a, %a : f32 loc("kernel.py":1:2 to 3:4)
            tt.return
          }
        }
        #named = loc("b"(#inner))
        #inner = loc(callsite("standard.py":129:31 at #here))
        "##,
    );
    let location = |name| module.operation(find(&module, name)).location.clone();
    let text = |name| location(name).unwrap().to_string();
    assert_eq!(text("arith.addf"), "standard.py:129:31 called from kernel.py:3:4");
    assert_eq!(location("arith.addf").unwrap().name.as_deref(), Some("b"));
    assert_eq!(location("arith.addf").unwrap().in_kernel().line, 3);
    assert_eq!(text("arith.mulf"), "kernel.py:7:8");
    assert_eq!(text("arith.subf"), "a.py:1:2 called from b.py:3:4 called from kernel.py:5:6");
    assert_eq!(location("arith.subf").unwrap().name.as_deref(), Some("c"));
    assert_eq!(text("arith.divf"), "kernel.py:3:4");
    assert_eq!(location("arith.maxnumf"), None);
    assert_eq!(text("arith.minnumf"), "kernel.py:1:2");
}

#[test]
fn the_generic_form_of_other_dialects_is_read() {
    let module = read(
        r##"
        #blocked = #ttg.blocked<{sizePerThread = [1, 1], order = [1, 0]}>
        "builtin.module"() ({
          "tt.func"() <{function_type = (tensor<8x4xf16, #blocked>) -> (), sym_name = "f"}> ({
          ^bb0(%a: tensor<8x4xf16, #blocked>):
            %m = "ttg.local_alloc"(%a) : (tensor<8x4xf16, #blocked>) -> !ttg.memdesc<8x4xf16, #shared, #smem, mutable>
            "ttg.warp_specialize"(%m) <{partitionNumWarps = array<i32: 4>}> ({
              "ttg.warp_yield"() : () -> ()
            }, {
              "ttg.warp_specialize.partitions"() : () -> ()
            }) {"ttg.odd-name" = dense<[1, 2]> : tensor<2xi32>} : (!ttg.memdesc<8x4xf16, #shared, #smem, mutable>) -> ()
            "tt.return"() : () -> ()
          }) : () -> ()
        }) {"ttg.num-warps" = 8 : i32} : () -> ()
        "##,
    );
    assert_eq!(module.attribute_alias("#blocked"), Some("#ttg.blocked<{sizePerThread = [1, 1], order = [1, 0]}>"));
    assert_eq!(module.operation(module.top()).attributes.integer("ttg.num-warps"), Some(8));
    let specialize = module.operation(find(&module, "ttg.warp_specialize"));
    assert_eq!(specialize.regions.len(), 2);
    assert_eq!(specialize.attributes.integers("partitionNumWarps"), Some(&[4][..]));
    assert_eq!(
        result_type(&module, "ttg.local_alloc"),
        Type::Opaque("!ttg.memdesc<8x4xf16, #shared, #smem, mutable>".to_owned())
    );
}

#[test]
fn constants_and_promises_are_found() {
    let module = read(
        r"
        tt.func @f(%a: i32, %b: i32 {tt.divisibility = 16 : i32}) {
          %c = arith.constant dense<-64> : tensor<8xi32>
          %d = arith.constant true
          %e = arith.constant dense<2.5> : tensor<8xf32>
          tt.return
        }",
    );
    let function = module.function("f").unwrap();
    let value = |name: &str| {
        let results = module.walk(function).flat_map(|id| module.operation(id).results.clone());
        results.into_iter().find(|value| module.value(*value).name == name).unwrap()
    };
    assert_eq!(module.integer_constant(value("c")), Some(-64));
    assert_eq!(module.integer_constant(value("d")), Some(1));
    assert_eq!(module.float_constant(value("e")), Some(2.5));
    assert_eq!(module.integer_constant(module.arguments(function)[0]), None);
    assert_eq!(module.argument_attributes(function, 1).unwrap().integer("tt.divisibility"), Some(16));
}

#[test]
fn strings_are_unescaped() {
    let module = read("module attributes {a = \"x \\22y\\22\\0A\\\\z \\C3\\A9\"} {}");
    assert_eq!(module.operation(module.top()).attributes.text("a"), Some("x \"y\"\n\\z é"));
}

#[test]
fn an_empty_module_has_an_empty_body() {
    for text in ["module {}", "\"builtin.module\"() ({\n^bb0:\n}) : () -> ()"] {
        let module = read(text);
        assert_eq!(module.block(module.body(module.top()).unwrap()).operations, []);
    }
    assert!(matches!(parse("// nothing\n", "x"), Err(ParseError::Empty { .. })));
}

/// Triton 3.6 prints the signs of a descriptor's integers, and none of the tiles that it copies.
#[test]
fn integers_of_descriptors_have_no_signs() {
    for element in ["si8", "ui8", "i8"] {
        let module = read(&format!("tt.func @f(%d: !tt.tensordesc<tensor<8x4x{element}>>) {{ tt.return }}"));
        let argument = module.arguments(module.function("f").unwrap())[0];
        let block = Type::TensorDescriptor(Box::new(tensor(&[8, 4], Type::Integer(8))));
        assert_eq!(*module.type_of(argument), block, "{element}");
    }
}
