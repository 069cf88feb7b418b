"""A browser for all tests, and pages that remember what went wrong and what they asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from reports import EXAMPLES, Reports, chromium, hostile_graph

DESKTOP = {"width": 1400, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In containers there are no user namespaces for the sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    return Reports(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="session")
def forward(reports: Reports) -> Path:
    return reports.kernel("attention_forward")


@pytest.fixture(scope="session")
def infeasible(reports: Reports) -> Path:
    kernel = str(EXAMPLES / "gemm_tma.ttir")
    return reports.of("infeasible", kernel, "--machine", "h200", "--max-interval", "500")


@pytest.fixture(scope="session")
def hostile(reports: Reports) -> Path:
    return reports.graph("hostile", hostile_graph(), "--no-explain")


@pytest.fixture(scope="session")
def compiled(reports: Reports) -> Path:
    """The folder that `twill compile` writes, with the trace of an H200 in it."""
    return reports.compiled("attention_forward", "attention_forward.operations")


@pytest.fixture
def show(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a report; afterwards, no page may have complained or asked for anything but itself."""
    contexts, faults = [], []

    def opened(report: Path, viewport: dict = DESKTOP, **options: str) -> Page:
        context = browser.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        url = report.as_uri()
        page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if request.url not in (url, "data:,") else None)
        page.goto(url)
        page.wait_for_selector("main")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
