"""How much memory a container has, as its own cgroup tells."""

from dataclasses import dataclass

from tests.kube.kubernetes import Namespace

__all__ = ["Memory", "memory_of", "read_memory"]

MEBIBYTE = 1 << 20
_ASK = """
for folder in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  for file in memory.usage_in_bytes memory.max_usage_in_bytes memory.current memory.peak memory.stat; do
    [ -e $folder/$file ] && echo "# $file" && cat $folder/$file
  done
done
true
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. `working`: what kubelet counts against the limit, all but file pages that can be dropped at once. `own`:
    the processes' own, without file pages."""

    working: int
    own: int

    def __str__(self) -> str:
        return f"{self.working / MEBIBYTE:.0f} MiB ({self.own / MEBIBYTE:.0f} of its processes alone)"


def read_memory(text: str) -> Memory:
    """What the files of a memory cgroup say, of either version, each after a line `# NAME`."""
    files = {name.strip(): body for name, _, body in (part.partition("\n") for part in text.split("# ")[1:])}
    stat = {key: int(value) for key, value in (line.split() for line in files["memory.stat"].splitlines())}
    usage = int(files["memory.current"] if "memory.current" in files else files["memory.usage_in_bytes"])
    dropped = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    return Memory(usage - dropped, stat.get("total_rss", stat.get("anon", 0)))


def memory_of(namespace: Namespace, pod: str) -> Memory:
    """Of the first container of a pod."""
    return read_memory(namespace.kubectl("exec", pod, "--", "sh", "-c", _ASK))
