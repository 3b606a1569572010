"""The chat that the page is measured against: the shortest that Streamlit's own documentation would give."""

import os

import streamlit as st
from openai import OpenAI

st.title("Bare chat")
past = [{"role": role, "content": os.environ["PAST_TEXT"]} for role in ("user", "assistant")]
said = st.session_state.setdefault("said", past * int(os.environ["PAST_TURNS"]))
for message in said:
    with st.chat_message(message["role"]):
        st.markdown(message["content"])
if text := st.chat_input("Ask"):
    with st.chat_message("user"):
        st.markdown(text)
    said.append({"role": "user", "content": text})
    stream = OpenAI().chat.completions.create(model="bench-model", messages=[said[-1]], stream=True)
    with st.chat_message("assistant"):
        said.append({"role": "assistant", "content": st.write_stream(stream)})
