"""How much memory and processor time a container has used, as its own cgroup tells."""

from dataclasses import dataclass

from tests.kube.kubernetes import Namespace

MEBIBYTE = 1 << 20
_ASK = """
old="memory/memory.usage_in_bytes memory/memory.stat cpuacct/cpuacct.usage"
for file in $old memory.current memory.stat cpu.stat; do
  [ -e /sys/fs/cgroup/$file ] && echo "# ${file##*/}" && cat /sys/fs/cgroup/$file
done
true
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory in bytes. `working`: what kubelet counts against the limit, so without file pages that can
    go at once. `own`: the processes' own, without any file pages. `processor_s`: since the container began."""

    working: int
    own: int
    processor_s: float

    def __str__(self) -> str:
        return f"{self.working / MEBIBYTE:.0f} MiB ({self.own / MEBIBYTE:.0f} of its processes alone)"


def read_usage(text: str) -> Usage:
    """Return what the files of a cgroup say, of either version, each after a line `# NAME`."""
    files = {name.strip(): body for name, _, body in (part.partition("\n") for part in text.split("# ")[1:])}
    memory = _pairs(files["memory.stat"])
    if "memory.current" in files:
        microseconds = _pairs(files["cpu.stat"])["usage_usec"]
        working = int(files["memory.current"]) - memory["inactive_file"]
        return Usage(working, memory["anon"], microseconds / 1e6)
    working = int(files["memory.usage_in_bytes"]) - memory["total_inactive_file"]
    return Usage(working, memory["total_rss"], int(files["cpuacct.usage"]) / 1e9)


def usage_of(namespace: Namespace, pod: str) -> Usage:
    """Return what the first container of a pod uses."""
    return read_usage(namespace.kubectl("exec", pod, "--", "sh", "-c", _ASK))


def _pairs(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}
