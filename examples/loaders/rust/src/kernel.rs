//! `kernel.json`, as far as a launch needs it.

use crate::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A generated kernel.
#[derive(Debug, Deserialize)]
pub struct Kernel {
    /// For people.
    pub name: String,
    /// Its symbol.
    pub function: String,
    /// Such as `sm_90a`.
    pub architecture: String,
    /// Those of the Triton kernel.
    pub parameters: Vec<Parameter>,
    /// Those of the function, in order.
    pub arguments: Vec<String>,
    /// Constexprs of the Triton kernel that are built in.
    #[serde(default)]
    pub constants: BTreeMap<String, serde_json::Value>,
    /// How programs become thread blocks.
    pub grid: Grid,
    /// Threads of a thread block.
    pub threads: u32,
    /// Dynamic, in bytes.
    pub shared_memory: u32,
}

/// A parameter of the Triton kernel.
#[derive(Debug, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// In Triton's spelling.
    pub element: String,
    /// Its descriptors, one for each shape of tile.
    #[serde(default)]
    pub blocks: Vec<Block>,
}

/// The kind of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A tensor descriptor.
    Descriptor,
    /// An address.
    Pointer,
    /// A number.
    Scalar,
}

/// Tiles that TMA copies.
#[derive(Debug, Deserialize)]
pub struct Block {
    /// The argument of the function.
    pub argument: String,
    /// Extents of the box of its tensor map.
    #[serde(rename = "box")]
    pub extents: Vec<u32>,
    /// Bytes of a swizzled line; 0: none.
    pub swizzle: u32,
}

/// How programs become thread blocks.
#[derive(Debug, Deserialize)]
pub struct Grid {
    /// One tile for each thread block, or several.
    pub kind: GridKind,
    /// Programs in x, y and z that a thread block does at once.
    pub cta_coarsening: [u64; 3],
    /// Thread blocks a multiprocessor, of a persistent grid.
    pub ctas_per_sm: u64,
    /// Thread blocks that form a cluster, next to each other along x.
    #[serde(default = "one")]
    pub cluster: u64,
}

impl Grid {
    fn ctas(&self, programs: [u32; 3], multiprocessors: u64) -> Result<u32, Error> {
        let extents: Vec<u64> =
            programs.iter().zip(self.cta_coarsening).map(|(n, per)| u64::from(*n).div_ceil(per.max(1))).collect();
        let (tiles, cluster) = (extents.iter().product::<u64>(), self.cluster.max(1));
        if tiles > 0 && extents[0] % cluster != 0 {
            return Err(Error::NoClusters { along_x: extents[0], cluster });
        }
        // A persistent thread block counts one step of the grid beyond the last tile.
        let (ctas, step) = match self.kind {
            GridKind::OnePerProgram => (tiles, 0),
            GridKind::Persistent => {
                let step = (multiprocessors * self.ctas_per_sm / cluster).max(1) * cluster;
                // Even waves: as few as need no more waves of tiles, so that they share what they load.
                let rounds = tiles.div_ceil(step).max(1);
                (tiles.div_ceil(rounds).next_multiple_of(cluster), step)
            }
        };
        if tiles + step > i32::MAX as u64 {
            return Err(Error::TooMany { tiles });
        }
        u32::try_from(ctas).map_err(|_| Error::TooMany { tiles })
    }
}

fn one() -> u64 {
    1
}

/// One tile for each thread block, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridKind {
    /// A tile each.
    OnePerProgram,
    /// One tile after another.
    Persistent,
}

impl GridKind {
    /// As `kernel.json` says it.
    pub fn name(self) -> &'static str {
        match self {
            GridKind::OnePerProgram => "one_per_program",
            GridKind::Persistent => "persistent",
        }
    }
}

impl Kernel {
    /// The kernel of a folder.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Json`], and [`Error::NotCuda`] for kernels of the other back end.
    pub fn read(folder: &Path) -> Result<Kernel, Error> {
        let path = folder.join("kernel.json");
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let json = |source| Error::Json { path: path.clone(), source };
        // Kernels of the other back end lack fields: what they are is said before what they lack.
        let value: serde_json::Value = serde_json::from_str(&text).map_err(json)?;
        if value["format"] != "twill-kernel" || value["version"] != 1 || value["language"] != "cuda" {
            return Err(Error::NotCuda { path });
        }
        serde_json::from_value(value).map_err(json)
    }

    /// A constant that is a number.
    ///
    /// # Errors
    /// [`Error::NotGemm`] without it.
    pub fn constant(&self, name: &str) -> Result<u64, Error> {
        let number = self.constants.get(name).and_then(serde_json::Value::as_u64).filter(|n| *n > 0);
        number.ok_or_else(|| Error::NotGemm { name: self.name.clone(), what: format!("no constant {name}") })
    }

    /// Thread blocks for N programs on a GPU with M multiprocessors.
    ///
    /// # Errors
    /// [`Error::TooMany`], [`Error::NoClusters`].
    pub fn ctas(&self, programs: [u32; 3], multiprocessors: u64) -> Result<u32, Error> {
        self.grid.ctas(programs, multiprocessors)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, GridKind};
    use crate::error::Error;

    fn grid(kind: GridKind, cluster: u64) -> Grid {
        Grid { kind, cta_coarsening: [1, 1, 1], ctas_per_sm: 1, cluster }
    }

    #[test]
    fn rounds_of_tiles_are_even() {
        let persistent = grid(GridKind::Persistent, 1);
        // Tiles, and thread blocks of the 132 that could run.
        for (tiles, ctas) in [(0, 0), (1, 1), (132, 132), (133, 67), (512, 128), (2048, 128), (10_000, 132)] {
            assert_eq!(persistent.ctas([tiles, 1, 1], 132).ok(), Some(ctas), "{tiles} tiles");
        }
        assert_eq!(grid(GridKind::OnePerProgram, 1).ctas([16, 32, 1], 132).ok(), Some(512));
    }

    #[test]
    fn clusters_are_whole_and_grids_end() {
        let clusters = grid(GridKind::Persistent, 2);
        // 75 would do 150 tiles in two waves.
        assert_eq!(clusters.ctas([6, 25, 1], 133).ok(), Some(76));
        assert!(matches!(clusters.ctas([5, 4, 1], 132), Err(Error::NoClusters { along_x: 5, cluster: 2 })));
        let most = u32::try_from(i32::MAX).unwrap_or_default();
        let persistent = grid(GridKind::Persistent, 1);
        assert!(persistent.ctas([most - 132, 1, 1], 132).is_ok());
        assert!(matches!(persistent.ctas([most - 131, 1, 1], 132), Err(Error::TooMany { .. })));
    }
}
