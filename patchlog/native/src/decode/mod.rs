//! Readers: bytes in, registers of a sink set.

pub mod frames;
pub mod lines;
pub mod nquads;
pub mod patch;
pub mod rdf;
pub mod rdf_patch;
pub mod rdf_patch_tokens;
pub mod terms;
