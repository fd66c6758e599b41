# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/gemm.py [--device cuda] [--size 4096]``: products mod 2^32 and 2^64 of square matrices.

One JSON line per width and unit: 10^9 products of words a second, the ratio to float64 limbs in the same run, and the
part of what the int8 unit could do at the rate of one plain int8 product of this run, each word taking 10 or 36.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch

from privml.engines import limb_products, ring


def seconds(device: str, call: Callable[[], object], repeats: int) -> float:
    """The best of ``repeats`` after one warm-up."""
    call()
    best = float("inf")
    for _ in range(repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    device, n = options.device, options.size

    def time_of(call: Callable[[], object]) -> float:
        return seconds(device, call, options.repeats)

    a, b = (torch.randint(-(2**63), 2**63 - 1, (n, n), device=device) for _ in range(2))
    small = a.to(torch.int8)
    plain = time_of(lambda: torch._int_mm(small, small.t()))
    print(json.dumps({"device": device, "size": n, "unit": "one int8 product", "gigaproducts": n**3 / plain / 1e9}))
    for bits in (32, 64):
        floats = time_of(lambda bits=bits: limb_products.matmul(a, b, bits, limb_products.FLOAT64))
        calls: dict[str, Callable[[], object]] = {
            "int8": lambda bits=bits: limb_products.matmul(a, b, bits, limb_products.INT8)
        }
        if device == "cpu":
            calls["core"] = lambda bits=bits: ring.matmul(a, b, bits)
        for name, call in calls.items():
            taken = time_of(call)
            pairs = (bits // 8) * (bits // 8 + 1) // 2
            record = {"device": device, "size": n, "bits": bits, "unit": name, "gigaproducts": n**3 / taken / 1e9}
            record["ratio_to_float64"] = floats / taken
            if name == "int8":
                record["of_int8_rate"] = plain * pairs / taken
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
