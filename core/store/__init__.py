"""What is kept: the workspace with its data sets, runs and decisions. Never imports torch."""

from core.store.backup import automatic_backup, backup, backups, restore
from core.store.database import Database
from core.store.decisions import Decision, DecisionStore
from core.store.labels import LabelChange, LabelStore
from core.store.lanes import LaneStore
from core.store.runs import RunRow, RunState, RunStore
from core.store.studies import StudyRow, StudyStore
from core.store.workspace import DatasetRow, Workspace

__all__ = [
    "Database",
    "DatasetRow",
    "Decision",
    "DecisionStore",
    "LabelChange",
    "LabelStore",
    "LaneStore",
    "RunRow",
    "RunState",
    "RunStore",
    "StudyRow",
    "StudyStore",
    "Workspace",
    "automatic_backup",
    "backup",
    "backups",
    "restore",
]
