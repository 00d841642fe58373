"""Who a person is, by what an OpenID Connect provider says."""

import pytest

from plain_app.widgets.login import LONGEST, identity

ADA = {"email": "ada@example.org", "sub": "7", "name": "Ada"}


@pytest.mark.parametrize(
    ("claims", "person"),
    [
        ({**ADA, "email_verified": True}, "ada@example.org"),
        ({**ADA, "email_verified": "true"}, "ada@example.org"),
        ({**ADA, "email_verified": False}, "7"),
        ({**ADA, "email_verified": "false"}, "7"),
        ({**ADA, "email_verified": 1.5}, "7"),
        (ADA, "7"),
        ({"name": "Ada"}, None),
        ({"email": "ada@example.org"}, None),
        ({"email": "", "email_verified": True, "sub": ""}, None),
    ],
)
def test_an_address_is_a_name_only_when_it_was_verified(claims, person):
    assert identity(claims) == person


def test_long_subjects_stay_different():
    names = {identity({"sub": "x" * 200 + end}) for end in "ab"}
    assert len(names) == 2
    assert all(len(one) <= LONGEST for one in names)
