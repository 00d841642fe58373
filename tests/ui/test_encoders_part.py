"""Pictures in the app: chosen on Data, encoded when loaded, seen wherever instances are."""

import io
import zipfile

from app_stages import texts
from PIL import Image

from core.engine.config import PlainConfig
from core.runs.worker import run_training
from plain_app.services import explore, pictures
from plain_app.services.workspace import workspace


def picture(shade):
    content = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 90, 255 - shade)).save(content, "PNG")
    return content.getvalue()


def packed(broken=()):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        rows = ["picture,labels"]
        for i in range(12):
            archive.writestr(f"img/{i}.png", b"no" if i in broken else picture(20 * i))
            rows.append(f"img/{i}.png,{'red|dark' if i < 6 else 'blue|dark' if i % 2 else 'blue'}")
        archive.writestr("table.csv", "\n".join(rows))
    return content.getvalue()


def upload(app, name, content):
    return app.file_uploader(key="data.upload_0").upload(name, content, "application/zip").run()


def test_a_zip_of_pictures_is_encoded_when_loaded_and_seen(stage, open_app):
    app = upload(open_app(), "pictures.zip", packed(broken={3}))
    assert not app.exception
    assert app.selectbox(key="data.map_encode_picture").value == "efficientnet"
    assert "12 pictures by efficientnet, 1,280 features each" in texts(app)
    app.button(key="data.load").click().run()
    assert not app.exception
    (stored,) = workspace().datasets()
    assert (stored.n_instances, stored.n_features, stored.n_labels) == (12, 1280, 3)
    seen = [pictures.thumbnail(stored.fingerprint, "picture", row) for row in (0, 3)]
    assert seen[0].startswith("data:image/jpeg;base64,")
    assert seen[1] is None
    run = workspace().runs.create(stored.fingerprint, PlainConfig(epochs=2))
    run_training(workspace(), run.id)
    results = explore.explored(run.id)
    assert results.picture_column == "picture"
    assert results.picture(0) == seen[0]
    assert results.full_picture(0) is not None


def test_a_table_without_its_pictures_says_so_and_is_loaded_without_features(stage, open_app):
    rows = "\n".join(f"img/{i}.png,red" if i % 2 else f"img/{i}.png,blue" for i in range(12))
    app = open_app()
    app = (
        app.file_uploader(key="data.upload_0")
        .upload("t.csv", f"picture,labels\n{rows}".encode(), "text/csv")
        .run()
    )
    assert app.selectbox(key="data.map_encode_picture").value == "none"
    (said,) = [one.value for one in app.info if "img/0.png" in one.value]
    assert "one zip file" in said
    app.selectbox(key="data.map_encode_picture").set_value("efficientnet").run()
    app.button(key="data.load").click().run()
    assert "not used as features" in texts(app)
    assert workspace().datasets() == []
    app.selectbox(key="data.map_encode_picture").set_value("none").run()
    app.button(key="data.load").click().run()
    assert not app.exception
    (stored,) = workspace().datasets()
    assert not workspace().load_dataset(stored.fingerprint).has_features


def test_words_need_no_child_and_nothing_chosen_is_said(stage, open_app):
    rows = "\n".join(f"what is said in line {i},{'a|b' if i % 2 else 'b|c'}" for i in range(12))
    app = open_app()
    app = app.file_uploader(key="data.upload_0")
    app = app.upload("t.csv", f"text,labels\n{rows}".encode(), "text/csv").run()
    app.selectbox(key="data.map_encode_text").set_value("none").run()
    assert "votes and label graph alone" in texts(app)
    app.selectbox(key="data.map_encode_text").set_value("words").run()
    assert "votes and label graph alone" not in texts(app)
    app.button(key="data.load").click().run()
    assert not app.exception
    (stored,) = workspace().datasets()
    assert stored.n_features > 3
