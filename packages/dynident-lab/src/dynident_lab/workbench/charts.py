"""Charts of measured signals: thinned without losing a peak, raw data on zoom, windows selected by dragging."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from nicegui import ui

from dynident.arrays import Array
from dynident.pages import printable
from dynident.signals.filters import kept_samples
from dynident_lab.workbench.layout import COLOURS

MOST = 1500  # points of a curve sent to the browser at once
INK = "#7c8791"  # readable on light and dark backgrounds
OFTEN = 0.05  # shortest interval of answers to zooming [s]


def options(names: Sequence[str], unit: str, zoom: bool = True) -> dict[str, Any]:
    """Return a chart over time with one line per name; names are data and never markup."""
    line = {"type": "line", "showSymbol": False, "lineStyle": {"width": 1.2}, "animation": False, "data": []}
    axis = {
        "type": "value",
        "axisLabel": {"color": INK},
        "axisLine": {"lineStyle": {"color": INK}},
        "nameTextStyle": {"color": INK},
    }
    faint = {"splitLine": {"lineStyle": {"color": INK, "opacity": 0.2}}}
    made: dict[str, Any] = {
        "animation": False,
        "color": list(COLOURS),
        "grid": {"left": 56, "right": 18, "top": 34, "bottom": 66 if zoom else 34},
        "legend": {"type": "scroll", "textStyle": {"color": INK}, "pageTextStyle": {"color": INK}, "top": 2, "left": 160},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {**axis, "name": "t [s]", "nameLocation": "middle", "nameGap": 20, "splitLine": {"show": False}},
        "yAxis": {**axis, **faint, "name": unit, "nameTextStyle": {"color": INK, "align": "left"}, "scale": True},
        "series": [{**line, "name": printable(name)} for name in names],
    }
    if zoom:
        made["dataZoom"] = [
            {"type": "inside", "filterMode": "none"},
            {"type": "slider", "filterMode": "none", "height": 18, "bottom": 8, "textStyle": {"color": INK}},
        ]
        made["brush"] = {
            "xAxisIndex": 0,
            "toolbox": [],
            "transformable": True,
            "throttleType": "debounce",
            "throttleDelay": 100,
        }
    return made


def points(t: Array, y: Array, low: float, high: float, most: int = MOST) -> list[list[float]]:
    """Return a curve between two times, with the extremes of every interval."""
    first, last = np.searchsorted(t, [low, high])
    first, last = max(0, int(first) - 1), min(t.size, int(last) + 1)
    part, times = y[first:last], t[first:last]
    keep = kept_samples((np.nan_to_num(part),), most) if part.size else np.zeros(0, dtype=np.int64)
    table = np.column_stack([np.round(times[keep], 5), [float(f"{x:.6g}") for x in part[keep]]])
    return table[np.isfinite(table[:, 1])].tolist()  # type: ignore[no-any-return]


class LogChart:
    """A signal of a log over time.

    Parameters
    ----------
    t : ndarray, (N,)
        Times [s].
    y : ndarray, (N, n)
        Signal.
    names : sequence of str
        Channels.
    unit : str
        Title of the axis.
    windows : mapping of str to pair of float
        Windows to show.
    selected : callable, optional
        Called with a window selected by dragging.
    """

    def __init__(
        self,
        t: Array,
        y: Array,
        names: Sequence[str],
        unit: str,
        windows: dict[str, tuple[float, float]],
        selected: Callable[[tuple[float, float]], None] | None = None,
    ) -> None:
        self.t, self.y, self.selected = t, y, selected
        self._answered, self._range = 0.0, (float(t[0]), float(t[-1]))
        made = options(names, unit)
        made["xAxis"] |= {"min": float(t[0]), "max": float(t[-1])}
        for i, series in enumerate(made["series"]):
            series["data"] = points(t, y[:, i], *self._range)
        if made["series"]:
            made["series"][0]["markArea"] = _areas(windows)
        self.chart = ui.echart(made).classes("wb-chart tall").props('role=img aria-label="Signals of the log over time"')
        self.chart.on("chart:datazoom", self._zoomed, ["batch", "start", "end"])
        self.chart.on("chart:brushEnd", self._brushed, ["areas"])

    def brush(self, active: bool) -> None:
        """Let dragging select a window, or zoom."""
        kind: Any = {"brushType": "lineX", "brushMode": "single"} if active else {"brushType": False}
        self.chart.run_chart_method("dispatchAction", {"type": "takeGlobalCursor", "key": "brush", "brushOption": kind})

    def _brushed(self, event: Any) -> None:
        areas = event.args.get("areas") or []
        found = areas[0].get("coordRange") if areas else None
        if self.selected is not None and isinstance(found, list) and len(found) == 2:
            low, high = (float(np.clip(x, self.t[0], self.t[-1])) for x in sorted(map(float, found)))
            if high - low > 0.0:
                self.selected((round(low, 3), round(high, 3)))

    def _zoomed(self, event: Any) -> None:
        """Send the raw data of the present range."""
        state = (event.args.get("batch") or [event.args])[0]
        start, end = float(state.get("start") or 0.0), float(state.get("end") if state.get("end") is not None else 100.0)
        length = float(self.t[-1] - self.t[0])
        self._range = (self.t[0] + 0.01 * start * length, self.t[0] + 0.01 * end * length)
        if time.monotonic() - self._answered >= OFTEN:
            self._answer()
        else:
            ui.timer(OFTEN, self._answer, once=True)

    def _answer(self) -> None:
        self._answered = time.monotonic()
        low, high = self._range
        margin = 0.5 * (high - low)  # range that a small shift brings into view
        data = [{"data": points(self.t, self.y[:, i], low - margin, high + margin)} for i in range(self.y.shape[1])]
        self.chart.run_chart_method("setOption", {"series": data})


def _areas(windows: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return windows as coloured areas."""
    colours = {"training": "rgba(0,114,178,0.14)", "validation": "rgba(0,158,115,0.2)"}
    label = {"show": True, "position": "insideTop", "color": INK}
    data = [[{"xAxis": w[0], "name": use, "itemStyle": {"color": colours[use]}}, {"xAxis": w[1]}] for use, w in windows.items()]
    return {"silent": True, "label": label, "data": data}
