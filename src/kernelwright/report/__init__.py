"""Reports of campaigns: data first, then views of it without logic. Reads the memory, writes nothing to it."""

from kernelwright.report.bottleneck import bottleneck
from kernelwright.report.build import build_report
from kernelwright.report.models import Overview, Report
from kernelwright.report.overview import overview
from kernelwright.report.records import Records
from kernelwright.report.text import visible
from kernelwright.report.views import as_html, as_json, as_markdown, chart

__all__ = [
    "Overview",
    "Records",
    "Report",
    "as_html",
    "as_json",
    "as_markdown",
    "bottleneck",
    "build_report",
    "chart",
    "overview",
    "visible",
]
