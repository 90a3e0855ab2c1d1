//! Arrow record batches, by the C data interface: its structs are small, and with them no Arrow library is needed.

pub mod abi;
pub mod batch;
pub mod columns;
pub mod known_quads;
pub mod reader;
pub mod sink;
pub mod strings;
pub mod table;
