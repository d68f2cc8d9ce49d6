"""What parent and worker say to each other survives the way."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace import protocol

finite = st.floats(allow_nan=False, allow_infinity=False)
events = st.one_of(
    st.builds(
        protocol.Steps,
        ends=st.lists(finite),
        samples=st.lists(st.none() | st.integers(0, 2**40)),
        interrupted=st.lists(st.integers(0, 99)),
    ),
    st.builds(protocol.Losses, steps=st.lists(st.integers(0, 99)), values=st.lists(st.none() | finite)),
    st.builds(
        protocol.Metrics,
        at=finite,
        step=st.integers(0, 99),
        values=st.dictionaries(st.text(), st.none() | finite),
    ),
    st.builds(protocol.Note, text=st.text()),
    st.builds(protocol.Restart),
    st.builds(
        protocol.Ended, at=finite, state=st.text(), error=st.none() | st.text(), exit_code=st.integers(0, 255)
    ),
)


@given(events)
def test_an_event_is_one_line_and_comes_back_equal(event: protocol.AnyEvent) -> None:
    line = protocol.encode(event)
    assert b"\n" not in line
    assert protocol.decode(line) == event


@given(st.lists(st.text(), max_size=5), st.integers(0, 2**32 - 1))
def test_a_job_fits_an_environment_variable(args: list[str], seed: int) -> None:
    job = protocol.Job(script="/x/y z.py", args=args, seed=seed, events_fd=3, spawned_at=1.5)
    text = msgspec.json.encode(job).decode()
    assert msgspec.json.decode(text, type=protocol.Job) == job


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        protocol.decode(b'{"event": "unheard"}')
