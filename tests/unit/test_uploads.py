"""What was left over is uploaded again and again, whatever goes wrong in between."""

from types import SimpleNamespace

import pytest

from core.errors import StoreUnavailable
from plain_app.server import uploads


class EndOfTestError(Exception):
    pass


def test_uploads_go_on_after_every_error_and_verify_until_one_went_well(monkeypatch, capsys):
    gone = FileNotFoundError(2, "No such file or directory", "runs/purged")
    outcomes = iter([gone, StoreUnavailable("The object storage cannot be used."), 3, 0])
    verified = []

    def share_all(*, verify: bool) -> int:
        verified.append(verify)
        outcome = next(outcomes, EndOfTestError())
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(uploads, "sleep", lambda _: None)
    with pytest.raises(EndOfTestError):
        uploads._upload_for_ever(SimpleNamespace(share_all=share_all))
    assert verified == [True, True, True, False, False]
    told = capsys.readouterr().err
    assert "runs/purged" in told
    assert "object storage" in told
