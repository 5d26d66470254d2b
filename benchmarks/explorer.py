"""How long a slider of the explorer takes: from the key that moves it to the answer that is seen.

    python benchmarks/explorer.py                        # -r*log(1+n), 12 moves
    python benchmarks/explorer.py "-a*n^b" --moves 30 --browser /usr/bin/chromium

Milliseconds in a headless browser on this machine, with the server beside it: what a person waits.
A busy machine adds its own; the processor time of the server beside them tells what does not. The
aim is 300 ms for a closed form.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import Error, sync_playwright


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def spent(pid):
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def moves(page, pid, count):
    """For each move the milliseconds until another answer stands, and those of the server."""
    slider = page.get_by_role("slider").first
    for k in range(count):
        before, used = page.inner_text(".explored"), spent(pid)
        began = time.perf_counter()
        slider.press("ArrowRight" if k < count / 2 else "ArrowLeft")
        page.wait_for_function(
            "before => (document.querySelector('.explored') || {innerText: before}).innerText"
            " !== before",
            arg=before,
            polling=10,
        )
        waited = time.perf_counter() - began
        page.wait_for_timeout(400)  # what is left of the last move is not of the next one
        yield 1000 * waited, 1000 * (spent(pid) - used)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formula", nargs="?", default="-r*log(1+n)")
    parser.add_argument("--moves", type=int, default=12)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(args)
    if asked.browser is None:
        parser.error("no chromium; apt-get install chromium, or --browser PATH")
    port = free_port()
    command = [sys.executable, "-m", "farfield", "explore", asked.formula, "--headless"]
    server = subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=asked.browser, args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            for _ in range(120):
                try:
                    page.goto(f"http://127.0.0.1:{port}")
                    break
                except Error:
                    time.sleep(0.5)
            page.wait_for_selector(".numbers .value", timeout=60_000)
            page.wait_for_timeout(2000)
            found = list(moves(page, server.pid, asked.moves))
            browser.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
    waited, used = (statistics.median(column) for column in zip(*found, strict=True))
    if asked.json:
        print(json.dumps({"formula": asked.formula, "load": os.getloadavg()[0], "moves": found}))
        return
    print(
        f"{asked.formula}: {waited:.0f} ms a move, median of {asked.moves}, slowest "
        f"{max(w for w, _ in found):.0f}; processor time of the server {used:.0f} ms; load "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
