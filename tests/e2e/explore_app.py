"""The Explore view alone, on the newest run of the workspace that `PLAIN_WORKSPACE` names."""

import os

import streamlit as st

from core.store import Workspace
from plain_app.views.explore import render

st.set_page_config(layout="wide", page_title="PLAIN Studio")
workspace = st.cache_resource(Workspace, max_entries=1)(os.environ["PLAIN_WORKSPACE"])
runs = workspace.runs.list()
run_id = st.query_params.get("run") or (runs[0].id if runs else None)
render(workspace, runs[0].fingerprint if runs else None, run_id)
