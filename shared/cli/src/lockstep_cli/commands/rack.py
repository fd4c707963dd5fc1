"""`lockstep rack`: the rack of the Kubernetes node that a pod runs on, for `client.rack` (KIP-392)."""

import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import click

from lockstep_cli.command_group import CliCommand
from lockstep_ops.exit_codes import CannotUse, Exit

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which a pod finds its token and the API server's certificate."""

WITHIN_S = 20.0


EXIT_CODES = """\b
Exit codes:
  0  the file is written
  1  the API server does not say it, or the file cannot be written; the line says why
  2  the arguments cannot be used, or this is no pod"""


@click.command(cls=CliCommand, name="rack", short_help="In a pod: write down the rack of its node.", epilog=EXIT_CODES)
@click.option("--topology-key", required=True, help="The label of nodes that names their rack.")
@click.option("--node", required=True, envvar="NODE_NAME", show_envvar=True, help="The node that the pod runs on.")
@click.option("--to", required=True, type=click.Path(path_type=Path), help="The file to write: one line, rack=RACK.")
def command(topology_key: str, node: str, to: Path) -> None:
    """Ask the API server of this pod's Kubernetes cluster for a label of a node, and write it to a file for
    ${file:FILE:rack}. It needs a service account that may get nodes, and nothing else.

    \b
      lockstep rack --topology-key topology.kubernetes.io/zone --node "$NODE_NAME" --to /run/lockstep/rack.properties
    """
    try:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    except KeyError:
        click.echo("lockstep rack runs in a pod: KUBERNETES_SERVICE_HOST is not set here", err=True)
        raise SystemExit(int(Exit.USAGE)) from None
    host = f"[{host}]" if ":" in host else host
    try:
        rack = read_rack(f"https://{host}:{port}", node, topology_key, ACCOUNT)
        to.write_text(f"rack={rack}\n", encoding="ascii")
    except (CannotUse, OSError) as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(int(Exit.TROUBLE)) from None
    click.echo(f"node {node} is in rack {rack} ({topology_key})")


def read_rack(server: str, node: str, topology_key: str, account: Path) -> str:
    """Return the value of a node's label.

    Raises:
        CannotUse: The node or the label does not exist, or the pod may not ask. The message is a sentence.
        OSError: The server does not answer.
    """
    context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    token = (account / "token").read_text(encoding="ascii").strip()
    request = urllib.request.Request(  # noqa: S310  # https, of the pod's own cluster
        f"{server}/api/v1/nodes/{quote(node, safe='')}", headers={"Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=WITHIN_S, context=context) as answer:  # noqa: S310  # as above
            labels = json.load(answer)["metadata"].get("labels", {})
    except urllib.error.HTTPError as exc:
        exc.close()
        reason = "the pod's service account may not get nodes" if exc.code in (401, 403) else f"{exc.code} {exc.reason}"
        raise CannotUse(f"node {node} cannot be asked for: {reason}") from exc
    rack = str(labels.get(topology_key, ""))
    if not rack:
        raise CannotUse(f"node {node} has no label {topology_key}: label the nodes, or name a label that they have")
    if not all(char.isascii() and (char.isalnum() or char in "-_.") for char in rack):
        raise CannotUse(f"node {node} has the label {topology_key}={rack!r}, which is no label's value")
    return rack
