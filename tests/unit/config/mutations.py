"""Configuration files spoilt in every way, reproducibly: what nobody writes on purpose, and what people do write.

Generic over the kind of input: a `Kind` has seeds (each one or several files) and a way to load them.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Seed = Mapping[str, bytes]
"""What one input is made of: files by name. The first is the one that is named to load it."""


@dataclass(frozen=True)
class Kind:
    """A kind of input. `load` is given the folder with the files of one seed, mutated, and raises ConfigurationError or
    nothing; `words` are names that mean something in it, and may come up anywhere."""

    name: str
    seeds: tuple[Seed, ...]
    load: Callable[[Path], object]
    words: tuple[str, ...] = ()


EXTREMES = (
    b"",
    b"-1",
    b"0",
    b"-9223372036854775809",
    b"9" * 5000,
    b"1e9",
    b"0x10",
    b"NaN",
    b"true",
    b"null",
    b"\x00",
    b"\xff\xfe",
    b"\xf0\x9f\x98\x80",
    b"\\u0000",
    b"\\ud800",
    b"\\u00",
    b"\\uzzzz",
    b"\\",
    b"${",
    b"${:}",
    b"${x:y}",
    b"${file:/dev/zero:x}",
    b"${file:/dev/stdin:x}",
    b"${file:.:x}",
    b"${file:a\\u0000b:x}",
    b"${file:/proc/self/mem:x}",
    b"${dir:/:etc}",
    b"${dir:/dev:zero}",
    b"${dir:..:..}",
    b"${env:" + b"A" * 3000 + b"}",
    b"${env:SEED}${env:SEED}",
    b"${" * 20_000,
    b"${a:" * 20_000,
    b"a," * 3000,
    b"A, A",
    b"A,,B",
    b"(" * 3000,
    b"(((((a)+)+)+)+)+$",
    b"(a|a)*b",
    b".*" * 40,
    b"[a-",
    b"[[a-z]&&[^b]]",
    b"\\\\p{L}+",
    b"\\\\Qa\\\\E",
    b"a{1000000}",
    b"(?<=a+)b",
    b"{[{[" * 500,
    b"&a [*a]",
    b"!!python/object:os.system x",
    b"halt, x=skip, =y",
    b"2026-13-45T99:99:99Z",
    b"0001-01-01T00:00:00+23:59",
    b"[::1]:9092",
    b"a:99999999999999999999999",
    b"a:" + b"9" * 5000,
    b"k8s://",
    b"x" * 200_000,
)
PREFIXES = ("", "A.", "B.", "A->B.", "B->A.", "A->X.", "A->B.producer.override.", "A.consumer.", "lockstep.")
SEPARATORS = re.compile(rb"[.\->=:, ]+")


def mutated(seed: Seed, words: tuple[str, ...], dice: random.Random) -> dict[str, bytes]:
    """The files of a seed after one to four mutations of one of them."""
    files = dict(seed)
    name = dice.choice(sorted(files))
    data = files[name]
    for _ in range(dice.choice((1, 1, 2, 4))):
        data = dice.choice(MUTATIONS)(data, words, dice)
    files[name] = data
    return files


def _bytes_changed(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        index = dice.randrange(len(changed) + 1)
        match dice.randrange(3):
            case 0:
                changed[index:index] = dice.randbytes(dice.randint(1, 4))
            case 1:
                del changed[index : index + dice.randint(1, 8)]
            case _:
                changed[index : index + 1] = dice.randbytes(1)
    return bytes(changed)


def _cut(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _lines_moved(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(dice.randint(1, 3)):
        index, other_index = dice.randrange(len(lines)), dice.randrange(len(lines))
        match dice.randrange(4):
            case 0:
                lines[index], lines[other_index] = lines[other_index], lines[index]
            case 1:
                lines.insert(other_index, lines[index])
            case 2:
                lines[index] = b"  " * dice.randint(1, 40) + lines[index]
            case _:
                del lines[index]
                lines = lines or [b""]
    return b"\n".join(lines)


def _value_replaced(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    """The value of one line, behind its first = or :."""
    lines = data.split(b"\n")
    stated = [index for index, line in enumerate(lines) if re.search(rb"[=:]", line)]
    if not stated:
        return data + dice.choice(EXTREMES)
    index = dice.choice(stated)
    mark = re.search(rb"[=:]", lines[index])
    assert mark is not None
    value = dice.choice((dice.choice(EXTREMES), dice.choice(words).encode() if words else b"x"))
    lines[index] = lines[index][: mark.end()] + b" " + value
    return b"\n".join(lines)


def _key_mangled(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    """A part of the first word of a line dropped, doubled, misspelt or exchanged for another known place."""
    lines = data.split(b"\n")
    index = dice.randrange(len(lines))
    key, blank, rest = lines[index].partition(b" ")
    parts = SEPARATORS.split(key)
    place = dice.randrange(len(parts))
    part = parts[place]
    match dice.randrange(4):
        case 0:
            new = part + b"." + part
        case 1:
            new = part[1:]
        case 2:
            new = part[:1] + part[2:3] + part[1:2] + part[3:]
        case _:
            new = dice.choice(words).encode() if words else b"x"
    lines[index] = key.replace(part, new, 1) + blank + rest
    return b"\n".join(lines)


def _line_of_words(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    """A line that nobody wrote, of what is known: any key behind any prefix with any value."""
    prefix = dice.choice(PREFIXES)
    word = dice.choice(words) if words else "x"
    value = dice.choice(EXTREMES)
    lines = data.split(b"\n")
    lines.insert(dice.randrange(len(lines) + 1), f"{prefix}{word} = ".encode() + value)
    return b"\n".join(lines)


def _repeated(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    begin = dice.randrange(len(data) + 1)
    piece = data[begin : begin + dice.randint(1, 60)]
    return data[:begin] + piece * dice.choice((2, 50, 2000)) + data[begin:]


def _references_everywhere(data: bytes, words: tuple[str, ...], dice: random.Random) -> bytes:
    index = dice.randrange(len(data) + 1)
    return data[:index] + dice.choice([value for value in EXTREMES if value.startswith(b"${")]) + data[index:]


MUTATIONS = (
    _bytes_changed,
    _cut,
    _lines_moved,
    _value_replaced,
    _value_replaced,
    _key_mangled,
    _key_mangled,
    _line_of_words,
    _line_of_words,
    _repeated,
    _references_everywhere,
)
