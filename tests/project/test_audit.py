"""What the audit of the libraries says of pip-audit's reports."""

from audit import NOTHING, judged, warning

CLEAN = {"name": "click", "version": "8.5.1", "vulns": []}
BAD = {"name": "jinja2", "version": "3.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"]}]}
UNKNOWN = {"name": "mqtt5", "skip_reason": "Dependency not found on PyPI"}


def test_a_vulnerability_fails_the_audit() -> None:
    code, lines = judged({"dependencies": [CLEAN, BAD, UNKNOWN]})
    assert code == 1
    assert lines == [
        "jinja2 3.0: PYSEC-1, mended in 3.1",
        "not known to the index: mqtt5",
        "2 libraries examined, 1 vulnerabilities",
    ]


def test_libraries_without_one_pass() -> None:
    assert judged({"dependencies": [CLEAN]}) == (0, ["1 libraries examined, 0 vulnerabilities"])


def test_an_index_that_knows_nothing_is_reported_loudly_and_passes() -> None:
    code, lines = judged({"dependencies": [UNKNOWN]})
    assert code == 0
    assert lines[0].startswith(NOTHING)
    assert warning([]) == []
    assert f"{NOTHING}: runtime.txt, openid.txt." in warning(["runtime.txt", "openid.txt"])
