# SPDX-License-Identifier: Apache-2.0
"""Lines of made-up forms of hospitals, insurers and banks, drawn with the font that Pillow brings."""

from __future__ import annotations

import torch

from ..packages import NotInstalled

HEIGHT, WIDTH, MARGIN, SIZE = 48, 192, 6, 36
PAPER, INK, BESIDE = 255, 0, 128  # grey levels; the package fills the space beside a line with the middle one

LINES = (
    "Diagnosis", "Amount due", "Account 4711", "Confidential", "Signature", "Date of birth", "Insured", "Invoice",
    "Blood type", "Room 214", "Patient", "Policy 1204", "Next visit", "Allergy", "Tax ID 9012", "Paid in full",
    "Ward 7", "Claim 88-310", "12.05.1962", "EUR 940.50",
)  # fmt: skip
CALIBRATION = (
    "Discharge", "Balance", "Receipt 560", "Next of kin", "Employer", "03.11.1987", "Statement", "Dosage 40 mg",
    "Referral", "Bed 12-A", "Surname", "USD 1,275.00", "Transfer", "Pulse 72", "Street 14", "Nurse",
)  # fmt: skip


def drawn(lines: tuple[str, ...]) -> torch.Tensor:
    """uint8 [n, 48, 192]: dark letters on light paper, squeezed where a line is too long."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise NotInstalled("lines of text are drawn by Pillow: pip install pillow") from None
    font = ImageFont.load_default(SIZE)
    pictures = torch.full((len(lines), HEIGHT, WIDTH), BESIDE, dtype=torch.uint8)
    for picture, line in zip(pictures, lines, strict=True):
        left, top, right, bottom = font.getbbox(line)
        image = Image.new("L", (int(right - left) + 2 * MARGIN, HEIGHT), PAPER)
        ImageDraw.Draw(image).text((MARGIN - left, (HEIGHT - top - bottom) / 2), line, INK, font)
        width = min(image.width, WIDTH)
        grey = image.resize((width, HEIGHT)).tobytes()
        picture[:, :width] = torch.frombuffer(bytearray(grey), dtype=torch.uint8).reshape(HEIGHT, width)
    return pictures
