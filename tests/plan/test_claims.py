"""The table of docs/plan/claims.md is what the package computes; the findings that it must contain
are there.
"""

import claims


def test_the_page_is_up_to_date():
    page = claims.PAGE.read_text(encoding="utf-8")
    assert claims.page_with(page,
                            claims.table()) == page, "run: python tests/plan/claims.py --write"


def test_the_staging_memory_is_exhausted_at_4k_or_8k():
    assert all(4096 <= n < 4700 for n in claims.exhausted(2048))
    assert all(8192 <= n < 9400 for n in claims.exhausted(4096))


def test_four_times_off_doubles_the_loss():
    assert "2.10 and 2.22 times" in claims.four_times_off()


def test_the_accuracy_of_the_approximation_is_as_documented():
    import accuracy
    from backstay.plan import survival

    rows = list(accuracy.rows())
    assert [row[:3] for row in rows] == accuracy.CASES
    for nodes, replicas, failures, formula, bound, share, low, high in rows:
        assert abs(survival.probability(failures, nodes, replicas) - formula) <= 5.1e-5
        assert abs(survival.probability_at_least(failures, nodes, replicas) - bound) <= 5.1e-5
        drawn = accuracy.draw(nodes, replicas, failures, 5_000, confidence=0.9999)
        print(f"seed {accuracy.SEED}: {nodes} nodes: {drawn}, the page {share}")
        assert drawn.low <= high and low <= drawn.high
