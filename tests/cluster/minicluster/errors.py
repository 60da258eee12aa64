"""The one error that the tool shows to a person: what happened and what to do."""


class ClusterError(Exception):
    pass


class MissingFeature(ClusterError):
    """Something of this machine is missing (root, a package, a kernel feature): tests skip on it.
    """
