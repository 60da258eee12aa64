"""Times and sizes as people read them."""


def time(value: float) -> str:
    """Seconds as text: 1.5 min."""
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if value >= 1.5 * size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} s" if value >= 0.1 or value == 0 else f"{1000 * value:.3g} ms"


def size(value: float) -> str:
    """Bytes as text: 2.147 GB."""
    for name, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {name}"
    return f"{value:.0f} B"
