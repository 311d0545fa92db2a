"""Pictures of what happened: a page for people, Mermaid for a CI job's summary.

Pure: data in, text out. The page is one file that needs nothing else; open it from a disk, attach
it to a ticket. JSON is `evidence_json`'s; text for a terminal is `timeline`'s.
"""

from __future__ import annotations

from .item import Item
from .mermaid import job_summary, leases_chart, sequence
from .page import html_page

__all__ = ["Item", "html_page", "job_summary", "leases_chart", "sequence"]
