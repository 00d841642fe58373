"""Small files made to take all memory or all day, for every reader; how a reading is measured."""

from bombs import arff_svmlight, arrays, json_files, parquet, text_tables  # noqa: F401
from bombs.measuring import Outcome, measure
from bombs.registry import BOMBS, MAX_MEMORY, MB

__all__ = ["BOMBS", "MAX_MEMORY", "MB", "Outcome", "measure"]
