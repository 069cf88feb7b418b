"""Short help of the commands in Python fits a screen, and --help-all has every option."""

import pytest
from twill_gpu.calibration import command as calibrate
from twill_gpu.collecting import command as collect
from twill_gpu.sweeping import command as sweep


@pytest.mark.parametrize("command", [sweep, calibrate, collect])
def test_help(command, capsys):
    for words in (["-h"], ["--help"]):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        lines = capsys.readouterr().out.splitlines()
        assert ended.value.code == 0
        assert len(lines) <= 24 and max(map(len, lines)) <= 80, "\n".join(lines)
    with pytest.raises(SystemExit):
        command.main(["--help-all"])
    listed = capsys.readouterr().out
    assert [one.option_strings for one in command.parser()._actions if any(word not in listed for word in one.option_strings)] == []
