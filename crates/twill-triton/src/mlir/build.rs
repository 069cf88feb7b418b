//! Adds operations, regions, blocks and values to a module under construction.

use indexmap::IndexMap;
use twill_graph::saturate;

use super::ast::{Block, BlockId, Definition, Module, Operation, OperationId, Region, RegionId, Use, Value, ValueId};
use super::attributes::Attributes;
use super::types::Type;

/// The index of the next entry. Entries are made of text, and the text has fewer than 2³² bytes.
fn next_index<T>(arena: &[T]) -> u32 {
    saturate::<u32>(arena.len())
}

impl Module {
    pub(super) fn empty(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            top: OperationId(0),
            operations: Vec::new(),
            regions: Vec::new(),
            blocks: Vec::new(),
            values: Vec::new(),
            attribute_aliases: IndexMap::new(),
        }
    }

    /// Adds an operation without name to the end of a block; its parts follow when they are known.
    pub(super) fn add_operation(&mut self, block: Option<BlockId>, line: u32, column: u32) -> OperationId {
        let id = OperationId(next_index(&self.operations));
        self.operations.push(Operation {
            name: String::new(),
            results: Vec::new(),
            operands: Vec::new(),
            attributes: Attributes::default(),
            successors: Vec::new(),
            regions: Vec::new(),
            block,
            location: None,
            line,
            column,
        });
        if let Some(block) = block {
            self.blocks[block.index()].operations.push(id);
        }
        id
    }

    pub(super) fn add_region(&mut self, operation: OperationId) -> RegionId {
        let id = RegionId(next_index(&self.regions));
        self.regions.push(Region { operation, blocks: Vec::new() });
        self.operations[operation.index()].regions.push(id);
        id
    }

    /// A block of the region that has no place among its blocks yet.
    pub(super) fn add_block(&mut self, region: RegionId) -> BlockId {
        let id = BlockId(next_index(&self.blocks));
        self.blocks.push(Block { region, arguments: Vec::new(), operations: Vec::new() });
        id
    }

    pub(super) fn add_argument(&mut self, block: BlockId, kind: Type, name: &str) -> ValueId {
        let index = self.block(block).arguments.len();
        let id = self.add_value(kind, Definition::Argument { block, index }, name);
        self.blocks[block.index()].arguments.push(id);
        id
    }

    pub(super) fn add_result(&mut self, operation: OperationId, kind: Type, name: &str) -> ValueId {
        let index = self.operation(operation).results.len();
        let id = self.add_value(kind, Definition::Result { operation, index }, name);
        self.operations[operation.index()].results.push(id);
        id
    }

    pub(super) fn set_operands(&mut self, operation: OperationId, operands: Vec<ValueId>) {
        for (index, value) in operands.iter().enumerate() {
            self.values[value.index()].uses.push(Use { operation, index });
        }
        self.operations[operation.index()].operands = operands;
    }

    fn add_value(&mut self, kind: Type, definition: Definition, name: &str) -> ValueId {
        let id = ValueId(next_index(&self.values));
        self.values.push(Value { kind, definition, uses: Vec::new(), name: name.to_owned() });
        id
    }
}
