"""An upgrade of the package stops the services before it replaces their files, and starts them after."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = {f"feltd-{part}.service" for part in ("edge", "rules", "console", "jackpots")}


@pytest.mark.skipif(not shutil.which("dh_installsystemd"), reason="needs debhelper")
def test_every_service_is_stopped_before_an_upgrade_and_started_after(tmp_path: Path) -> None:
    """A process loads a driver or a game when it needs it: of another version it must not find one."""
    units = tmp_path / "debian/feltd/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in UNITS:
        shutil.copy(ROOT / "systemd" / unit, units)
    for name in ("control", "changelog"):
        shutil.copy(ROOT / "debian" / name, tmp_path / "debian")
    calls = re.findall(r"^\t(dh_installsystemd .*)$", (ROOT / "debian/rules").read_text(encoding="utf-8"), re.MULTILINE)
    for call in calls:
        subprocess.run(call.split(), cwd=tmp_path, check=True, timeout=100)

    def services(script: str, action: str) -> set[str]:
        made = tmp_path / "debian/.debhelper/generated/feltd" / f"{script}.service"
        lines = re.findall(rf"deb-systemd-invoke {action} (.*?) >", made.read_text(encoding="utf-8"))
        return {unit.strip("'") for line in lines for unit in line.split()}

    assert services("preinst", "stop") == UNITS
    assert services("postinst", "start") == UNITS
    assert services("prerm", "stop") == UNITS
