"""Reports of campaigns: data first, then views of it without logic. Reads the memory, writes nothing to it."""

from kernelwright.report.build import build_overview, build_report
from kernelwright.report.models import Overview, Report
from kernelwright.report.views import as_html, as_json, as_markdown

__all__ = ["Overview", "Report", "as_html", "as_json", "as_markdown", "build_overview", "build_report"]
