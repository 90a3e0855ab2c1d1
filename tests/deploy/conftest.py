"""What Helm does with a chart, as far as ours asks for it: the part of Go's templates that its files are written in."""

import json
import re
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
ACTION = re.compile(r"(?P<before>\{\{-\s*|\{\{\s*)(?P<code>.*?)(?P<after>\s*-\}\}|\s*\}\})", re.DOTALL)
WORD = re.compile(r'"[^"]*"|[()|]|[^\s()|"]+')


class Refused(Exception):
    """The chart has called `fail`."""


class Chart:
    """The templates of a chart, and what they are filled with."""

    def __init__(self, folder, values):
        self._files = sorted((folder / "templates").iterdir())
        about = yaml.safe_load((folder / "Chart.yaml").read_text())
        self._data = {
            "Values": merged(yaml.safe_load((folder / "values.yaml").read_text()), values),
            "Chart": {"Name": about["name"], "AppVersion": about["appVersion"]},
            "Release": {"Name": "demo", "Service": "Helm"},
        }
        self._named = {}

    def documents(self):
        texts = [self._rendered(file.read_text()) for file in self._files]
        return [document for text in texts for document in yaml.safe_load_all(text) if document]

    def _rendered(self, text):
        parts = self._parts(text)
        rendered = self._run(parts, self._data)
        assert not parts, "an `end` too many"
        return rendered

    def _parts(self, text):
        parts, end = [], 0
        for action in ACTION.finditer(text):
            before = text[end : action.start()]
            if parts and parts[-1][2]:
                before = before.lstrip()
            parts.append(("text", before.rstrip() if action["before"].startswith("{{-") else before, False))
            parts.append(("code", action["code"], action["after"].endswith("-}}")))
            end = action.end()
        last = text[end:]
        return [*parts, ("text", last.lstrip() if parts and parts[-1][2] else last, False)]

    def _run(self, parts, scope, *, is_taken=True):
        """Fill in the parts up to an `end` or `else`, which is left in front."""
        output = []
        while parts:
            kind, content, _ = parts.pop(0)
            if kind == "text":
                output.append(content)
                continue
            word, _, rest = content.partition(" ")
            match word:
                case "end" | "else":
                    parts.insert(0, (kind, content, False))
                    break
                case "if":
                    is_true = is_taken and bool(self._value(rest, scope))
                    first = self._run(parts, scope, is_taken=is_true)
                    second = ""
                    if parts.pop(0)[1] == "else":
                        second = self._run(parts, scope, is_taken=is_taken and not is_true)
                        parts.pop(0)
                    output.append(first if is_true else second)
                case "range":
                    key, value, source = re.fullmatch(r"(\$\w+), (\$\w+) := (.*)", rest).groups()
                    items = sorted(self._value(source, scope).items())
                    body = parts[:]
                    self._run(parts, scope, is_taken=False)
                    parts.pop(0)
                    output += [self._run(body[:], scope | {key: one, value: other}) for one, other in items if is_taken]
                case "define":
                    self._named[json.loads(rest)] = parts[:]
                    self._run(parts, scope, is_taken=False)
                    parts.pop(0)
                case _ if is_taken:
                    output.append(str(self._value(content, scope)))
        return "".join(output) if is_taken else ""

    def _value(self, code, scope):
        words = WORD.findall(code)
        value = self._pipeline(words, scope)
        assert not words, f"not understood: {code}"
        return value

    def _pipeline(self, words, scope):
        value = self._call(words, scope)
        while words and words[0] == "|":
            words.pop(0)
            value = self._call(words, scope, value)
        return value

    def _call(self, words, scope, *piped):
        name = words.pop(0)
        if name == "(" or name[0] in '.$"' or name.isdigit():
            return self._atom(name, words, scope)
        arguments = []
        while words and words[0] not in ("|", ")"):
            arguments.append(self._atom(words.pop(0), words, scope))
        arguments += piped
        match name, arguments:
            case "include", [template, data]:
                return self._run(self._named[template][:], data)
            case "and", _:
                return all(arguments)
            case "not", [value]:
                return not value
            case "gt", [one, other]:
                return one > other
            case "int", [value]:
                return int(value)
            case "default", [other, value]:
                return value or other
            case "quote", [value]:
                return json.dumps(str(value))
            case "nindent", [width, text]:
                return "".join(f"\n{' ' * width}{line}" for line in text.splitlines())
            case "toYaml", [value]:
                return yaml.safe_dump(value).rstrip()
            case "fail", [reason]:
                raise Refused(reason)
        pytest.fail(f"the chart uses what is not known here: {name} {arguments}")

    def _atom(self, word, words, scope):
        if word == "(":
            value = self._pipeline(words, scope)
            assert words.pop(0) == ")"
            return value
        if word.startswith('"'):
            return json.loads(word)
        if word.startswith("$"):
            return scope[word]
        if word == ".":
            return scope
        if word.startswith("."):
            value = scope
            for name in word[1:].split("."):
                value = value[name]
            return value
        return int(word)


def merged(values, others):
    both = values | others
    return both | {
        name: merged(values[name], other)
        for name, other in others.items()
        if isinstance(other, dict) and isinstance(values.get(name), dict)
    }


@pytest.fixture(scope="session")
def rendered_chart():
    """The documents of the chart with some values, by their kinds."""

    def rendered(**values):
        documents = Chart(DEPLOY / "helm" / "patchlog", values).documents()
        return {document["kind"]: document for document in documents}

    return rendered


@pytest.fixture(scope="session")
def refused():
    return Refused
