# One server as an image. `docker build -t turnfold .` makes it, compose.yaml runs two of it; docs/scale.md says how.
FROM python:3.13-slim-bookworm AS build
COPY requirements-server.lock /
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --only-binary :all: \
        --require-hashes -r /requirements-server.lock
WORKDIR /app
COPY app.py ./
COPY api api
COPY component component
COPY graph graph
COPY prompt prompt
COPY .streamlit .streamlit
COPY deploy/with-secrets deploy/with-secrets
# The running server may write nothing here.
RUN /venv/bin/python -m compileall -q app.py api component graph prompt

FROM python:3.13-slim-bookworm
RUN install --directory --owner=10001 --group=10001 --mode=0700 /data
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
USER 10001:10001
# Without an address for browsers, which counts nowhere else, Streamlit asks a web site for this machine's own.
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    TURNFOLD_DATA_DIR=/data \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_BROWSER_SERVER_ADDRESS=localhost
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/health', timeout=4)"]
ENTRYPOINT ["/app/deploy/with-secrets"]
CMD ["streamlit", "run", "app.py"]
