"""The codec in pure Python, all of it under the names of `patchlog.codec.faces`."""

from patchlog.codec.canonical import CanonicalPatchEncoder
from patchlog.codec.patch_decoder import PatchDecoder
from patchlog.codec.patch_encoder import PatchEncoder
from patchlog.codec.rdf_decoder import RdfDecoder
from patchlog.codec.rdf_encoder import RdfEncoder
from patchlog.pure.arrow_decoder import ArrowDecoder
from patchlog.pure.arrow_encoder import ArrowEncoder
from patchlog.pure.converter import Converter
from patchlog.pure.dataset_encoder import DatasetEncoder
from patchlog.pure.hashes import hashes_are_distinct, hashes_by_part
from patchlog.pure.known_quads import KnownQuads
from patchlog.pure.patch_intake import PatchIntake, WholeIntake
from patchlog.text.nquads import NQuadsReader
from patchlog.text.rdf_patch_reader import RdfPatchReader
from patchlog.text.rdf_patch_writer import RdfPatchWriter

__all__ = [
    "ArrowDecoder",
    "ArrowEncoder",
    "CanonicalPatchEncoder",
    "Converter",
    "DatasetEncoder",
    "KnownQuads",
    "NQuadsReader",
    "PatchDecoder",
    "PatchEncoder",
    "PatchIntake",
    "RdfDecoder",
    "RdfEncoder",
    "RdfPatchReader",
    "RdfPatchWriter",
    "WholeIntake",
    "hashes_are_distinct",
    "hashes_by_part",
]
