"""Checks of arguments: one error class, messages that name the argument and the value."""

import numpy as np

# No time, size or bandwidth comes near; within them no product of the models overflows.
SMALLEST, LARGEST = 1e-50, 1e50
COUNT_MAX = 2**53  # whole numbers up to it are exact as floats


class PlanError(ValueError):
    """An argument that a model cannot use. `parameter` is its name, `reason` the rest of the
    sentence.
    """

    def __init__(self, parameter: str, reason: str):
        super().__init__(f"{parameter} {reason}")
        self.parameter, self.reason = parameter, reason


def _numbers(name: str, value) -> np.ndarray:
    try:
        numbers = np.asarray(value, dtype=float)
    except OverflowError:
        raise PlanError(name, f"must be a number up to {LARGEST:g}") from None
    except (TypeError, ValueError):
        raise PlanError(name, f"must be a number, not {value!r}") from None
    return numbers


def _refuse(name: str, numbers: np.ndarray, good: np.ndarray, wanted: str) -> None:
    if not good.all():
        raise PlanError(name, f"must be {wanted}, not {numbers[~good].flat[0]:.12g}")


def positive(name: str, value, infinite: bool = False) -> np.ndarray:
    numbers = _numbers(name, value)
    _refuse(name, numbers, (numbers > 0) & (np.isfinite(numbers) | infinite), "above 0 and finite")
    within = (numbers >= SMALLEST) & ((numbers <= LARGEST) | np.isinf(numbers))
    _refuse(name, numbers, within, f"from {SMALLEST:g} to {LARGEST:g}")
    return numbers


def not_negative(name: str, value) -> np.ndarray:
    numbers = _numbers(name, value)
    _refuse(name, numbers, (numbers >= 0) & np.isfinite(numbers), "0 or more and finite")
    _refuse(name, numbers, numbers <= LARGEST, f"at most {LARGEST:g}")
    return numbers


def fraction(name: str, value, zero: bool = True, one: bool = True) -> np.ndarray:
    numbers = _numbers(name, value)
    good = ((numbers >= 0) if zero else (numbers > 0)) & ((numbers <= 1) if one else (numbers < 1))
    ends = f"{'0 or more' if zero else 'above 0'} and {'at most 1' if one else 'below 1'}"
    _refuse(name, numbers, good, "from 0 to 1" if zero and one else ends)
    return numbers


def count(name: str, value, least: int = 1, most: float = COUNT_MAX,
          most_is: str = "") -> np.ndarray:
    """Whole numbers, kept as floats: exact up to 2^53. `most_is` says what the upper limit is."""
    numbers = _numbers(name, value)
    _refuse(name, numbers, (numbers == np.floor(numbers)) & np.isfinite(numbers), "a whole number")
    _refuse(name, numbers, numbers >= least, f"at least {least}")
    _refuse(name, numbers, numbers <= most,
            f"at most {most:.15g}" + (f" ({most_is})" if most_is else ""))
    return numbers


def whole(name: str, value, least: int = 1, most: float = COUNT_MAX, most_is: str = "") -> int:
    """The same for a single number."""
    number = count(name, value, least, most, most_is)
    if number.ndim:
        raise PlanError(name, f"must be a single number, not {number.size} of them")
    return int(number)
