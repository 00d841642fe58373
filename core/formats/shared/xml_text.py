"""XML from and for other programs: entities are refused, names that XML cannot hold as well."""

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import quoteattr

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from core.errors import ExportError
from core.formats.shared.findings import refuse

UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def load_xml(path: Path) -> Any:
    """Return the root element of a file; refuse entities (they can grow without end)."""
    return parse_xml(path.read_bytes(), path.name)


def parse_xml(content: bytes, name: str) -> Any:
    """Return the root element of a file's content."""
    try:
        return defusedxml.ElementTree.fromstring(content)
    except DefusedXmlException as error:
        refuse("XML with entities is refused", "Write plain XML.", column=name, value=error)
    except (ParseError, ValueError, LookupError) as error:
        refuse(f"{name} must be XML: {error}", "Write it again.")


def attributes_named(root: Any, tag: str, attribute: str) -> list[str | None]:
    """Return this attribute of every element of that tag, whatever its namespace and depth."""
    tags = (e for e in root.iter() if isinstance(e.tag, str))
    return [e.get(attribute) for e in tags if e.tag.rpartition("}")[2] == tag]


def quoted_attribute(text: str) -> str:
    """Return a name as XML writes it; refuse control characters, which it cannot."""
    if UNFIT.search(text):
        hint = "Rename it, or choose another format."
        raise ExportError("XML cannot hold control characters.", repr(text), hint)
    return quoteattr(text)
