"""Train: another method is chosen, set and started; what it leaves is shown."""

import pytest
from finished_run import keep_map

from core.methods.choice import method_config
from core.runs import worker


@pytest.fixture
def launched(monkeypatch):
    found = []
    monkeypatch.setattr("core.runs.worker.launch", lambda space, run_id: found.append(run_id))
    monkeypatch.setattr("core.runs.worker.start_queued", lambda space: None)
    return found


def texts(app):
    return " ".join(str(one.value) for one in (*app.markdown, *app.caption))


def test_a_method_is_started_with_its_own_settings(stage, open_app, launched):
    stage.set("loaded")
    app = open_app("train")
    assert not [one for one in app.number_input if one.key == "train.pml-ni.lam"]
    app.selectbox(key="train.method").select("pml-ni").run()
    assert not app.exception
    assert "assumes: False candidates" in texts(app)
    lam = app.number_input(key="train.pml-ni.lam")
    assert "From 1e-06 to 1e+06" in lam.help
    assert not [one for one in app.segmented_control if one.key == "train.preset"]
    lam.set_value(2.0).run()
    app.selectbox(key="train.expected_false").select("few").run()
    app.button(key="train.start").click().run()
    assert not app.exception
    run = stage.space.runs.get(launched[0])
    assert run.name == run.config.method.name == "pml-ni"
    assert dict(run.config.method.settings)["lam"] == 2.0
    assert run.config.expected_false == (0.0, 0.05)


def test_going_back_to_plain_leaves_no_method(stage, open_app, launched):
    stage.set("loaded")
    app = open_app("train")
    app.selectbox(key="train.method").select("ml-knn").run()
    app.selectbox(key="train.method").select("PLAIN").run()
    app.button(key="train.start").click().run()
    assert stage.space.runs.get(launched[0]).config.method is None


@pytest.mark.parametrize(("name", "shows"), [("ml-knn", "has no epochs"), ("pml-ni", "")])
def test_a_methods_run_shows_what_it_has(name, shows, stage, open_app):
    stage.set("loaded")
    fingerprint = stage.space.datasets()[0].fingerprint
    run = stage.space.runs.create(fingerprint, method_config(name), name)
    worker.run_training(stage.space, run.id)
    keep_map(stage.space, run.id)
    stage.run_id = run.id
    app = open_app("train")
    assert not app.exception
    assert shows in texts(app)
    made = stage.space.runs.get(run.id).epoch
    (listed,) = (one.value["epochs"] for one in app.dataframe if "epochs" in one.value)
    assert made in listed.tolist()
    assert (made == run.config.epochs) == bool(shows)  # the other ends before its most
    key = "train.section_at_once" if shows else "train.section"
    options = app.segmented_control(key=key).options
    assert ("Curves" in options) == (not shows)
    for section in options:
        app.segmented_control(key=key).set_value(section).run()
        assert not app.exception
    (used,) = (one.value for one in app.dataframe if "setting" in one.value)  # the log is open
    said = dict(zip(used["setting"], used["value"], strict=True))
    own = {f"{name} {one}" for one, _ in run.config.method.settings}
    assert said["method"] == name
    of_run = {"expected_false", "seed", "device", "cluster", "epochs", "threshold"}
    assert said.keys() == {"method"} | own | of_run  # none that only PLAIN has
    for page in ("explore", "compare", "export"):
        app.switch_page(f"views/{page}/page.py").run()
        assert not app.exception
