# SPDX-License-Identifier: Apache-2.0
"""The generated pages of the documentation: each module offers ``pages()``, file name to text (see ``hook``)."""
