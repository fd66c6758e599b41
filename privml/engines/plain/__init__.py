# SPDX-License-Identifier: Apache-2.0
"""Computing in the clear, as the secure engines would."""
