# SPDX-License-Identifier: Apache-2.0
"""What ``scripts/make_pages.py`` writes of the documentation: each module offers ``pages()``, file name to text."""
