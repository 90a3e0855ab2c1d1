"""An example of each command, for the end of its help. A test reads them all as the commands would."""

from __future__ import annotations

from typing import Final

import click

__all__ = ["EXAMPLES", "show_examples"]

EXAMPLES: Final = {
    "apply": "patchlog apply --source http://localhost:8080 --log people --warehouse tables",
    "completions": "source <(patchlog completions bash)",
    "demo": "patchlog demo --serve",
    "diff": "patchlog diff people --from 1 --until 5",
    "follow": "patchlog follow http://localhost:8080/logs/people --into http://localhost:3030/ds/update",
    "import-rdf-delta": "patchlog import-rdf-delta http://localhost:1066/ --database sqlite:///patchlog.db",
    "key create": "patchlog key create --scope log:people:read --name 'a follower' --days 365",
    "key list": "patchlog key list",
    "key revoke": "patchlog key revoke 3f9a60c1b2d4e5f6",
    "log blame": "patchlog log blame people --subject http://example.org/ada",
    "log create": "patchlog log create people",
    "log delete": "patchlog log delete people --yes",
    "log list": "patchlog log list --url http://localhost:8080",
    "log show": "patchlog log show http://localhost:8080/logs/people",
    "log truncate": "patchlog log truncate people --before 1000 --yes",
    "log verify": "patchlog log verify people",
    "migrate": "patchlog migrate --database postgresql+psycopg://patchlog@db.example.org/patchlog",
    "outbox deliver": "patchlog outbox deliver --log http://localhost:8080/logs/people",
    "outbox drop": "patchlog outbox drop 1c7ed2b4-5a3f-4a5e-8d0e-0c8f6a1b2d3e",
    "outbox list": "patchlog outbox list --json",
    "outbox show": "patchlog outbox show 1c7ed2b4-5a3f-4a5e-8d0e-0c8f6a1b2d3e",
    "patch apply": "patchlog patch apply change.jellyp monday.nq --to tuesday.nq",
    "patch diff": "patchlog patch diff monday.nq tuesday.nq --to change.jellyp",
    "patch from-jelly": "patchlog patch from-jelly change.jellyp --to change.rdfp",
    "patch inspect": "patchlog patch inspect change.jellyp",
    "patch invert": "patchlog patch invert change.jellyp --dataset monday.nq --to back.jellyp",
    "patch squash": "patchlog patch squash monday.jellyp tuesday.jellyp --to both.jellyp",
    "patch to-jelly": "patchlog patch to-jelly change.rdfp --to change.jellyp",
    "patch transcode": "patchlog patch transcode change.jellyp --stream-type flat --to flat.jellyp",
    "patch validate": "patchlog patch validate change.jellyp",
    "pull": "patchlog pull http://localhost:8080/logs/people --after 100 --to people.jellyp",
    "push": "patchlog push change.rdfp --log people --url http://localhost:8080",
    "rdf from-jelly": "patchlog rdf from-jelly people.jelly --to people.nq",
    "rdf inspect": "patchlog rdf inspect people.jelly",
    "rdf to-jelly": "patchlog rdf to-jelly people.ttl --to people.jelly",
    "rdf transcode": "patchlog rdf transcode a.jelly b.jelly --to both.jelly",
    "rdf validate": "patchlog rdf validate people.jelly --compare-to-rdf-file people.nq",
    "revert": "patchlog revert people --version 4 --header who=ada",
    "serve": "patchlog serve --database sqlite:///patchlog.db --port 8080",
    "snapshot build": "patchlog snapshot build people",
    "snapshot get": "patchlog snapshot get people --to people.nq",
    "snapshot list": "patchlog snapshot list people",
    "snapshot put": "patchlog snapshot put people.nq people",
    "tail": "patchlog tail http://localhost:8080/logs/people --after 0",
    "version": "patchlog version --database sqlite:///patchlog.db",
}


def show_examples(command: click.Command, *names: str) -> None:
    """Give each command below this one its example."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            show_examples(child, *names, name)
    elif example := EXAMPLES.get(" ".join(names)):
        shown = f"\b\nExample:\n  {example}"  # \b has click leave the lines as they are
        command.epilog = f"{command.epilog}\n\n{shown}" if command.epilog else shown
