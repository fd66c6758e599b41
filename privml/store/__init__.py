# SPDX-License-Identifier: Apache-2.0
"""Correlations of preprocessing on disk: made once, used once, sealed while they lie there."""
