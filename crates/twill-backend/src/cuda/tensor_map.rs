//! Tensor maps of TMA: how a descriptor's tiles are copied, and how the entry describes its argument.

use super::names::{self, missing};
use twill_codegen::Error;
use twill_codegen::ir::{Descriptor, MulticastRing, Op, WarpProgram, any};
use twill_codegen::passes::multicast::CTAS;
use twill_triton::mlir::{FloatKind, Type};

/// Most elements of a box along one dimension ("cuTensorMapEncodeTiled").
const LONGEST_BOX: u64 = 256;

/// How TMA copies the tiles of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boxes {
    /// Extents of a box.
    pub extents: Vec<u64>,
    /// Bytes of a swizzled line: 128, 64, 32, or 0.
    pub swizzle: u64,
}

impl Boxes {
    /// A tile is copied panel by panel, as `smem_tile` of the primitives has them; of what both CTAs of a cluster load, each copies
    /// one half of the rows.
    pub(super) fn of(kernel: &WarpProgram, descriptor: &Descriptor) -> Result<Boxes, Error> {
        let size = u64::from(descriptor.element.scalar_bits().unwrap_or(32) / 8);
        let columns = descriptor.block.last().copied().unwrap_or(1);
        let bytes = columns * size;
        let line = [128, 64, 32].into_iter().find(|line| bytes % line == 0).unwrap_or(bytes);
        let rows: u64 = descriptor.block.iter().rev().skip(1).product();
        let mut extents = descriptor.block.clone();
        if let Some(last) = extents.last_mut() {
            *last = line / size.max(1);
        }
        let is_half = |ring: &MulticastRing| kernel.descriptors[ring.descriptor.index()] == *descriptor;
        if kernel.cluster.as_ref().is_some_and(|cluster| cluster.rings.iter().any(is_half)) {
            // Rings of such tiles have two dimensions.
            extents[0] /= u64::from(CTAS);
        }
        if extents.len() > 4 || extents.iter().any(|n| *n > LONGEST_BOX) {
            return Err(missing(format!("copies of blocks of {:?}", descriptor.block)));
        }
        Ok(Boxes { extents, swizzle: if rows > 1 && (32..=128).contains(&line) { line } else { 0 } })
    }
}

/// CUDA's name of an element in a tensor map.
fn data_type(kind: &Type) -> Result<&'static str, Error> {
    Ok(match kind {
        Type::Float(FloatKind::F16) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
        Type::Float(FloatKind::BF16) => "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16",
        Type::Float(FloatKind::F32) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT32",
        Type::Float(FloatKind::F64) => "CU_TENSOR_MAP_DATA_TYPE_FLOAT64",
        // Copies read no numbers: floats of 8 bits are bytes.
        Type::Integer(8) | Type::Float(FloatKind::F8E4M3FN | FloatKind::F8E5M2) => "CU_TENSOR_MAP_DATA_TYPE_UINT8",
        Type::Integer(16) => "CU_TENSOR_MAP_DATA_TYPE_UINT16",
        Type::Integer(32) => "CU_TENSOR_MAP_DATA_TYPE_INT32",
        Type::Integer(64) => "CU_TENSOR_MAP_DATA_TYPE_INT64",
        other => return Err(missing(format!("copies of {other}"))),
    })
}

/// What a descriptor is made of.
pub(super) fn tensor_of(descriptor: &Descriptor) -> String {
    match &descriptor.matrix {
        None => format!("*{}", names::parameter_of_entry(&descriptor.parameter)),
        Some(_) => format!("{}_matrix", names::name(&descriptor.name)),
    }
}

/// Bytes of an element.
pub(super) fn element_bytes(descriptor: &Descriptor) -> u32 {
    descriptor.element.scalar_bits().unwrap_or(32) / 8
}

/// A tensor map of an argument.
pub(super) fn tensor_map(kernel: &WarpProgram, descriptor: &Descriptor) -> Result<String, Error> {
    let boxes = Boxes::of(kernel, descriptor)?;
    let name = names::name(&descriptor.name);
    let is_stored = |op: &Op| match op {
        Op::TmaStore { descriptor: to, .. } => kernel.descriptors[to.index()] == *descriptor,
        _ => false,
    };
    let nodes = kernel.groups.iter().flat_map(|group| [&group.begin, &group.body, &group.end]);
    let nothing = if nodes.into_iter().any(|nodes| any(nodes, is_stored)) { "unread" } else { "zeros" };
    let box_text = boxes.extents.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    Ok(format!(
        "  alignas(CUtensorMap) twill::tensor_map {name};
  if (const char *why = describe<{}>({name}, {}, {}, {}, {{{box_text}}}, {}, {nothing}))
    return refuse(\"{}\", why);\n",
        boxes.extents.len(),
        tensor_of(descriptor),
        data_type(&descriptor.element)?,
        element_bytes(descriptor),
        match boxes.swizzle {
            128 => "CU_TENSOR_MAP_SWIZZLE_128B",
            64 => "CU_TENSOR_MAP_SWIZZLE_64B",
            32 => "CU_TENSOR_MAP_SWIZZLE_32B",
            _ => "CU_TENSOR_MAP_SWIZZLE_NONE",
        },
        descriptor.parameter
    ))
}

/// How a tensor map is made; the driver's function is found when first needed, so that nothing is linked against it. What
/// is asked of tensors is what "cuTensorMapEncodeTiled" asks.
pub(super) const MAPS: &str = "
/// What is read of a matrix without elements, and what may be written of one.
__device__ __align__(16) unsigned char zeros[16], unread[16];

/// Whether a tensor has elements.
template <int RANK> bool is_empty(const twill_tensor &tensor) {
  for (int d = 0; d < RANK; d++)
    if (tensor.shape[d] < 1) return true;
  return false;
}

/// Why TMA cannot copy parts of a tensor, or null.
template <int RANK> const char *unfit(const twill_tensor &tensor, int size, bool may_be_empty) {
  if (is_empty<RANK>(tensor)) return may_be_empty ? nullptr : \"must not be empty\";
  if (!tensor.data) return \"must not be null\";
  if (tensor.strides[RANK - 1] != 1) return \"must be contiguous in its last dimension\";
  if (reinterpret_cast<uintptr_t>(tensor.data) % 16) return \"must begin at a multiple of 16 bytes\";
  for (int d = 0; d + 1 < RANK; d++) {
    if (tensor.strides[d] < 0) return \"strides must not be negative\";
    if (tensor.strides[d] % (16 / size)) return \"strides must be multiples of 16 bytes\";
    if (tensor.strides[d] >= (1LL << 40) / size) return \"strides must be below 2^40 bytes\";
  }
  for (int d = 0; d < RANK; d++)
    if (tensor.shape[d] > 1LL << 32) return \"must have at most 2^32 elements along a dimension\";
  return nullptr;
}

/// Describes a tensor for TMA in boxes; why not, if the driver cannot.
template <int RANK>
const char *describe(twill::tensor_map &map, twill_tensor tensor, CUtensorMapDataType type, int size,
                     const int (&box)[RANK], CUtensorMapSwizzle swizzle, const unsigned char (&nothing)[16]) {
  static decltype(&cuTensorMapEncodeTiled) encode = [] {
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(\"cuTensorMapEncodeTiled\", &found, 12000, cudaEnableDefault, &result);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found);
  }();
  if (!encode) return \"the driver makes no tensor maps\";
  if (is_empty<RANK>(tensor)) {
    // Every mask is false: what is read is zero.
    if (cudaGetSymbolAddress(&tensor.data, nothing) != cudaSuccess) return \"is empty, and there are no zeros to read\";
    for (int d = 0; d < RANK; d++) {
      tensor.shape[d] = 1;
      tensor.strides[d] = 16 / size;
    }
    tensor.shape[RANK - 1] = 16 / size;
  }
  cuuint64_t shape[RANK], strides[RANK];
  cuuint32_t extents[RANK], steps[RANK];
  for (int d = 0; d < RANK; d++) {
    const int from_last = RANK - 1 - d;
    shape[from_last] = cuuint64_t(tensor.shape[d]);
    extents[from_last] = cuuint32_t(box[d]);
    steps[from_last] = 1;
    if (d + 1 < RANK) strides[from_last - 1] = cuuint64_t(tensor.strides[d]) * size;
  }
  const CUresult made = encode(reinterpret_cast<CUtensorMap *>(&map), type, RANK, tensor.data, shape, strides, extents, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return made == CUDA_SUCCESS ? nullptr : \"no tensor map can be made of it\";
}
";
