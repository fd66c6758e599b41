# SPDX-License-Identifier: Apache-2.0
"""Shares on disk: what is saved comes back in another session, one file per party tells nothing, and parties agree."""

import stat

import pytest
import torch
from safetensors import safe_open

import privml
from privml.checkpoint import load_shares, new_run, newest_common, save_shares

ENGINES = {
    "plain": lambda: privml.local("plain"),
    "twopc": lambda: privml.local("twopc", ot="ideal"),
    "threepc": lambda: privml.local("threepc"),
}


@pytest.fixture(params=ENGINES)
def open_engine(request):
    return ENGINES[request.param]


def some_tensors():
    x = privml.share(torch.tensor([[1.5, -2.25], [0.5, 3.0]]), owner=1)
    return {
        "owned": x,
        "shared": x * privml.share(torch.tensor([2.0, 4.0]), owner=0),
        "bits": x > 0,
        "whole": privml.share(torch.tensor([3, -4]), owner=0),
        "public": torch.tensor([0.25], dtype=torch.float64),
    }


def test_saved_shares_come_back_in_a_new_session(open_engine, tmp_path):
    with open_engine() as session:
        tensors = some_tensors()
        expected = {n: privml.reveal(t) if isinstance(t, privml.SecretTensor) else t for n, t in tensors.items()}
        run = new_run(session)
        save_shares(tmp_path, session, 7, run, tensors, {"batch": 3})
    with open_engine() as session:
        assert newest_common(tmp_path, session) == (7, run)
        loaded = load_shares(tmp_path, session, 7, run, {"batch": 3})
        assert loaded.keys() == expected.keys()
        for name, value in expected.items():
            mine = loaded[name]
            secret = isinstance(mine, privml.SecretTensor)
            assert secret == (name != "public") and mine.dtype is value.dtype
            if secret:
                assert (mine.format, mine.placement) == (tensors[name].format, tensors[name].placement)
            assert torch.equal(privml.reveal(mine) if secret else mine, value)
        product = privml.reveal(loaded["shared"] * loaded["owned"])  # they compute on
        assert (product - expected["shared"] * expected["owned"]).abs().max() < 1e-3


def test_files_are_for_their_owner_only_and_say_nothing_alone(tmp_path):
    values = torch.arange(1, 65).float()
    with privml.local("threepc") as session:
        product = privml.share(values, owner=0) * privml.share(torch.ones(64), owner=1)
        save_shares(tmp_path, session, 1, new_run(session), {"x": product})
    for rank in range(3):
        path = tmp_path / f"party-{rank}" / "step-000000001.safetensors"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing temporary is left
        with safe_open(path, "pt") as file:
            parts = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118 - not a dictionary
        ring = (values * 2**16).long()
        assert len(parts) == 2 and not any(torch.equal(part, ring) or torch.equal(-part, ring) for part in parts)
        assert (parts[0] - parts[1] - ring).abs().min() > 2**20  # faithful truncation: not even nearly


def test_the_parties_agree_on_the_newest_step_that_all_have(open_engine, tmp_path):
    with open_engine() as session:
        run = new_run(session)
        for step in (10, 20, 30):
            save_shares(tmp_path, session, step, run, some_tensors())
        newest = tmp_path / "party-0" / "step-000000030.safetensors"
        assert len(list(newest.parent.iterdir())) == 2  # older ones are gone
        newest.unlink()  # killed before it was written
        assert newest_common(tmp_path, session) == (20, run)
        (tmp_path / "party-0" / "step-000000030.safetensors.new").write_bytes(b"half")  # or while it was
        assert newest_common(tmp_path, session) == (20, run)
        load_shares(tmp_path, session, 20, run)
    with open_engine() as session:
        assert newest_common(tmp_path / "elsewhere", session) is None


def test_shares_of_different_runs_are_never_mixed(tmp_path):
    with privml.local("twopc", ot="ideal") as session:
        first, second = new_run(session), new_run(session)
        for run, place in ((first, "a"), (second, "b")):
            save_shares(tmp_path / place, session, 5, run, some_tensors())
        assert first != second
        theirs = tmp_path / "b" / "party-1" / "step-000000005.safetensors"
        theirs.replace(tmp_path / "a" / "party-1" / "step-000000005.safetensors")
        assert newest_common(tmp_path / "a", session) is None
        with pytest.raises(privml.errors.ConfigError, match="run="):
            load_shares(tmp_path / "a", session, 5, first)


def test_other_settings_other_engines_and_broken_files_are_refused(tmp_path):
    with privml.local("twopc", ot="ideal") as session:
        run = new_run(session)
        save_shares(tmp_path, session, 5, run, some_tensors(), {"seed": 1, "rows": [2, 3]})
        with pytest.raises(privml.errors.ConfigError, match="seed=1, now 2; way=None, now traced: set"):
            load_shares(tmp_path, session, 5, run, {"seed": 2, "rows": [2, 3], "way": "traced"})
    with privml.local("threepc") as session, pytest.raises(privml.errors.ConfigError, match="engine="):
        load_shares(tmp_path, session, 5, run, {"seed": 1, "rows": [2, 3]})
    path = tmp_path / "party-1" / "step-000000005.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    with privml.local("twopc", ot="ideal") as session, pytest.raises(privml.errors.CorruptFile, match="truncated"):
        load_shares(tmp_path, session, 5, run, {"seed": 1, "rows": [2, 3]})


def test_shares_that_only_their_session_can_check_are_not_saved(tmp_path):
    with privml.local("active", ot="ideal") as session:
        x = privml.share(torch.ones(2))
        with pytest.raises(privml.errors.ConfigError, match="valid in their session only"):
            save_shares(tmp_path, session, 1, 0, {"x": x})
    assert not list(tmp_path.iterdir())


def test_attempts_at_a_step_are_never_mixed(tmp_path):
    """Parties that go on from a step and die once more, while they save: some have the new file, some the old one."""

    def file(rank, step):
        return tmp_path / f"party-{rank}" / f"step-{step:09d}.safetensors"

    with privml.local("threepc") as session:
        first, second = new_run(session), new_run(session)
        save_shares(tmp_path, session, 2, first, some_tensors())
        save_shares(tmp_path, session, 4, first, some_tensors())
        before = [file(rank, 4).read_bytes() for rank in range(2)]
        file(2, 4).unlink()  # party 2 died before it wrote, so all go on from step 2
        assert newest_common(tmp_path, session) == (2, first)
        save_shares(tmp_path, session, 4, second, some_tensors())
        for rank, shares in enumerate(before):  # and the others before they wrote once more
            file(rank, 4).write_bytes(shares)
        assert newest_common(tmp_path, session) == (2, first)


def test_a_run_that_begins_again_keeps_its_own_files(tmp_path):
    with privml.local("twopc", ot="ideal") as session:
        first, second = new_run(session), new_run(session)
        for run, steps in ((first, (10, 20)), (second, (2, 4))):
            for step in steps:
                save_shares(tmp_path, session, step, run, some_tensors())
        assert newest_common(tmp_path, session) == (4, second)
        assert sorted(path.name for path in (tmp_path / "party-1").iterdir()) == [
            f"step-{step:09d}.safetensors" for step in (2, 4)
        ]
