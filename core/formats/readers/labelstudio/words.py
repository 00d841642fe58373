"""Label Studio: the words that its readers and writers share."""

from pathlib import Path
from typing import Any

NAME = "labelstudio"
CHOICES = "labels"  # the name of the <Choices> control, the results' `from_name`
MODEL = "plain"
FEATURE_KEYS = ("embedding", "features")
DATA = "plain_data"  # the fingerprint of the data that a task of ours is about
OWN_KEYS = (*FEATURE_KEYS, "candidates", "truth", "instance_id", DATA)
CONFIDENCE = "conf_"


def siblings(path: Path) -> list[Path]:
    """Return the labelling config that belongs to a file of this format."""
    return [path.with_name(f"{path.stem}.config.xml")]


def is_ours(prediction: dict[str, Any], task: dict[str, Any]) -> bool:
    """Whether a prediction is what this program resolved; its own tasks state candidates."""
    return prediction.get("model_version") == MODEL and "candidates" not in task["data"]
