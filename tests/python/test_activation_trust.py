"""Activation and its cache as an attacker sees them: nothing runs that another user wrote, or that lies where a program is started."""

import os
import shutil
import subprocess
import sys

import gemm_tma as gemm
import pytest
import triton
from test_activation import gpu, launch, sides  # noqa: F401  `gpu` is a fixture
from twill_gpu import activation, cache
from twill_gpu.activation.records import Records, digest_of

OTHER = 12345
"""A user who is not this one."""
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def kept(gpu, tensor):
    """A cache with a kernel, and a record that it is faster."""
    activation.install("wait")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 20)
    assert sides(gpu)[-1] == "twill"
    activation.uninstall()
    return cache.cache_info().folder


def taken(gpu, tensor):
    """Whether the kernel of the cache is taken, and what was said about it."""
    gpu.launched.clear()
    activation.install("frozen")
    launch(triton.jit(gemm.gemm_tma.fn), tensor, 3)
    (status,) = activation.status()
    activation.uninstall()
    assert (sides(gpu)[-1] == "twill") == (status.status == "scheduled")
    return status.status == "scheduled"


def kernel_of(kept):
    (entry,) = (kept / "kernel").iterdir()
    return entry


def chown(path):
    if not IS_ROOT:
        pytest.skip("only root gives files away")
    os.chown(path, OTHER, OTHER)


class TestKernels:
    def test_of_this_user(self, kept, gpu, tensor):
        assert taken(gpu, tensor)

    @pytest.mark.parametrize("where", ["entries", "kernels", "file"])
    @pytest.mark.parametrize("how", ["writable", "of another user"])
    def test_what_others_may_have_written(self, kept, gpu, tensor, capsys, where, how):
        path = {"entries": kept, "kernels": kept / "kernel", "file": kernel_of(kept)}[where]
        if how == "writable":
            path.chmod(path.stat().st_mode | 0o022)
        else:
            chown(path)
        assert not taken(gpu, tensor)
        if where == "entries":
            assert f"nothing is kept: {path} " in capsys.readouterr().err

    def test_links(self, kept, gpu, tensor, tmp_path):
        entry = kernel_of(kept)
        shutil.move(entry, tmp_path / "entry")
        entry.symlink_to(tmp_path / "entry")
        assert not taken(gpu, tensor)
        # It was thrown away.
        shutil.move(tmp_path / "entry", entry)
        assert taken(gpu, tensor)
        shutil.move(kept, tmp_path / "entries")
        kept.symlink_to(tmp_path / "entries")
        assert not taken(gpu, tensor)

    def test_content_that_was_changed(self, kept, gpu, tensor, tmp_path):
        entry = kernel_of(kept)
        text = entry.read_text()
        entry.write_text(text.replace("import", "IMPORT"))
        assert not taken(gpu, tensor)
        # As it would be by the old hash, of the content alone.
        body = text.partition("\n")[2]
        entry.write_text(f"{digest_of(body)}\n{body}")
        assert not taken(gpu, tensor)

    def test_a_pipe_does_not_stop_it(self, kept, gpu, tensor):
        entry = kernel_of(kept)
        entry.unlink()
        os.mkfifo(entry)
        kept = list(Records().folder.iterdir())
        for record in kept:
            record.unlink()
            os.mkfifo(record, 0o600)
        assert kept and not taken(gpu, tensor) and not any(Records().read(record.name) for record in kept)


class TestRecords:
    def test_one_record_in_the_place_of_another(self, tmp_path):
        records = Records(tmp_path / "records")
        records.write("slower", {"winner": "stock"})
        shutil.copy(records.folder / "slower", records.folder / "faster")
        assert records.read("slower") and records.read("faster") is None

    def test_one_of_another_user(self, tmp_path):
        records = Records(tmp_path / "records")
        records.write("a", {"winner": "stock"})
        (records.folder / "a").chmod(0o660)
        assert records.read("a") is None
        (records.folder / "a").chmod(0o600)
        assert records.read("a")
        chown(records.folder / "a")
        assert records.read("a") is None

    def test_a_folder_that_is_replaced_between_the_check_and_the_file(self, tmp_path, monkeypatch):
        records, theirs = Records(tmp_path / "records"), tmp_path / "theirs"
        records.write("a", {"winner": "stock"})
        shutil.copytree(records.folder, theirs)
        (theirs / "a").chmod(0o666)
        monkeypatch.setattr(records, "_safe", lambda make=False: theirs)
        assert records.read("a") is None

    def test_new_folders_are_this_users_alone(self, tmp_path):
        before = os.umask(0)
        try:
            Records(tmp_path / "records").write("a", {})
        finally:
            os.umask(before)
        assert (tmp_path / "records").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "records" / "a").stat().st_mode & 0o777 == 0o600


PLANTED = ["twill_gpu.py", "_twill_start.py", "sitecustomize.py", "usercustomize.py", "twill_gpu/__init__.py", "evil.py"]
STATE = """
import triton
print(triton.runtime.jit.JITFunction.run.__qualname__, 'twill_gpu' in __import__('sys').modules)
assert not hasattr(triton, 'planted')
"""


@pytest.mark.parametrize("pythonpath", ["", os.pathsep])
@pytest.mark.parametrize("switched", ["", "1"])
def test_files_where_a_program_is_started_switch_nothing_on(tmp_path, switched, pythonpath):
    """Nor are they taken for Twill where it is. An entry of PYTHONPATH that is empty is the working directory."""
    for name in PLANTED:
        if pythonpath and (name.endswith("customize.py") or name.startswith("_")):
            # Python itself imports those from there before anything else runs.
            continue
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os; os.environ['PLANTED'] = '1'; print('planted')")
    (tmp_path / "evil.pth").write_text("import evil\n")
    (tmp_path / "twill_gpu.pth").write_text("import evil\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TWILL")}
    path = pythonpath + environment.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-c", STATE],
        env={**environment, "PYTHONPATH": path, **({"TWILL": switched} if switched else {})},
        cwd=tmp_path, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert (done.stdout.split()[-1:], done.stderr) == ([str(bool(switched))], "") and "planted" not in done.stdout
