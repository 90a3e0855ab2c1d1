//! The native codec of patchlog: the faces of `patchlog.codec.faces`, for speed.
//!
//! Sources (`decode`) read a format and set the registers of a sink; sinks (`encode`, `arrow`, `python`) write one. The seam is the
//! trait in `sink`; every pair of a source and a sink is compiled into one loop. What input is refused, and where, is
//! written in docs/protocol.md, and a differential fuzz test holds this crate and the pure implementation to it.

mod arrow;
mod bytes;
mod decode;
mod encode;
mod fault;
mod hash;
mod options;
mod python;
mod scan;
mod sink;
mod term_hash;
mod text;
mod wire;
mod xxh64;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<python::decoders::RdfDecoder>()?;
    module.add_class::<python::decoders::PatchDecoder>()?;
    module.add_class::<python::decoders::RdfPatchReader>()?;
    module.add_class::<python::decoders::NQuadsReader>()?;
    module.add_class::<python::encoders::RdfEncoder>()?;
    module.add_class::<python::dataset::DatasetEncoder>()?;
    module.add_class::<python::encoders::PatchEncoder>()?;
    module.add_class::<python::encoders::CanonicalPatchEncoder>()?;
    module.add_class::<python::encoders::RdfPatchWriter>()?;
    module.add_class::<python::converter::Converter>()?;
    module.add_class::<python::intake::PatchIntake>()?;
    module.add_class::<python::intake::WholeIntake>()?;
    module.add_class::<python::arrow::ArrowDecoder>()?;
    module.add_class::<python::arrow::ArrowEncoder>()?;
    module.add_class::<python::arrow::RecordBatch>()?;
    module.add_class::<python::known_quads::KnownQuads>()?;
    module.add_function(wrap_pyfunction!(python::hashes::hashes_by_part, module)?)?;
    module.add_function(wrap_pyfunction!(python::hashes::hashes_are_distinct, module)?)?;
    module.add_class::<python::rdflib::RdflibDecoder>()?;
    module.add_class::<python::rdflib::RdflibEncoder>()?;
    Ok(())
}
