//! Statements that are told apart by their hashes, so that millions of them need not be kept to see whether one comes twice.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault::{Result, usage_error};
use crate::python::{Data, OrRaise};

/// How long a hash is.
const HASH_BYTES: usize = size_of::<u64>();
const PARTS: usize = 256;

/// Hashes that lie in bytes, one behind the other.
pub fn hashes(bytes: &[u8]) -> Result<impl Iterator<Item = u64>> {
    if bytes.len() % HASH_BYTES != 0 {
        return Err(usage_error(format!(
            "hashes have {HASH_BYTES} bytes each, which {} are no multiple of",
            bytes.len()
        )));
    }
    let pieces = bytes.chunks_exact(HASH_BYTES);
    Ok(pieces.map(|hash| u64::from_le_bytes(hash.try_into().unwrap_or_default())))
}

/// Hashes in 256 parts: equal ones are in the same part.
#[pyfunction]
#[pyo3(signature = (hashes_, /))]
pub fn hashes_by_part<'py>(py: Python<'py>, hashes_: Data<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let hashes = hashes(&hashes_).or_raise(py)?;
    let mut parts = vec![Vec::new(); PARTS];
    py.detach(|| {
        for hash in hashes {
            parts[(hash >> 56) as usize].extend_from_slice(&hash.to_le_bytes());
        }
    });
    Ok(parts.iter().map(|part| PyBytes::new(py, part)).collect())
}

/// Whether no two hashes are equal.
#[pyfunction]
#[pyo3(signature = (hashes_, /))]
pub fn hashes_are_distinct<'py>(py: Python<'py>, hashes_: Data<'py>) -> PyResult<bool> {
    let hashes = hashes(&hashes_).or_raise(py)?;
    Ok(py.detach(|| {
        let mut sorted: Vec<u64> = hashes.collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    }))
}
