"""`appliance schema`"""

import json

import click

from appliance.documents import DOCUMENTS


@click.command()
@click.argument("kind", type=click.Choice(list(DOCUMENTS)), required=False)
def command(kind: str | None) -> None:
    """Print the JSON Schema of document KIND, or of all documents by name."""
    schemas = {name: document.model_json_schema() for name, document in DOCUMENTS.items()}
    click.echo(json.dumps(schemas[kind] if kind else schemas, indent=2))
