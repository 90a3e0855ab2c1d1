"""Terms taken apart, for queries that ask for values: which kind, what text, of what datatype or language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as everybody has it
from pyspark.sql.pandas.functions import arrow_udf

from patchlog.model import XSD_STRING
from patchlog.text.terms import BlankNode, Iri, Literal, parse_term

__all__ = ["TERM_COLUMNS", "decoded"]

TERM_COLUMNS: Final = ("kind", "lexical", "datatype", "language")
_LANGUAGE_STRING: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
_STRUCT: Final = "kind STRING, lexical STRING, datatype STRING, language STRING"
_ARROW_STRUCT: Final = pa.struct([(name, pa.string()) for name in TERM_COLUMNS])


def decoded(frame: DataFrame, *columns: str) -> DataFrame:
    """Add to each column of terms, such as `object`, the columns `object_kind`, `_lexical`, `_datatype`, `_language`.

    A kind is `iri`, `blank node`, `literal`, `triple` or `default graph`. The lexical form is the text without quotes,
    brackets and escapes; of a quoted triple it is the term as it stands. What a term has not is null.
    """
    taken_apart = arrow_udf(_taken_apart, _STRUCT)  # type: ignore[call-overload]  # it warns of what its stubs ask for
    for column in columns:
        parts = f"{column}_parts"
        frame = frame.withColumn(parts, taken_apart(column))
        named = {f"{column}_{name}": F.col(f"{parts}.{name}") for name in TERM_COLUMNS}
        frame = frame.withColumns(named).drop(parts)
    return frame


def _taken_apart(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for terms in batches:
        yield pa.array([_parts(term) for term in terms.to_pylist()], _ARROW_STRUCT)


def _parts(term: str | None) -> dict[str, Any] | None:
    if term is None:
        return None
    if not term:
        return {"kind": "default graph"}
    match parse_term(term):
        case Iri(value):
            return {"kind": "iri", "lexical": value}
        case BlankNode(label):
            return {"kind": "blank node", "lexical": label}
        case Literal(lexical, language, datatype):
            implied = _LANGUAGE_STRING if language else XSD_STRING
            return {"kind": "literal", "lexical": lexical, "datatype": datatype or implied, "language": language}
        case _:
            return {"kind": "triple", "lexical": term}
