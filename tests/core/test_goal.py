import pytest

from kernelwright.core.errors import UserError
from kernelwright.core.goal import Attained, Goal, parse_goal


@pytest.mark.parametrize(
    ("text", "goal", "shown"),
    [
        ("rank<=15", Goal(rank=15), "rank<=15"),
        (" rank <= 1 ", Goal(rank=1), "rank<=1"),
        ("time<=0.5ms", Goal(time_ms=0.5), "time<=0.5ms"),
        ("time<=12.5us", Goal(time_ms=0.0125), "time<=0.0125ms"),
        ("time<=2s", Goal(time_ms=2000), "time<=2000ms"),
        ("time<=0.01us", Goal(time_ms=1e-5), "time<=0.00001ms"),
        ("roofline>=95%", Goal(roofline=0.95), "roofline>=95%"),
        ("speedup>=3", Goal(speedup=3), "speedup>=3"),
        ("rank<=15, speedup>=1.5", Goal(rank=15, speedup=1.5), "rank<=15, speedup>=1.5"),
    ],
)  # fmt: skip
def test_a_goal_is_read_and_shown_as_it_is_read(text: str, goal: Goal, shown: str) -> None:
    found = parse_goal(text)
    assert str(found) == shown
    assert str(parse_goal(shown)) == shown
    for name in ("rank", "time_ms", "roofline", "speedup"):
        assert getattr(found, name) == pytest.approx(getattr(goal, name))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rank<15", "'rank<15' is no goal: write rank<=15"),
        ("rank>=15", "'rank>=15' is no goal"),
        ("rank<=0", "ranks are whole numbers from 1"),
        ("rank<=1.5", "ranks are whole numbers"),
        ("rank<=5ms", "wrong unit"),
        ("time<=5", "wrong unit"),
        ("time<=0ms", "give a time above 0"),
        ("time<=-1ms", "is no goal"),
        ("time<=nanms", "is no goal"),
        ("roofline>=0.9", "wrong unit"),
        ("roofline>=101%", "up to 100 %"),
        ("speedup>=1", "reached at the start"),
        ("rank<=3,rank<=2", "names rank twice"),
        ("", "'' is no goal"),
        ("rank<=15\nrank", "is no goal"),
        ("x" * 5000, "is no goal"),
    ],
)
def test_bad_text_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("(", r"\(")) as error:
        parse_goal(text)
    assert len(str(error.value).splitlines()) == 1
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("text", "now", "reached"),
    [
        ("rank<=15", Attained(rank=15), True),
        ("rank<=15", Attained(rank=16), False),
        ("rank<=15", Attained(time_ms=1), False),
        ("time<=0.5ms", Attained(time_ms=0.5), True),
        ("time<=0.5ms", Attained(time_ms=0.51), False),
        ("roofline>=95%", Attained(roofline=0.96), True),
        ("roofline>=95%", Attained(), False),
        ("speedup>=3", Attained(speedup=3.1), True),
        ("rank<=2, speedup>=3", Attained(speedup=3.1, rank=3), False),
        ("rank<=2, speedup>=3", Attained(speedup=3.1, rank=1), True),
    ],
)
def test_when_it_is_reached(text: str, now: Attained, *, reached: bool) -> None:
    assert parse_goal(text).reached(now) is reached


def test_no_condition_is_never_reached() -> None:
    assert not Goal().reached(Attained(1.0, 1.0, 99.0, 1))
