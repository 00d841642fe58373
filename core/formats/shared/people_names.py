"""Names of columns, and of what stands in them, that say that somebody is meant: raters, models."""

import re

WHO = (
    r"annotators?|annot|anno|ann|raters?|coders?|judges?|workers?|experts?|reviewers?|labell?ers?"
    r"|assessors?|evaluators?|participants?|respondents?|turkers?|graders?|readers?|users?|persons?"
    r"|voters?|observers?|amateurs?|ann?ota(tors?|dor(es)?|teurs?|tor[ei])|bewerter(in)?|codierer"
    r"|contributors?|players?|students?|clinicians?|physicians?|radiologists?|pathologists?|humans?"
    r"|models?|llms?|classifiers?|clf|lf|rules?|gpt|claude|llama|gemini|mistral|bert|roberta|sources?"
)
PERSON = re.compile(rf"({WHO})([ _.:-]?(\d[\w.-]*|[a-z]|[a-z]?\d+|[\w]+))?", re.IGNORECASE)
RATER = re.compile(
    rf"!?((amt|mturk|turk|crowd|task|hit|unique|anon)?_)?(({WHO})"
    r"([ _.-]?(id|ids|name|nr|no|number|uid|code|email))?([ _.-]?hash(ed)?)?"
    r"|(completed|created|annotated|labell?ed|rated|coded|judged|reviewed|submitted)[ _]?by"
    r"|e-?mail([ _]?address)?|username|user[ _]?(name|login)|crowd[ _]?worker([ _]?id)?|who|oracle"
    r"|performer|assignee|rad_id)",
    re.IGNORECASE,
)
WORDS = r"(labels?|annotations?|answers?|tags?|classe?s?|choices?|votes?|predictions?|ratings?)"
GENERIC = re.compile(WORDS, re.IGNORECASE)
NUMBERED_PERSON = re.compile(rf"(({WHO})[ _.:-]?(\d[\w.-]*|[a-z])|a\d+|r\d+)", re.IGNORECASE)
ANSWER = re.compile(r"answer \d+")  # who is not known by name
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
INITIAL = re.compile(r"[a-z]\d+", re.IGNORECASE)  # w190


def is_called_person(name: str) -> bool:
    """Whether a name says that somebody is meant: worker_7, anna@x.org."""
    return any(one.fullmatch(name.strip()) for one in (PERSON, ADDRESS, ANSWER))


def is_person(name: str) -> bool:
    """Whether a name may be somebody's: also w190, as codes of labels are spelled too."""
    return is_called_person(name) or INITIAL.fullmatch(name.strip()) is not None
