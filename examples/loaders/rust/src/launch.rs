//! The parameters of a launch: everything but addresses is known from `kernel.json` and the sizes of the matrices.

use crate::error::Error;
use crate::kernel::{Kernel, Kind};
use cudarc::driver::sys::{
    CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use serde_json::{Value, json};

/// Bytes of which rows must be a multiple ("cuTensorMapEncodeTiled").
const ROW: u64 = 16;

/// Sizes of the matrices: A is M x K, B is N x K, C is M x N.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rows of A and of C.
    pub m: u32,
    /// Rows of B, columns of C.
    pub n: u32,
    /// Columns of A and of B.
    pub k: u32,
}

impl Sizes {
    /// Those of the command line.
    ///
    /// # Errors
    /// [`Error::Size`].
    pub fn parse(m: &str, n: &str, k: &str) -> Result<Sizes, Error> {
        let size = |name, text: &str| {
            let size = text.parse().ok().filter(|size| (1..=1 << 20).contains(size));
            size.ok_or_else(|| Error::Size { name, text: text.into() })
        };
        Ok(Sizes { m: size("M", m)?, n: size("N", n)?, k: size("K", k)? })
    }

    /// Multiplications and additions.
    pub fn operations(self) -> f64 {
        2.0 * f64::from(self.m) * f64::from(self.n) * f64::from(self.k)
    }

    /// Rows and columns of the matrix that a parameter is.
    fn of(self, parameter: &str) -> Option<[u32; 2]> {
        match parameter {
            "a_desc" => Some([self.m, self.k]),
            "b_desc" => Some([self.n, self.k]),
            "c_desc" => Some([self.m, self.n]),
            _ => None,
        }
    }
}

/// A tensor map but for its address, as `cuTensorMapEncodeTiled` takes it: the last dimension first.
#[derive(Debug)]
pub struct TensorMap {
    /// The type of elements.
    pub data_type: CUtensorMapDataType,
    /// Elements along each dimension.
    pub shape: Vec<u64>,
    /// Bytes, of all dimensions but the first.
    pub strides: Vec<u64>,
    /// Elements that are copied at once.
    pub extents: Vec<u32>,
    /// Every element of a box is copied.
    pub element_strides: Vec<u32>,
    /// The swizzle of lines in shared memory.
    pub swizzle: CUtensorMapSwizzle,
}

impl TensorMap {
    /// Tiles are copied side by side.
    pub const INTERLEAVE: CUtensorMapInterleave = CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE;
    /// The fetch size of the L2 cache.
    pub const L2_PROMOTION: CUtensorMapL2promotion = CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    /// Elements beyond the matrix read as zero.
    pub const OOB_FILL: CUtensorMapFloatOOBfill = CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

    /// That of a row-major matrix.
    fn of([rows, columns]: [u32; 2], element: &str, extents: &[u32], swizzle: u32) -> Result<TensorMap, String> {
        let (data_type, size) = match element {
            "fp16" => (CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2),
            other => return Err(format!("elements of type {other}, in a program for fp16")),
        };
        let swizzle = match swizzle {
            0 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            other => return Err(format!("swizzled lines of {other} bytes")),
        };
        if extents.len() != 2 {
            return Err(format!("{} dimensions, for a matrix", extents.len()));
        }
        Ok(TensorMap {
            data_type,
            shape: vec![columns.into(), rows.into()],
            strides: vec![u64::from(columns) * size],
            extents: extents.iter().rev().copied().collect(),
            element_strides: vec![1; extents.len()],
            swizzle,
        })
    }
}

/// An argument of the kernel.
#[derive(Debug)]
pub enum Argument {
    /// A matrix by the parameter that it is.
    Map(String, TensorMap),
    /// A number.
    Number(i32),
}

/// The parameters of a launch.
#[derive(Debug)]
pub struct Launch {
    /// Programs of the Triton kernel, in x, y and z.
    pub programs: [u32; 3],
    /// In order.
    pub arguments: Vec<Argument>,
}

impl Launch {
    /// The parameters of the GEMM for matrices of these sizes.
    ///
    /// # Errors
    /// [`Error::Uneven`] for sizes that the kernel cannot do, [`Error::NotGemm`] and [`Error::NoMap`] for other kernels.
    pub fn of(kernel: &Kernel, sizes: Sizes) -> Result<Launch, Error> {
        for (name, value, divisor) in [("N", sizes.n, ROW / 2), ("K", sizes.k, 16)] {
            if u64::from(value) % divisor != 0 {
                return Err(Error::Uneven { name, divisor, value: value.into() });
            }
        }
        let tiles = |size: u32, constant| {
            let tile = kernel.constant(constant)?;
            // At most as many as rows.
            Ok::<u32, Error>(u64::from(size).div_ceil(tile) as u32)
        };
        let programs = [tiles(sizes.m, "BLOCK_M")?, tiles(sizes.n, "BLOCK_N")?, 1];
        let arguments = kernel.arguments.iter().map(|name| argument(kernel, name, sizes, programs));
        Ok(Launch { programs, arguments: arguments.collect::<Result<_, Error>>()? })
    }

    /// All of it but addresses.
    pub fn describe(&self, kernel: &Kernel) -> Value {
        let arguments = kernel.arguments.iter().zip(&self.arguments).map(|(name, argument)| match argument {
            Argument::Number(value) => json!({ "name": name, "value": value }),
            Argument::Map(_, map) => json!({
                "name": name,
                "data_type": map.data_type as u32,
                "rank": map.shape.len(),
                "shape": map.shape,
                "strides": map.strides,
                "box": map.extents,
                "element_strides": map.element_strides,
                "interleave": TensorMap::INTERLEAVE as u32,
                "swizzle": map.swizzle as u32,
                "l2_promotion": TensorMap::L2_PROMOTION as u32,
                "oob_fill": TensorMap::OOB_FILL as u32,
            }),
        });
        json!({
            "function": kernel.function,
            "threads": kernel.threads,
            "shared_memory": kernel.shared_memory,
            "grid": kernel.grid.kind.name(),
            "programs": self.programs,
            "arguments": arguments.collect::<Vec<_>>(),
        })
    }
}

/// An argument of the kernel by its name.
fn argument(kernel: &Kernel, name: &str, sizes: Sizes, [x, y, z]: [u32; 3]) -> Result<Argument, Error> {
    // Sizes and counts of tiles are at most 2^20.
    match name {
        "K" => return Ok(Argument::Number(sizes.k as i32)),
        "programs_x" => return Ok(Argument::Number(x as i32)),
        "programs_y" => return Ok(Argument::Number(y as i32)),
        "programs_z" => return Ok(Argument::Number(z as i32)),
        _ => {}
    }
    let other = || Error::NotGemm { name: kernel.name.clone(), what: format!("an argument {name}") };
    let blocks = kernel.parameters.iter().flat_map(|p| p.blocks.iter().map(move |b| (p, b)));
    let (parameter, block) = blocks.into_iter().find(|(_, b)| b.argument == name).ok_or_else(other)?;
    let matrix = sizes.of(&parameter.name).filter(|_| parameter.kind == Kind::Descriptor).ok_or_else(other)?;
    let map = TensorMap::of(matrix, &parameter.element, &block.extents, block.swizzle)
        .map_err(|what| Error::NoMap { argument: name.into(), what })?;
    Ok(Argument::Map(parameter.name.clone(), map))
}
