"""The app, opened on a workspace in a given state."""

from collections.abc import Callable, Iterator

import pytest
from app_stages import Stage, new_app
from streamlit.testing.v1 import AppTest


@pytest.fixture(scope="session")
def small_demo():
    from core.data.demo import load_demo

    return load_demo(n_instances=120)


@pytest.fixture
def stage(tmp_path, small_demo, monkeypatch) -> Iterator[Stage]:
    monkeypatch.setenv("PLAIN_WORKSPACE", str(tmp_path / "space"))
    monkeypatch.delenv("PLAIN_FILE", raising=False)
    made = Stage(tmp_path / "space", small_demo)
    yield made
    made.close()


@pytest.fixture
def open_app(stage) -> Callable[..., AppTest]:
    """Open the app on a page, with the stage's run and what else is given in the address."""

    def open_page(page: str = "data", run: bool = True, **address: str) -> AppTest:
        app = new_app()
        for name, value in address.items():
            app.query_params[name] = value
        if run and stage.run_id:
            app.query_params["run"] = stage.run_id
        app.run()
        if page != "data":
            app.switch_page(f"views/{page}/page.py").run()
        return app

    return open_page
