"""The other parts of a report say what the data say."""

import re

from playwright.sync_api import expect

from reports import Reports, changed, data_of, said


def test_the_headline_says_what_was_reached(forward, show):
    page, data = show(forward), data_of(forward)
    assert page.locator("h1").inner_text() == data["name"]
    assert page.locator(".headline .status").inner_text() == "✓ optimal in the model of h200: proved"
    assert data["headline"].startswith("I = 2048 cycles (optimal in the model of h200: proved), ")
    assert "2048" in page.locator("#loop-0 > .figures.cycles").inner_text()
    assert "3" in page.locator("#loop-0 > .figures:not(.cycles)").inner_text()
    bound = data["loops"][0]["bound"].removeprefix("I >= 2048: ")
    assert said(page, "#loop-0 > .bound") == f"Bound {bound}"


def test_the_interval_is_said_once(forward, show):
    text = show(forward).locator("#main").text_content()
    assert re.findall(r"I\W{0,4}2048", text) == ["I2048"], "the name of the figure, and the figure"
    assert not re.search("interval of 2048|2048 cycles later", text)


def test_what_is_open_stands_next_to_the_interval(reports: Reports, forward, show):
    def open_(data: dict) -> None:
        schedule = data["loops"][0]["schedule"]
        schedule["status"], schedule["lower_bound"]["interval"] = "feasible", 2000

    page = show(changed(forward, reports.folder / "open.html", open_))
    assert page.locator(".headline .status").inner_text() == "≈ feasible"
    assert "I ≥ 2000 gap 2.4 %" in " ".join(page.locator("#loop-0 > .figures:not(.cycles)").inner_text().split())


def test_an_infeasible_loop_says_why(infeasible, show):
    page, data = show(infeasible), data_of(infeasible)
    assert page.locator(".headline .status").inner_text() == "✕ infeasible: proved"
    assert data["headline"] in page.locator(".headline").inner_text()
    assert page.locator("[data-view=timeline]").count() == 0
    text = said(page, "#explanation-0")
    assert text.startswith("Why there is no schedule")
    for entry in data["loops"][0]["rejected"]:
        assert entry["intervals"] in text
        for line in entry["why"].split("\n"):
            assert line in text
    for entry in data["loops"][0]["what_ifs"]:
        assert entry["change"] in text


def test_an_explanation_is_there_whole(reports: Reports, show):
    report = reports.of("conflict", "toy-attention-blocking", "--compute-groups", "1")
    page, data = show(report), data_of(report)
    text = said(page, "#explanation-0")
    loop = data["loops"][0]
    assert len(loop["rejected"]) == 1 and len(loop["what_ifs"]) > 4
    for entry in loop["rejected"]:
        for line in entry["why"].split("\n"):
            assert line in text
    rows = page.locator(".what-ifs tbody tr")
    rows.first.scroll_into_view_if_needed()
    assert rows.count() == len(loop["what_ifs"])
    for index, figures in enumerate(loop["explanation"]["what_ifs"]):
        assert loop["what_ifs"][index]["change"] in rows.nth(index).inner_text()
        cells = rows.nth(index).locator("td").all_inner_texts()
        assert cells[1] == str(figures["initiation_interval"])
        assert cells[2] == ("no change" if figures["percent"] == 0 else f"−{abs(figures['percent']):.1f} %")


def test_registers_and_memories_have_their_peaks_and_limits(forward, show):
    page, loop = show(forward), data_of(forward)["loops"][0]
    captions = page.locator("#registers-0 figcaption")
    captions.first.scroll_into_view_if_needed()
    assert captions.count() == len(loop["registers"])
    for index, curve in enumerate(loop["registers"]):
        peak = curve["reserve"] + max(words for _, words in curve["live"])
        text = captions.nth(index).inner_text()
        assert f"group {curve['group']}" in text and f"peak {peak} " in text
        assert f"granted {curve['granted']}, limit {curve['limit']}" in text
    memory = loop["memories"][0]
    peak = max(amount for _, amount in memory["live"])
    text = said(page, "#memories-0 figcaption").replace("\u202f", "")
    assert f"peak {peak} bytes" in text and f"capacity {memory['capacity']}" in text
    for buffer in memory["buffers"]:
        life = page.locator(f'[data-view=lives] .bar[data-buffer="{buffer["operation"]}"][data-iteration="0"]')
        assert life.get_attribute("data-start") == str(buffer["start"])
        assert life.get_attribute("data-end") == str(buffer["end"])


def test_channels_and_objectives_are_listed(forward, show):
    page, schedule = show(forward), data_of(forward)["loops"][0]["schedule"]
    for channel in schedule["channels"]:
        groups = f'[data-from="{channel["from"]}"][data-to="{channel["to"]}"]'
        row = page.locator(f'[data-channel="{channel["buffer"]}"]{groups}')
        assert row.locator("td").nth(4).text_content() == str(channel["depth"])
    text = said(page, ".objectives").replace("\u202f", "")
    for objective in schedule["objectives"]:
        assert objective["level"].replace("_", " ") in text and str(objective["value"]) in text
    assert page.locator(".seconds tr").count() == len(schedule["seconds"])


def test_the_graph_has_every_operation_and_dependence(forward, show):
    page, graph = show(forward), data_of(forward)["loops"][0]["schedule"]["problem"]["graph"]
    page.wait_for_selector(".node")
    assert page.locator(".node").count() == len(graph["operations"])
    ends = "lines => lines.map(l => [l.dataset.from, l.dataset.to, +l.dataset.distance])"
    lines = page.locator(".dependence").evaluate_all(ends)
    assert sorted(lines) == sorted([d["from"], d["to"], d.get("distance", 0)] for d in graph["dependences"])
    back = [d for d in graph["dependences"] if d.get("distance", 0) > 0]
    assert page.locator(".dependence.back text").count() == len(back) > 0


def test_loops_of_a_kernel_stand_below_each_other(reports: Reports, show):
    report = reports.kernel("attention_forward_causal")
    page, data = show(report), data_of(report)
    assert len(data["loops"]) == 2 and data["kernel"]
    assert page.locator("article h2").count() == 2
    # A selection is of one loop.
    page.locator('#loop-1 tr[data-row="k"] .pick').click()
    expect(page.locator("#loop-1 .bar.selected")).not_to_have_count(0)
    assert page.locator("#loop-0 .bar.selected").count() == 0


def test_the_worst_status_is_the_page_s_and_wrapped_pieces_have_primes(reports: Reports, compiled, show):
    def change(data: dict) -> None:
        first = data["loops"][0]
        first["schedule"]["status"] = "optimal"
        data["kernel"] = None
        data["loops"].append({**first, "schedule": {**first["schedule"], "status": "unknown"}})
        schedule = first["schedule"]
        operation = schedule["operations"][-1]
        operation["cycle"], operation["stage"] = 2 * schedule["initiation_interval"] - 1, 1

    page, data = show(changed(compiled, reports.folder / "worst.html", change)), data_of(compiled)
    assert page.locator(".headline .status").inner_text() == "? unknown"
    name = data["loops"][0]["schedule"]["operations"][-1]["name"]
    pieces = page.locator(f'#loop-0 [data-view=steady] .bar[data-name="{name}"]')
    found = set(pieces.evaluate_all("bars => bars.map(b => b.dataset.stage + ' ' + (b.dataset.slot === '0'))"))
    assert {"1 false", "2 true"} <= found


def test_code_and_schedule_show_each_other(compiled, show):
    page, data = show(compiled), data_of(compiled)
    code = data["code"]
    lines = page.locator(".code .line")
    assert lines.count() == len(code["text"].split("\n"))
    mark = code["lines"][0]
    page.locator(".order .pick").filter(has_text=mark["operation"]).first.click()
    line = page.locator(f'.line[data-line="{mark["line"]}"]')
    expect(line).to_have_class("line selected")
    pane, box = page.locator(".code").bounding_box(), line.bounding_box()
    assert pane["y"] <= box["y"] <= pane["y"] + pane["height"]
    assert code["text"].split("\n")[mark["line"] - 1].strip() in said(page, ".snippet")
    other = next(m for m in code["lines"] if m["operation"] != mark["operation"] and m["line"] != mark["line"])
    page.locator(f'.line[data-line="{other["line"]}"] button').click()
    expect(line).not_to_have_class("line selected")
    assert page.locator(".details").get_attribute("data-selected") in {
        m["operation"] for m in code["lines"] if m["line"] == other["line"]
    }
