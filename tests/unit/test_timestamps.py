"""Points in time: every accepted form, and a clear refusal of everything else."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from cofire.encoding.timestamps import format_time, parse_time
from cofire.errors import InputError
from cofire.types import TimeLike


@pytest.mark.parametrize(
    ("value", "expected", "offset"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", 0),
        ("2024-01-01t00:00:00z", "2024-01-01T00:00:00Z", 0),
        ("2024-01-01T00:00:00", "2024-01-01T00:00:00Z", None),
        ("2024-01-01T00:00:00.123456Z", "2024-01-01T00:00:00.123456Z", 0),
        ("2024-01-01T00:00:00,5+00:00", "2024-01-01T00:00:00.500000Z", 0),
        ("2024-01-01T00:00:00+13:00", "2023-12-31T11:00:00Z", 780),
        ("2024-01-01T00:00:00-0330", "2024-01-01T03:30:00Z", -210),
        ("2024-01-01 10:00:00 +0200", "2024-01-01T08:00:00Z", 120),
        ("2024-01-01 10:00 UTC", "2024-01-01T10:00:00Z", 0),
        ("  2024-01-01  ", "2024-01-01T00:00:00Z", None),
        ("20240101", "2024-01-01T00:00:00Z", None),
        ("2024-W01-1", "2024-01-01T00:00:00Z", None),
        ("2024-02-29", "2024-02-29T00:00:00Z", None),
        ("0001-01-01", "0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z", 0),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z", 0),
        ("2023/05/30 (Tue) 09:00", "2023-05-30T09:00:00Z", None),
        ("2023/05/30 (Tue) 23:40", "2023-05-30T23:40:00Z", None),
        ("2024-3-1 9:05", "2024-03-01T09:05:00Z", None),
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z", None),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00Z", None),
        ("12:30 pm on 1 January, 2023", "2023-01-01T12:30:00Z", None),
        ("1:05\u202fPM on 8 May, 2023", "2023-05-08T13:05:00Z", None),
        ("8 May 2023", "2023-05-08T00:00:00Z", None),
        ("May 8, 2023 at 1:56 PM", "2023-05-08T13:56:00Z", None),
        ("Tue, 30 May 2023 09:00:00 +0200", "2023-05-30T07:00:00Z", 120),
        ("30 May 2023 09:00:00 GMT", "2023-05-30T09:00:00Z", 0),
        (1704067200, "2024-01-01T00:00:00Z", None),
        (1704067200000, "2024-01-01T00:00:00Z", None),
        (1704067200000000, "2024-01-01T00:00:00Z", None),
        (1704067200000000000, "2024-01-01T00:00:00Z", None),
        (1704067200.5, "2024-01-01T00:00:00.500000Z", None),
        (1704067200.0001, "2024-01-01T00:00:00.000100Z", None),
        (1704067200000.0, "2024-01-01T00:00:00Z", None),
        ("1704067200", "2024-01-01T00:00:00Z", None),
        ("1704067200000", "2024-01-01T00:00:00Z", None),
        ("1704067200.000100", "2024-01-01T00:00:00.000100Z", None),
        ("1710032400.123456", "2024-03-10T01:00:00.123456Z", None),
        (100_000_000, "1973-03-03T09:46:40Z", None),
        (100_000_000_000, "1973-03-03T09:46:40Z", None),
        (99_999_999_999, "5138-11-16T09:46:39Z", None),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00Z", 0),
        (
            datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=13))),
            "2023-12-31T11:00:00Z",
            780,
        ),
        (datetime(2024, 1, 1), "2024-01-01T00:00:00Z", None),  # noqa: DTZ001 - the case at hand
    ],
)
def test_accepted(value: TimeLike, expected: str, offset: int | None) -> None:
    moment, found = parse_time(value)
    assert moment.tzinfo is UTC
    assert format_time(moment) == expected
    assert found == offset


def test_numpy_numbers_are_numbers() -> None:
    assert parse_time(np.int64(1704067200))[0] == datetime(2024, 1, 1, tzinfo=UTC)  # type: ignore[arg-type]
    assert parse_time(np.float64(1704067200))[0] == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        -1, 0, 1, -1.0, "-1", "0", 2023, "2023", 99_999_999, "-1704067200",
        10**20, 1e30, float("nan"), float("inf"), float("-inf"), True, False,
        "", "   ", "\n", "nan", "inf", "Infinity", "1e9", "1_704_067_200", "now", "today",
        "yesterday", "null", "None", "true", "9999-99-99", "0000-00-00", "0000-01-01",
        "30000-01-01", "10000-01-01", "2023-02-29", "2024-02-30", "2024-13-01",
        "2024-01-01T25:00:00", "2024-01-01T00:61:00", "13:00 pm on 8 May, 2023",
        "0:10 am on 8 May, 2023", "1:56 pm on 31 June, 2023", "12:30", "2024-01",
        "Tue, 31 Jun 2023 09:00:00 +0000", "2024-01-01T00:00:00+99:00",
        "0001-01-01T00:00:00+13:00", "9999-12-31T23:00:00-13:00", "\x00",
        "２０２４", "٢٠٢٤-٠١-٠١",
    ],
)  # fmt: skip
def test_refused(value: TimeLike) -> None:
    with pytest.raises(InputError) as refusal:
        parse_time(value)
    message = str(refusal.value)
    assert "ISO 8601" in message or "years 1 to 9999" in message or "epoch" in message
    assert len(message) < 400


@pytest.mark.parametrize("sign", [1, -1])
def test_huge_values_are_refused_in_few_words(sign: int) -> None:
    for value in (sign * 10**5000, "9" * 5000, "x" * 10**6):
        with pytest.raises(InputError) as refusal:
            parse_time(value)
        assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("value", [None, b"2024-01-01", [], {}, object(), 1j])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InputError, match="is not a time"):
        parse_time(value)  # type: ignore[arg-type]


def test_a_datetime_beyond_utc_is_refused() -> None:
    early = datetime.min.replace(tzinfo=timezone(timedelta(hours=13)))
    with pytest.raises(InputError, match="years 1 to 9999"):
        parse_time(early)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the host's zone cannot be set here")
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo", "Pacific/Auckland"])
def test_the_hosts_zone_does_not_matter(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for value in ("2025-07-25T02:00:00", 1753408800, "1753408800000", "2025-07-25 02:00"):
            assert format_time(parse_time(value)[0]) == "2025-07-25T02:00:00Z"
        naive = datetime(2025, 7, 25, 2)  # noqa: DTZ001 - the case at hand
        assert format_time(naive) == format_time(parse_time(naive)[0]) == "2025-07-25T02:00:00Z"
    finally:
        monkeypatch.setenv("TZ", before) if before else monkeypatch.delenv("TZ")
        time.tzset()


def test_one_format() -> None:
    auckland = timezone(timedelta(hours=13))
    assert format_time(datetime(2024, 1, 1, 13, tzinfo=auckland)) == "2024-01-01T00:00:00Z"
    assert format_time(datetime(2024, 1, 1, microsecond=1, tzinfo=UTC)).endswith("00.000001Z")
    assert format_time(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"
