"""``doctor``: is this machine fit, and what to do where it is not."""

import json
from dataclasses import asdict

import typer
from rich.text import Text

from kernelwright.cli.options import DeviceOption, JsonOption, pick_device
from kernelwright.cli.plain import PlainConsole
from kernelwright.harness.doctor import diagnose


def doctor(device: DeviceOption = "auto", as_json: JsonOption = False) -> int:
    """Toolchain, driver, counters and sandbox, each with the mend. Exit code 1 when something needed is missing."""
    name = pick_device(device)
    findings = diagnose(name)
    bad = any(not finding.ok and finding.required for finding in findings)
    if as_json:
        typer.echo(json.dumps({"device": name, "findings": [asdict(finding) for finding in findings]}))
        return int(bad)
    console = PlainConsole()
    console.print(f"device {name}", style="bold")
    for finding in findings:
        mark = (
            ("ok  ", "green") if finding.ok else ("FAIL", "red") if finding.required else ("warn", "yellow")
        )
        console.print(Text.assemble(mark, f"  {finding.name}: {finding.detail}"))
        if not finding.ok and finding.mend:
            console.print(Text(f"      {finding.mend}", style="dim"))
    return int(bad)
