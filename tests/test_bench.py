"""Scripts of ``bench/`` can be started from anywhere, and their help is what they say of themselves."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "bench"
STARTED = """
import contextlib, io, json, pathlib, runpy, sys
helps = {}
for name in sys.argv[1:]:
    sys.argv, said = [name, "--help"], io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        sys.path.insert(0, str(pathlib.Path(name).parent))
        runpy.run_path(name, run_name="__main__")
    helps[name] = said.getvalue()
print(json.dumps(helps))
"""


def test_every_script_shows_its_text_line_by_line(tmp_path: Path) -> None:
    texts = {f"{path}": path.read_text(encoding="utf-8") for path in sorted(SCRIPTS.glob("*.py"))}
    scripts = {
        name: text for name, text in texts.items() if re.search(r"(parser_of|command_line)\(__doc__\)", text)
    }
    assert len(scripts) > 20
    command = [sys.executable, "-c", STARTED, *scripts]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name, said in json.loads(done.stdout).items():
        own = ast.get_docstring(ast.parse(scripts[name]), clean=False)
        assert own is not None
        assert own.strip() in said, name


def test_no_script_makes_such_a_parser_itself() -> None:
    makers = [path.name for path in SCRIPTS.glob("*.py") if "RawDescription" in path.read_text()]
    assert makers == ["command_line.py"]
