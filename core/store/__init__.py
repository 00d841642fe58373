"""What is kept: the workspace with its data sets, runs and decisions. Never imports torch."""

from core.store.backup import automatic_backup, backup, backups, restore
from core.store.database import Database
from core.store.decisions import CurrentDecisions, Decision, DecisionsNow, DecisionStore
from core.store.full_backup import FullBackup, full_backup
from core.store.full_restore import Restored, check_full_backup, is_full_backup, restore_full
from core.store.labels import LabelChange, LabelStore
from core.store.lanes import LaneStore
from core.store.run_rows import ACTIVE, RunRow, RunState
from core.store.runs import RunStore
from core.store.studies import StudyRow, StudyStore
from core.store.workspace import DatasetRow, Workspace

__all__ = [
    "ACTIVE",
    "CurrentDecisions",
    "Database",
    "DatasetRow",
    "Decision",
    "DecisionStore",
    "DecisionsNow",
    "FullBackup",
    "LabelChange",
    "LabelStore",
    "LaneStore",
    "Restored",
    "RunRow",
    "RunState",
    "RunStore",
    "StudyRow",
    "StudyStore",
    "Workspace",
    "automatic_backup",
    "backup",
    "backups",
    "check_full_backup",
    "full_backup",
    "is_full_backup",
    "restore",
    "restore_full",
]
