"""A start with another version: it must learn the records of the old one in the same way."""

import pytest
from state_folders import commit_and_learn, new_model, some_rows, trained_model, write_folder

from spanboost import __version__
from spanboost.cli.main import main
from spanboost.models.files import to_bytes
from spanboost.service.storage import journal, journal_files, model_state, state, upgrade
from spanboost.service.storage.journal_chain import read_chain
from spanboost.service.storage.record_files import StateError
from spanboost.service.storage.state import State

OLD = "0.0.9"
DATA = some_rows(400)


def write_old(folder, steps, factor=1.0):
    """Write a folder as an old version that learns labels multiplied by a factor."""
    learning_batches = model_state.learning_batches

    def other_batches(schema, rows, labels, weights):
        return learning_batches(schema, rows, [factor * label for label in labels], weights)

    with pytest.MonkeyPatch.context() as patch:
        for module in (journal, journal_files, upgrade):
            patch.setattr(module, "__version__", OLD)
        patch.setattr(model_state, "learning_batches", other_batches)
        return write_folder(folder, steps, DATA)


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def versions(folder):
    """Return the versions that the journal files name, in order."""
    return [file.header.version for file in read_chain(folder / "journal").files]


def continue_folder(folder, rows, **options):
    """Open a folder, learn more rows, and return the model before them."""
    opened = State(folder, new_model, **options)
    before = to_bytes(opened.model)
    commit_and_learn(opened, rows, rows + 25, DATA)
    opened.close()
    return before


@pytest.mark.parametrize("steps", [[2, 3], [0, 1, 2], [1, 2, 1, 3]])
def test_the_records_of_another_version_are_learned_if_its_snapshot_is_reproduced(tmp_path, steps):
    rows = write_old(tmp_path, steps)
    assert continue_folder(tmp_path, rows) == trained_model(DATA, rows)
    assert versions(tmp_path)[-1] == __version__
    opened = State(tmp_path, new_model)
    assert opened.upgraded_from == []
    assert to_bytes(opened.model) == trained_model(DATA, rows + 25)
    opened.close()


def test_the_loss_curve_keeps_the_times_of_the_old_version(tmp_path):
    write_old(tmp_path, [3, 1])
    before = state.load_checkpoint(max((tmp_path / "snapshots").iterdir()))[1]["progress"]
    opened = State(tmp_path, new_model)
    after = opened.progress.state()
    assert after["points"][: len(before["points"])] == before["points"]
    opened.close()


def test_records_are_not_learned_in_another_way(tmp_path):
    write_old(tmp_path, [2, 3], factor=1 + 2**-40)
    before = files(tmp_path)
    for _ in range(2):
        with pytest.raises(StateError) as error:
            State(tmp_path, new_model)
        assert str(error.value) == (
            f"{tmp_path}: version {OLD} of spanboost wrote records that are not in a snapshot, and "
            f"a replay by version {__version__} does not reproduce the last snapshot. Start "
            f"version {OLD} once and stop it, so that it writes a snapshot; or add "
            f"--accept-upgrade to learn these records with version {__version__}"
        )
    assert files(tmp_path) == before


def test_records_are_not_learned_if_nothing_can_be_compared(tmp_path):
    rows = write_old(tmp_path, [3])
    before = files(tmp_path)
    with pytest.raises(StateError, match="no earlier snapshot from which a replay could be"):
        State(tmp_path, new_model)
    assert files(tmp_path) == before
    assert continue_folder(tmp_path, rows, accept_upgrade=True) == trained_model(DATA, rows)


def test_an_accepted_upgrade_starts_from_the_last_snapshot_and_is_recorded(tmp_path):
    factor = 1 + 2**-40
    rows = write_old(tmp_path, [2, 3], factor)
    model, _ = new_model()
    model.learn_many(DATA[0][:50], [factor * label for label in DATA[1][:50]])
    model.learn_many(DATA[0][50:rows], DATA[1][50:rows])
    assert continue_folder(tmp_path, rows, accept_upgrade=True) == to_bytes(model)
    assert versions(tmp_path)[-1] == __version__
    opened = State(tmp_path, new_model)  # the next starts need no option
    assert opened.upgraded_from == []
    opened.close()


def test_a_snapshot_of_the_old_version_permits_the_upgrade(tmp_path):
    """The message tells to write one; the journal then has no record that must be learned."""
    factor = 1 + 2**-40
    rows = write_old(tmp_path, [2, 3, 0], factor)
    model, _ = new_model()
    model.learn_many(DATA[0][:rows], [factor * label for label in DATA[1][:rows]])
    assert versions(tmp_path)[-1] == OLD
    assert continue_folder(tmp_path, rows) == to_bytes(model)
    assert versions(tmp_path)[-1] == __version__


def test_an_interrupted_write_of_the_old_version_is_removed(tmp_path):
    rows = write_old(tmp_path, [2, 3])
    path = max((tmp_path / "journal").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    assert continue_folder(tmp_path, rows - 25) == trained_model(DATA, rows - 25)
    opened = State(tmp_path, new_model)
    assert opened.learned_record == 5
    opened.close()


def test_a_journal_that_ends_before_the_last_snapshot_is_refused(tmp_path):
    write_old(tmp_path, [1, 2, 2])
    last = max((tmp_path / "journal").iterdir())
    one = read_chain(tmp_path / "journal").files[-2]
    last.unlink()
    one.path.write_bytes(one.path.read_bytes()[: one.end - 1])
    with pytest.raises(StateError, match=r"ends at record 2, before the last snapshot \(record 3"):
        State(tmp_path, new_model)


def test_a_damaged_earlier_snapshot_leaves_nothing_to_compare(tmp_path):
    write_old(tmp_path, [2, 3])
    min((tmp_path / "snapshots").iterdir()).write_bytes(b"damaged")
    with pytest.raises(StateError, match="no earlier snapshot"):
        State(tmp_path, new_model)


def test_the_same_version_compares_nothing(tmp_path, monkeypatch):
    write_folder(tmp_path, [2, 3], DATA)
    monkeypatch.setattr(state, "check_reproduced", None)
    opened = State(tmp_path, new_model)
    assert opened.upgraded_from == []
    opened.close()


def test_check_tells_what_the_next_start_compares(tmp_path, capsys):
    write_old(tmp_path, [2, 3])
    assert main(["check", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert f"version {OLD} wrote records that are not in a snapshot" in text
    State(tmp_path, new_model).close()
    assert main(["check", str(tmp_path)]) == 0
    assert OLD not in capsys.readouterr().out


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_restored_folder_names_the_version_that_wrote_its_records(tmp_path, factor):
    old, new = tmp_path / "old", tmp_path / "new"
    rows = write_old(old, [2, 3, 2], factor)
    assert main(["restore", str(old), "--dir", str(new)]) == 0
    assert versions(new) == [OLD]
    if factor == 1.0:
        assert continue_folder(new, rows) == trained_model(DATA, rows)
        assert versions(new)[-1] == __version__
    else:
        with pytest.raises(StateError, match="does not reproduce the last snapshot"):
            State(new, new_model)


def test_a_folder_restored_up_to_a_snapshot_needs_no_comparison(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    write_old(old, [2, 3, 2], 1.5)
    assert main(["restore", str(old), "--to", "5", "--dir", str(new)]) == 0
    opened = State(new, new_model)
    assert opened.upgraded_from == []
    opened.close()


@pytest.mark.parametrize(
    "words", [["erase", "row 170", "--yes"], ["repair", "--quarantine", "7", "--yes"]]
)
def test_a_changed_journal_names_the_version_that_wrote_its_records(tmp_path, words):
    write_old(tmp_path, [2, 3, 2], 1.5)
    assert main([words[0], str(tmp_path), *words[1:]]) == 0
    with pytest.raises(StateError, match="does not reproduce the last snapshot"):
        State(tmp_path, new_model)
