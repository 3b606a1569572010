from __future__ import annotations

import pytest
from pydantic import ValidationError

from graph.settings import Settings


def settings_of(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


@pytest.mark.parametrize(("lease_seconds", "heartbeat_seconds"), [(0.4, 5), (9.9, 5), (20, 10.5), (5, 5)])
def test_lease_shorter_than_two_heartbeats_is_refused_with_both_names(
    lease_seconds: float, heartbeat_seconds: float
) -> None:
    with pytest.raises(ValidationError) as caught:
        settings_of(lease_seconds=lease_seconds, heartbeat_seconds=heartbeat_seconds)
    (error,) = caught.value.errors()
    assert error["loc"] == ()
    assert "LEASE_SECONDS" in error["msg"]
    assert "HEARTBEAT_SECONDS" in error["msg"]


@pytest.mark.parametrize(("lease_seconds", "heartbeat_seconds"), [(10, 5), (0.4, 0.1), (20, 5)])
def test_lease_that_outlasts_a_missed_heartbeat_is_taken(lease_seconds: float, heartbeat_seconds: float) -> None:
    settings = settings_of(lease_seconds=lease_seconds, heartbeat_seconds=heartbeat_seconds)
    assert settings.lease_seconds == lease_seconds
