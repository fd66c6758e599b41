// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a large matrix, which is read once for each row and as it lies: reading
// it is the work, and packing it would double that.
#pragma once

#include "linear/packing.h"

namespace privml::linear {

// Whether `add_few_rows` takes these factors: a has few rows, and the elements of b's rows, or
// those of its columns, follow each other.
bool are_few_rows(const IndexedMatrix& a, const IndexedMatrix& b);

// As `add_product`, on one thread; no dimension is 0.
void add_few_rows(const IndexedMatrix& a, const IndexedMatrix& b, int bits,
                  const IndexedOutput& out);

}  // namespace privml::linear
