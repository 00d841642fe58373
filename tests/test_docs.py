"""The documentation names everything a user can type or set."""

import re
from pathlib import Path

import pytest
import typer

from core.engine.config import PlainConfig
from core.formats import writable
from plain_app.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
TOOLS = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands() -> list[tuple[str, str | None]]:
    group = typer.main.get_command(app)
    found = []
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            found += [(f"plain {name} {sub}", one.help) for sub, one in command.commands.items()]
        else:
            found.append((f"plain {name}", command.help))
    return found


@pytest.mark.parametrize(("command", "help_text"), commands())
def test_every_command_has_help_and_is_in_the_guide(command, help_text):
    assert help_text
    assert command in GUIDE


@pytest.mark.parametrize("name", PlainConfig.model_fields)
def test_every_setting_is_in_the_guide(name):
    assert f"`{name}`" in GUIDE


@pytest.mark.parametrize(("name", "ending"), writable().items())
def test_every_format_is_on_the_page_of_tools(name, ending):
    written = rf"--format {name}\b" + (rf"|\bclean{re.escape(ending)}\b" if ending else "")
    assert re.search(written, TOOLS)


@pytest.mark.parametrize("command", ["make app", "make test"])
def test_the_two_commands_are_in_the_readme(command):
    assert command in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_program_that_are_named_are_there(page):
    named = r"`((?:core|plain_app|tests|docs)/[\w./-]+\.\w+)`"
    for path in re.findall(named, page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), path


def test_every_attack_of_the_hammer_has_a_line_in_its_table():
    table = (ROOT / "docs" / "hammer.md").read_text(encoding="utf-8")
    attacks = [path.stem for path in (ROOT / "tests" / "hammer").glob("test_*.py")]
    assert [name for name in attacks if f"`{name}`" not in table] == []
