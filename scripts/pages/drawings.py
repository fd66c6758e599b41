# SPDX-License-Identifier: Apache-2.0
"""The drawings of the concepts and of the deployment guide."""

from __future__ import annotations

from pages.svg import Picture


def _party(p: Picture, left: float, who: str, owns: str, holds: str, kind: str) -> None:
    p.headed_box(left, 80, 90, 84, kind)
    p.text(left + 45, 108, who, "ink bold", "middle")
    p.text(left + 45, 128, owns, "soft", "middle")
    p.text(left + 45, 150, holds, "ink mono", "middle")


def engines() -> Picture:
    """Who is there, and what each of them holds."""
    p = Picture(760, 330, "The parties of each engine and what they hold")
    columns = (
        (20, "twopc", "semi-honest"),
        (275, "active", "one may deviate"),
        (530, "threepc", "semi-honest, a dealer"),
    )
    for x, name, threat in columns:
        p.text(x + 105, 30, name, "ink large mono", "middle")
        p.text(x + 105, 50, threat, "soft small", "middle")
    for x, lines in ((20, ("shares of x", "x = x0 + x1")), (275, ("shares and MACs", "of x under a key"))):
        for i, (who, owns, kind) in enumerate((("party 0", "weights", "a"), ("party 1", "input", "b"))):
            left = x + i * 120
            _party(p, left, who, owns, f"x{i}" if x == 20 else f"x{i}, m{i}", kind)
        p.arrow(x + 90, 122, x + 120, 122, both=True)
        for i, line in enumerate(lines):
            p.text(x + 105, 200 + 18 * i, line, "soft", "middle")
    for left, who, owns, holds, kind in (
        (530, "party 0", "weights", "m, r0", "a"),
        (650, "party 1", "input", "m, r1", "b"),
    ):
        _party(p, left, who, owns, holds, kind)
    p.arrow(620, 122, 650, 122, both=True)
    p.headed_box(580, 220, 110, 64, "c")
    p.text(635, 246, "party 2", "ink bold", "middle")
    p.text(635, 268, "dealer: r", "ink mono", "middle")
    p.arrow(610, 220, 578, 164)
    p.arrow(660, 220, 692, 164)
    p.text(635, 306, "x = m - r, r = r0 + r1", "soft", "middle")
    p.text(20, 306, "One share alone is uniformly random: it says nothing of x.", "soft")
    return p


def placements() -> Picture:
    """How a value changes its placement."""
    p = Picture(760, 216, "Placements: public, owned by a party, shared")
    boxes = (
        (20, "public", ("a torch.Tensor", "every party knows it"), "line"),
        (285, "Owned(p)", ("a SecretTensor", "party p knows it"), "b"),
        (550, "Shared()", ("a SecretTensor", "nobody knows it"), "a"),
    )
    for x, name, lines, kind in boxes:
        p.headed_box(x, 62, 190, 86, kind)
        p.text(x + 95, 92, name, "ink bold mono", "middle")
        for i, line in enumerate(lines):
            p.text(x + 95, 114 + 18 * i, line, "soft", "middle")
    p.arrow(210, 92, 285, 92)
    p.text(247, 84, "share", "soft small mono", "middle")
    p.arrow(475, 92, 550, 92)
    p.text(512, 84, "meets", "soft small", "middle")
    p.text(512, 110, "another's", "soft small", "middle")
    p.line(645, 148, 645, 186, "soft")
    p.line(645, 186, 115, 186, "soft")
    p.arrow(115, 186, 115, 148)
    p.text(380, 180, "reveal, to all or to one party", "soft small mono", "middle")
    p.text(
        20, 34, "What is computed from one party's own values stays with it, in clear; anything else is shared.", "soft"
    )
    return p


def formats() -> Picture:
    """The bits of a fixed-point and of a floating-point word."""
    p = Picture(760, 300, "Bits of a fixed-point number and of a floating-point word")
    p.text(20, 32, "FixedPoint(bits=32, scale=12): v / 2^12", "ink bold mono")
    cell, left = 22, 28
    for i in range(32):
        kind = "d" if i == 0 else "a" if i < 20 else "b"
        p.box(left + i * cell, 48, cell - 3, 26, kind, kind, 2)
    p.text(left, 94, "sign", "soft small")
    p.text(left + 10.5 * cell, 94, "19 bits before the point: -524288 to 524287.9998", "soft small", "middle")
    p.text(left + 26 * cell, 94, "12 bits behind it: steps of 1/4096", "soft small", "middle")
    p.text(20, 122, "Nothing marks an overflow: 524288 wraps around to -524288.", "soft")
    p.text(20, 170, "Float(exponent=8, mantissa=23): a word of 36 bits", "ink bold mono")
    left, cell = 28, 19.5
    for i in range(36):
        kind = "line" if i == 0 else "d" if i == 1 else "c" if i < 12 else "b"
        p.box(left + i * cell, 186, cell - 3, 26, kind, kind, 2)
    p.text(left, 232, "not 0, sign", "soft small")
    p.text(left + 7 * cell, 232, "exponent, 10 bits", "soft small", "middle")
    p.text(left + 24 * cell, 232, "mantissa with its leading one, 24 bits", "soft small", "middle")
    p.text(20, 262, "Exponent and mantissa are shared by addition, the two bits by exclusive or.", "soft")
    p.text(20, 282, "No NaN, no denormal numbers; infinity is the number 2^128.", "soft")
    return p


def phases() -> Picture:
    """What happens when, on a time axis."""
    p = Picture(760, 250, "Phases of a session: setup, preprocess, online")
    blocks = (
        (20, 130, "setup", "soft", ("handshake, keys,", "base transfers"), "once per session"),
        (
            160,
            250,
            "preprocess",
            "c",
            ("correlations: random,", "from shapes alone"),
            "ahead of a query, or in a store",
        ),
        (
            420,
            320,
            "online",
            "a",
            ("inputs are shared, layers computed,", "outputs revealed"),
            "when the input is there",
        ),
    )
    for x, w, name, kind, lines, when in blocks:
        p.headed_box(x, 60, w, 96, kind)
        p.text(x + w / 2, 90, name, "ink bold mono", "middle")
        for i, line in enumerate(lines):
            p.text(x + w / 2, 114 + 18 * i, line, "soft", "middle")
        p.text(x + w / 2, 178, when, "soft small", "middle")
    p.arrow(20, 202, 740, 202)
    p.text(740, 222, "time", "soft small", "end")
    p.text(20, 34, "Bytes, depth and seconds are counted per phase and per layer.", "soft")
    p.text(20, 234, "depends on: nothing", "soft small")
    p.text(160, 234, "depends on: the program and the shapes", "soft small")
    p.text(420, 234, "depends on: the values", "soft small")
    return p


def deployment() -> Picture:
    """Two organisations, and the third one where there is a dealer."""
    p = Picture(760, 380, "Two organisations and a dealer, their files and the ports between them")
    homes = (
        (20, 40, "hospital-a: server, party 0", "a",
         ("program", "weights.safetensors", "store/, store.key", "hospital-a.pem, .key")),
        (500, 40, "lab-b: client, party 1", "b",
         ("program", "inputs", "store/, store.key", "lab-b.pem, .key")),
    )  # fmt: skip
    for x, y, name, kind, files in homes:
        p.headed_box(x, y, 240, 150, kind)
        p.text(x + 16, y + 32, name, "ink bold")
        p.lines(x + 16, y + 60, files, "soft mono", 21)
    p.arrow(500, 100, 260, 100)
    p.text(380, 90, "TLS 1.3, mutual", "ink small", "middle")
    p.text(380, 120, "to hospital-a:9000", "soft small mono", "middle")
    p.text(380, 138, "one connection per lane", "soft small", "middle")
    p.headed_box(260, 260, 240, 90, "c")
    p.text(276, 290, "dealer-c: dealer, party 2", "ink bold")
    p.lines(276, 314, ("program, no weights", "dealer-c.pem, .key"), "soft mono", 21)
    p.arrow(140, 190, 300, 260)
    p.arrow(620, 190, 460, 260)
    p.text(150, 236, "to dealer-c:9002", "soft small mono", "middle")
    p.text(610, 236, "to dealer-c:9002", "soft small mono", "middle")
    p.text(20, 24, "Arrows point from who dials to who listens: only those ports must be open.", "soft")
    p.text(20, 368, "authority.pem lies at all of them; authority.key at the issuer alone.", "soft")
    return p


def pages() -> dict[str, str]:
    made = {
        "engines": engines,
        "placements": placements,
        "formats": formats,
        "phases": phases,
        "deployment": deployment,
    }
    return {f"assets/{name}.svg": str(draw()) for name, draw in made.items()}
