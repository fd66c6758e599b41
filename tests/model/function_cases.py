# SPDX-License-Identifier: Apache-2.0
"""The operator cases of functions that are approximated in fixed point: rows of the list in ``op_cases``."""

import torch
from op_cases import CASES, case, real

__all__ = ["CASES"]

X = real(3, 4)

# ---- exponentials
NEGATIVE = torch.cat([-real(9).abs(), torch.tensor([0.0, -10.0, -30.0, -20000.0])])
case("exp", torch.exp, X, ulp=60)
case("exp_negative", torch.exp, NEGATIVE, ulp=4)
case("exp2", torch.exp2, X, ulp=24)
case("expm1", torch.expm1, X, ulp=60)
case("power_of_number", lambda x: 0.5**x, X, ulp=24)
case("exp_product", lambda x, y: torch.exp(x) * y, -real(5).abs(), real(5), ulp=16)

# ---- trigonometry
case("sin", torch.sin, X * 4, ulp=2)
case("cos", torch.cos, X * 40, ulp=2)
case("rotation", lambda x, y: torch.cos(x) * y + torch.sin(x) * y, real(5), real(5), ulp=8)
