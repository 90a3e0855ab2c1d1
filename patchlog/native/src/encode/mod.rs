//! Writers: registers of a sink to bytes.

pub mod body;
pub mod dataset;
pub mod entries;
pub mod frames;
pub mod lookup;
pub mod patch;
pub mod rdf;
pub mod terms;
pub mod text;
