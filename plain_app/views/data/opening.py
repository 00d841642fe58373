"""Ways to bring data: a file from this computer, a path on the server's disk, the demos."""

from typing import Literal

import streamlit as st

from core.errors import PlainError
from plain_app import state
from plain_app.services import data

TYPES = (
    *("csv", "tsv", "txt", "parquet", "json", "jsonl", "ndjson", "arff", "mat", "npz"),
    *("npy", "svm", "libsvm", "svmlight", "xml", "ft", "manifest", "tab", "zip", "gz"),
)
MAX_UPLOAD_MB = 200
PATH = "data.path"
LARGER = f"An upload has at most {MAX_UPLOAD_MB} MB. "


def draw_opening() -> None:
    """Draw every way to bring data."""
    generation = state.recall("data.generation", 0)
    with st.container(key="data.upload_box"):
        st.file_uploader(
            "A file with candidate labels",
            type=TYPES,
            key=f"data.upload_{generation}",
            max_upload_size=MAX_UPLOAD_MB,
            on_change=on_upload,
            args=(f"data.upload_{generation}",),
            help="CSV, Parquet, JSON, ARFF, MATLAB, libsvm, npz, Label Studio; packed or not; "
            "pictures as a zip file. Read here, sent nowhere.",
        )
    _draw_path()
    _draw_demos()


def _draw_path() -> None:
    """Draw the way in for files that are too large to upload, or say what it takes."""
    if not data.can_open_paths():
        st.caption(
            LARGER + "For more, whoever runs this server can open a folder of it "
            "(`plain app --data-folder DIR`)."
        )
        return
    with st.form("data.path_form", border=False, enter_to_submit=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Or its path on the server, of any size",
                key=PATH,
                max_chars=1000,
                placeholder="/home/me/photos.csv",
                help=LARGER + "A file or a folder of pictures that is on the server's disk "
                "already is read where it is, and never changed.",
            )
            st.form_submit_button("Open", key="data.open_path", on_click=on_path)


def _draw_demos() -> None:
    kind: Literal["primary", "secondary"] = (
        "secondary" if state.current().fingerprint else "primary"
    )
    with st.container(horizontal=True):
        st.button("Open the demo", key="data.demo", on_click=on_demo, args=("demo",), type=kind)
        st.button(
            "Open the crowd's demo",
            key="data.demo_crowd",
            on_click=on_demo,
            args=("demo-crowd",),
            help="1,200 messages to a town hall, each labelled by three of five people: one is "
            "careful, one in a hurry, one generous, one middling, one guesses. See Sources tell "
            "who is who.",
        )


def on_upload(key: str) -> None:
    """Copy the upload to the disk and clear the widget."""
    upload = state.recall(key)
    if upload is None:
        return
    drop_staged()
    try:
        state.remember("data.staged", data.stage(upload, upload.name))
    except PlainError as error:
        state.remember("data.refused", (error.title, error.detail, error.hint))
    state.remember("data.generation", state.recall("data.generation", 0) + 1)


def on_path() -> None:
    """Look at the file whose path was typed, where it is."""
    drop_staged()
    try:
        state.remember("data.staged", data.stage_path(str(state.recall(PATH) or "")))
    except PlainError as error:
        state.remember("data.refused", (error.title, error.detail, error.hint))


def on_demo(word: str) -> None:
    drop_staged()
    state.remember("data.wants_demo", word)


def drop_staged() -> None:
    """Forget the file that is looked at, and what was said about it."""
    staged = state.recall("data.staged")
    if staged is not None:
        data.discard(staged)
    state.forget("data.staged", "data.loading", "data.refused")
    state.forget_all("data.map_")
