"""What an outcome says of itself."""

import pytest

from kernelwright.core.outcome import CaseTiming, Outcome, Status


def test_timings_exist_exactly_for_what_was_measured() -> None:
    timing = CaseTiming("a", (1.0, 2.0, 3.0), "events")
    assert Outcome(Status.MEASURED, cases=(timing,)).times_ms() == {"a": 2.0}
    with pytest.raises(ValueError, match="timings"):
        Outcome(Status.MEASURED)
    with pytest.raises(ValueError, match="timings"):
        Outcome(Status.WRONG, cases=(timing,))


def test_noise_is_that_of_the_summed_medians() -> None:
    steady = CaseTiming("a", (3.0,) * 8, "events")
    shaky = CaseTiming("b", (0.9, 1.1) * 4, "events")
    noise = Outcome(Status.MEASURED, cases=(steady, shaky)).relative_noise()
    # stdev 0.1069 of 8 samples: 1.2533 * 0.1069 / sqrt(8) of a sum of 4.
    assert noise == pytest.approx(0.01184, rel=1e-3)
    assert Outcome(Status.MEASURED, cases=(steady,)).relative_noise() == 0.0
    assert Outcome(Status.WRONG).relative_noise() is None
    assert Outcome(Status.MEASURED, cases=(CaseTiming("a", (1.0,), "recorded"),)).relative_noise() is None
