"""Label Studio: what people said there about tasks of ours, as decisions.

A task that states its candidates was written by this program. Who annotated it decided about every
candidate: chosen ones are kept, the others rejected; what was chosen beside them is kept too. What
was decided here before the tasks went out comes back as what it was.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from core.formats.shared.json_text import objects
from core.formats.shared.label_sets import DECIDED
from core.formats.shared.mapping import ReadDecision

NEVER = "1970-01-01T00:00:00+00:00"


def decided_before(annotation: dict[str, Any], chosen: Sequence[str]) -> tuple[str, str] | None:
    """Return who decided this here and when, where nobody changed it since."""
    for result in objects(annotation.get("result")):
        meta = result.get("meta")
        texts = meta.get("text") if isinstance(meta, dict) else None
        if not isinstance(texts, list) or len(texts) < 2:
            continue
        match = DECIDED.fullmatch(str(texts[0]))
        if match is not None and texts[1] == json.dumps(sorted(chosen), ensure_ascii=False):
            return match[1], match[2]
    return None


def decisions_of(
    instance: str, candidates: Sequence[str], answers: Sequence["Answer"]
) -> Iterator[ReadDecision]:
    """Give the decisions of everybody who annotated a task."""
    for one in answers:
        offered = [] if one.is_part else [name for name in candidates if name not in one.chosen]
        for label, verdict in [(n, "keep") for n in one.chosen] + [(n, "reject") for n in offered]:
            said = json.dumps([one.key, instance, label, verdict, one.annotator, one.time])
            uid = uuid5(NAMESPACE_URL, f"labelstudio:{said}").hex
            yield ReadDecision(instance, label, verdict, one.annotator, one.time, uid)  # type: ignore[arg-type]


class Answer:
    """One annotation: whose, when, and which labels were chosen."""

    def __init__(self, source: str | None, annotation: dict[str, Any], chosen: list[str]) -> None:
        before = decided_before(annotation, chosen)
        time = annotation.get("updated_at") or annotation.get("created_at")
        key = annotation.get("unique_id") or annotation.get("id") or annotation.get("annotation_id")
        self.chosen = chosen
        self.is_part = before is not None  # it names what was kept; the rest is not told
        self.annotator = _annotator(source) if before is None else before[0]
        self.time = (str(time) if time else NEVER) if before is None else before[1]
        self.key = None if before is not None else str(key)


def _annotator(source: str | None) -> str:
    """Return a name that is nobody's here: users are numbers there, and `2` may be somebody."""
    if source is None or source.isdecimal():
        return f"labelstudio {source or ''}".strip()
    return source
