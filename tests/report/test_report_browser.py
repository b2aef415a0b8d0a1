"""The report in a real browser."""

import shutil

import numpy as np
import pytest
import scipy.sparse

from lgmd import LGMD
from lgmd.factors import Noise, RowCovariances, SidePosterior, TablePosterior
from lgmd.graphs import laplacian
from lgmd.report import write_report
from lgmd.solver import History

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="no Chromium with its driver: try apt-get install chromium chromium-driver"
    ),
]

FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "disable-dev-shm-usage",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
)
# What a browser with a slow machine to itself needs; nothing is asserted about it.
PATIENCE = 120


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    driver.set_script_timeout(PATIENCE)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(named_model, named_table, scores, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(named_model, path, table=named_table, title="Names", held_out=scores).as_uri()


def resize(browser, width, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(browser, theme):
    # Without motion, so that what is scrolled to is there at once.
    features = [
        {"name": "prefers-color-scheme", "value": theme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def settle(browser):
    """Wait until what was asked for is drawn."""
    browser.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")


def drawing(browser, selector):
    settle(browser)
    return browser.execute_script("return document.querySelector(arguments[0]).toDataURL()", selector)


@pytest.fixture
def page(browser, address):
    resize(browser, 1280)
    prefer(browser, "light")
    browser.get_log("browser")
    browser.get(address)
    browser.execute_script("try { localStorage.clear() } catch (error) {}")
    browser.get(address)
    settle(browser)
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    yield browser
    # Nothing that a test did upset the page's script.
    assert browser.get_log("browser") == []


def find(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector)


def column(page, number):
    """Texts of a column of the list, as they are shown."""
    script = """
    const rows = Array.from(document.querySelectorAll('table.sortable tbody tr')).filter((row) => row.offsetParent);
    return rows.map((row) => row.cells[arguments[0]].innerText);
    """
    return page.execute_script(script, number)


def test_it_opens_without_a_request_and_without_errors(page):
    loaded = page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    assert find(page, "h1").text == "Names"
    broken = "return Array.from(document.images).filter((image) => !image.complete || !image.naturalWidth).length"
    assert page.execute_script(broken) == 0
    assert page.execute_script("return document.querySelectorAll('.chart svg path.curve').length") == 3


def test_the_slider_changes_the_edges_by_keyboard(page):
    shown = find(page, ".edges-shown")
    assert shown.text == "14 of 14 edges shown"
    before = drawing(page, ".network canvas")
    slider = find(page, ".threshold-slider")
    slider.send_keys(Keys.END)
    assert shown.text == "1 of 14 edges shown"
    assert drawing(page, ".network canvas") != before
    slider.send_keys(Keys.HOME)
    assert shown.text == "14 of 14 edges shown"
    page.execute_script("document.activeElement.blur()")
    assert drawing(page, ".network canvas") == before


def test_as_many_edges_are_drawn_as_the_page_says(page):
    page.execute_script("""
    window.lines = 0;
    const plain = CanvasRenderingContext2D.prototype.lineTo;
    CanvasRenderingContext2D.prototype.lineTo = function (...place) { window.lines++; plain.apply(this, place); };
    """)
    slider = find(page, ".threshold-slider")
    for key in (Keys.HOME, Keys.ARROW_RIGHT, Keys.END):
        slider.send_keys(key)
        settle(page)
        page.execute_script("window.lines = 0; arguments[0].dispatchEvent(new Event('input'))", slider)
        settle(page)
        assert find(page, ".edges-shown").text == f"{page.execute_script('return window.lines')} of 14 edges shown"


def test_tables_sort_and_shrink_to_what_is_searched(page):
    header = find(page, "table.sortable th:nth-child(4) button")
    header.click()
    values = [float(text) for text in column(page, 3)]
    assert len(values) == 14
    assert values == sorted(values)
    header.click()
    assert [float(text) for text in column(page, 3)] == sorted(values, reverse=True)
    assert header.find_element(By.XPATH, "..").get_attribute("aria-sort") == "descending"
    names = column(page, 1)
    find(page, "table.sortable th:nth-child(2) button").click()
    assert column(page, 1) != names
    assert sorted(column(page, 1)) == sorted(names)
    places = [name for name in column(page, 1) if name.startswith("place")]
    assert places == sorted(places)
    find(page, ".table-search").send_keys("PLACE 8")
    assert len(column(page, 1)) == 2
    assert find(page, ".rows-shown").text == "2 of 14 listed edges"


def test_names_with_markup_stay_text(page, named_table):
    assert page.title == "Names"
    assert page.execute_script("return document.scripts.length") == 2
    assert page.execute_script("return document.querySelectorAll('b, img[src=x]').length") == 0
    seen = set(column(page, 1)) | set(column(page, 2))
    assert {named_table.index[0], named_table.index[1], named_table.index[2]} <= seen


def test_nodes_points_and_cells_tell_their_names(page, named_table):
    script = """
    const element = document.querySelector(arguments[0]), found = new Set();
    element.scrollIntoView({block: 'center', behavior: 'instant'});
    const box = element.getBoundingClientRect();
    for (let x = 1; x < box.width; x += 8) for (let y = 1; y < box.height; y += 8) {
      const where = {clientX: box.left + x, clientY: box.top + y, pointerType: 'mouse', bubbles: true};
      element.dispatchEvent(new PointerEvent('pointermove', where));
      const tip = document.getElementById('tip');
      if (!tip.hidden) for (const line of tip.textContent.split('\\n')) found.add(line);
    }
    return Array.from(found);
    """
    rows, columns = set(named_table.index), set(named_table.columns)
    network = page.execute_script(script, ".network canvas")
    assert rows <= set(network)
    assert "2 edges shown" in network
    assert rows <= set(page.execute_script(script, ".embedding[data-embedding='0'] canvas"))
    assert columns <= set(page.execute_script(script, ".embedding[data-embedding='1'] canvas"))
    cells = set(page.execute_script(script, ".map"))
    assert rows | columns <= cells
    assert "table: not observed" in cells


def test_drawings_zoom_move_and_change_their_axes(page):
    canvas = find(page, ".network canvas")
    before = drawing(page, ".network canvas")
    canvas.send_keys("+")
    zoomed = drawing(page, ".network canvas")
    assert zoomed != before
    canvas.send_keys(Keys.ARROW_LEFT)
    assert drawing(page, ".network canvas") not in (before, zoomed)
    canvas.send_keys("0")
    assert drawing(page, ".network canvas") == before
    event = "new WheelEvent('wheel', {deltaY: -300, cancelable: true, clientX: 300, clientY: 300})"
    wheel = f"arguments[0].dispatchEvent({event})"
    assert page.execute_script(f"return {wheel}", canvas) is False
    assert drawing(page, ".network canvas") != before
    page.execute_script("document.activeElement.blur()")
    assert page.execute_script(f"return {wheel}", canvas) is True
    before = drawing(page, ".embedding canvas")
    Select(find(page, ".axis-x")).select_by_index(2)
    assert drawing(page, ".embedding canvas") != before


def test_a_node_can_be_found_by_name(page):
    before = drawing(page, ".network canvas")
    find(page, ".find-node").send_keys("place 3")
    assert drawing(page, ".network canvas") != before


def test_the_order_of_the_maps_can_be_chosen(page):
    first, second = page.find_elements(By.CSS_SELECTOR, ".map-set")
    assert first.is_displayed()
    assert not second.is_displayed()
    find(page, "input[value=structure]").click()
    assert second.is_displayed()
    assert not first.is_displayed()


def test_colours_follow_the_system_and_the_button(page):
    def background():
        return page.execute_script("return getComputedStyle(document.body).backgroundColor")

    light, painted = background(), drawing(page, ".network canvas")
    find(page, "#theme").click()
    dark = background()
    assert dark != light
    assert drawing(page, ".network canvas") != painted
    find(page, "#theme").click()
    assert background() == light
    page.execute_script("try { localStorage.clear() } catch (error) {}")
    page.refresh()
    prefer(page, "dark")
    assert background() == dark


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(page, width):
    resize(page, width)
    page.refresh()
    settle(page)
    for details in page.find_elements(By.TAG_NAME, "details"):
        page.execute_script("arguments[0].open = true", details)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def large_model(n, p, k):
    """A model as a fit would leave it, with as many edges and names as a report holds."""
    rng = np.random.default_rng(0)

    def graph(nodes):
        i = rng.integers(0, nodes - 1, 2 * nodes)
        j = np.minimum(nodes - 1, i + 1 + rng.integers(0, 30, len(i)))
        upper = scipy.sparse.csr_array((rng.random(len(i)), (i, j)), shape=(nodes, nodes))
        return scipy.sparse.csr_array(laplacian(upper + upper.T) + 0.1 * scipy.sparse.eye_array(nodes))

    def posterior(factors, intercepts):
        mean = np.column_stack([factors, intercepts])
        return SidePosterior(mean, RowCovariances.zero(mean.shape, mean.dtype), 0.0, np.ones(k), 1.0)

    model = LGMD(k)
    model.sample_factors_, model.feature_factors_ = rng.standard_normal((n, k)), rng.standard_normal((p, k))
    model.sample_intercepts_, model.feature_intercepts_ = rng.standard_normal(n), rng.standard_normal(p)
    model.intercept_, model.scale_, model.noise_std_, model.status_ = 0.0, 1.0, 1.0, "converged"
    model.posterior_ = TablePosterior(
        posterior(model.sample_factors_, model.sample_intercepts_),
        posterior(model.feature_factors_, model.feature_intercepts_),
        0.0,
        Noise(rng.random(n), rng.random(p)),
    )
    model.sample_graph_, model.feature_graph_ = graph(n), graph(p)
    model.history_ = History()
    model.sample_names_in_ = np.array([f"cell {i:05d} ACGTACGTACGT" for i in range(n)])
    model.feature_names_in_ = np.array([f"GENE{i:04d}" for i in range(p)], dtype=object)
    return model


@pytest.mark.slow
def test_twenty_thousand_rows_fit_into_a_small_page_that_works(browser, tmp_path):
    model = large_model(20_000, 2_000, 20)
    table = scipy.sparse.random_array((20_000, 2_000), density=0.02, format="csr", rng=np.random.default_rng(1))
    path = write_report(model, tmp_path / "large.html", table=table)
    assert path.stat().st_size < 5_000_000
    browser.get_log("browser")
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.get(path.as_uri())
    settle(browser)
    assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
    texts = [element.text for element in browser.find_elements(By.CSS_SELECTOR, ".edges-shown")]
    assert texts[0].endswith("of 20,000 edges shown")
    find(browser, ".threshold-slider").send_keys(Keys.HOME)
    assert find(browser, ".edges-shown").text == "20,000 of 20,000 edges shown"
    settle(browser)
    # Time of the page's own thread: what it would take on a machine that does nothing else.
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    assert 0 < next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration") < 5
    assert browser.get_log("browser") == []
