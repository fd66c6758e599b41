# SPDX-License-Identifier: Apache-2.0
"""Front ends: models of other formats become PyTorch modules."""
