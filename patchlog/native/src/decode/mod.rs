//! Readers: bytes in, registers of a sink set.

pub mod frames;
pub mod lines;
pub mod lookups;
pub mod messages;
pub mod nquads;
pub mod patch;
pub mod quoted;
pub mod rdf;
pub mod rdf_patch;
pub mod rdf_patch_tokens;
pub mod reader;
pub mod terms;
