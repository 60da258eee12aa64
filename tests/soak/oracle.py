"""What must still be there: the reported levels of versions against what was killed and damaged
since. No I/O.
"""

import dataclasses


@dataclasses.dataclass
class Oracle:
    # The newest that was reported, while its agent lives and nothing was damaged since; 0: none.
    captured: int = 0
    local: set[int] = dataclasses.field(default_factory=set)  # reported
    # Of each version that was reported as captured.
    steps: dict[int, int] = dataclasses.field(default_factory=dict)

    def reported(self, level: str, version: int, step: int) -> None:
        if level == "captured":
            self.captured, self.steps[version] = version, step
        else:
            self.local.add(version)

    def agent_ended(self) -> None:
        self.captured = 0

    def damaged(self, version: int | None) -> None:
        if version is not None:
            self.captured = 0
            self.local.discard(version)

    def removed_all(self) -> None:
        self.captured, self.local = 0, set()

    def must(self, on_disk: set[int]) -> int:
        """The oldest version that a restart may give; 0: it may find nothing. `on_disk`: those that
        retention has kept.
        """
        return max([self.captured, *(self.local & on_disk)], default=0)

    def wrong(self, code: int, version: int, step: int, must: int, nothing: int) -> str:
        """Why an answer of a restart is wrong; "" where it is right. `nothing`: the code for no
        version.
        """
        if code != 0:
            known = "" if code != nothing else " and calls it a first start"
            return f"a restart fails with {code}{known}, and version {must} must be there" if must else ""
        if version < must:
            return f"a restart gives version {version}, and version {must} must be there"
        if self.steps.get(version, step) != step:
            return f"version {version} was of step {self.steps[version]}, and comes back as step {step}"
        return ""
