"""Views of a report: HTML, Markdown and JSON. They format and arrange; what is said is decided by the data."""

from kernelwright.report.views.html import as_html
from kernelwright.report.views.markdown import as_markdown
from kernelwright.report.views.plain import as_json
from kernelwright.report.views.terminal import chart

__all__ = ["as_html", "as_json", "as_markdown", "chart"]
