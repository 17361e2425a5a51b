"""Options that several commands share, so that they read alike everywhere."""

from typing import Annotated

import typer

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be written; write nothing.")
]
Diff = Annotated[bool, typer.Option("--diff", help="Show it as a diff; write nothing.")]
Json = Annotated[
    bool, typer.Option("--json", help="Report as JSON on standard output.")
]
Templates = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="A team's templates, which come before ours."),
]
