"""One closed model beside its simulation."""

from typing import NamedTuple

from .estimate import Estimate


class Check(NamedTuple):
    """`unit` of both values; `tolerance`: relative error that the model's page admits."""

    name: str
    unit: str
    formula: float
    simulated: Estimate
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the formula, within its tolerance, lies in the confidence interval."""
        room = self.tolerance * abs(float(self.formula))
        return self.simulated.low - room <= self.formula <= self.simulated.high + room
