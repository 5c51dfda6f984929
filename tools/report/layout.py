# SPDX-License-Identifier: MIT
"""Where things stand in the pictures of build/report.html: places and widths in percent of
the picture, from the data alone. page.html draws them."""

# Percent: a frame or a span that is narrower is not seen, or has no room for a name.
NARROWEST, NAMED = 0.05, 2.5


def instructions(form: dict) -> dict[int, str]:
    """Offset from the site: the instruction that a form has there."""
    at, found = 0, {}
    for length, text in zip(form["insns"], form.get("text", [])):
        # Negative: the rest of an earlier form, which control does not reach.
        if length > 0:
            found[at] = text.replace("\t", " ")
        at += abs(length)
    return found


def boxes(row: dict) -> list[dict]:
    """One box for each boundary at which a task was held, in the order of addresses."""
    old, new = map(instructions, row["forms"])
    findings = [f for f in row["findings"] if not f["between"]]
    harmed = {at for f in findings for at in f["held"]}
    # Of a trampoline or a table the lab says how many boundaries there were, and which did
    # harm.
    places = sorted({*row["around"], *old, *harmed} if old else harmed)
    made = []
    for at in places:
        why = [f["text"] for f in findings if at in f["held"]]
        text = old.get(at, "")
        change = f"{text} → {new.get(at, '(inside an instruction)')}; " if text else ""
        made.append({"text": text or f"{at:+d}", "own": not text, "bad": bool(why),
                     "title": f"held at {at:+d}: {change}"
                              + ("; ".join(dict.fromkeys(why)) or "never wrong")})
    more = row["boundaries"] - len(made)
    if not old and more > 0:
        made.append({"text": f"{more} boundaries", "own": True, "bad": False,
                     "title": f"held at {more} boundaries: never wrong"})
    return made


def matrix(lab: dict) -> list[dict]:
    """The lab's rows, with their boxes, and the fate of other CPUs between two writes."""
    return [row | {"boxes": boxes(row), "between": "; ".join(dict.fromkeys(
        f["text"] for f in row["findings"] if f["between"]))} for row in lab["schemes"]]


def bars(figures: list[dict], linux: dict[str, dict]) -> list[dict]:
    """Figures by name, each with a bar a port, and Linux's under it where it is known. Bars of
    one figure have one scale."""
    groups = {}
    for figure in figures:
        group = groups.setdefault(figure["name"], {
            "name": figure["name"].replace("_", " "), "unit": figure["unit"], "bars": []})
        group["bars"].append({"who": figure["arch"], "linux": False, "value": figure["value"],
                              "limit": figure["limit"]})
        if figure["name"] in linux.get(figure["arch"], {}):
            group["bars"].append({"who": "Linux", "linux": True, "limit": None,
                                  "value": linux[figure["arch"]][figure["name"]]})
    for group in groups.values():
        most = max(max(b["value"], b["limit"] or 0) for b in group["bars"])
        for bar in group["bars"]:
            bar["width"] = 100 * bar["value"] / most
            bar["at"] = None if bar["limit"] is None else 100 * bar["limit"] / most
    return list(groups.values())


def timeline(events: list[dict], levels: int = 2) -> dict:
    """The calls of each task, the outermost levels, from the first call to the last return.
    Events are Chrome's: ts and dur in microseconds of the kernel's clock."""
    names = {e["tid"]: e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    calls = sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"]))
    begin = calls[0]["ts"] if calls else 0
    end = max((e["ts"] + e["dur"] for e in calls), default=0)
    percent = 100 / ((end - begin) or 1)
    rows = {}
    for e in calls:
        row = rows.setdefault(e["tid"], {"name": names.get(e["tid"], str(e["tid"])),
                                         "open": [], "bars": []})
        while row["open"] and row["open"][-1] <= e["ts"]:
            row["open"].pop()
        depth = len(row["open"])
        row["open"].append(e["ts"] + e["dur"])
        width = e["dur"] * percent
        if depth < levels and width >= NARROWEST:
            row["bars"].append({
                "left": (e["ts"] - begin) * percent, "width": width, "depth": depth,
                "name": e["name"] if width > NAMED else "",
                "title": f"{e['name']}: at {e['ts']:.1f} us for {e['dur']:.1f} us on CPU "
                         f"{e['args']['cpu']}"})
    return {"begin": begin, "end": end,
            "rows": [row for row in rows.values() if row["bars"]]}


def flames(folded: list[str]) -> dict:
    """A flame graph: each frame as wide as its own time and that of all above it. Lines are
    "task;function;function NANOSECONDS"."""
    root = {"name": "all", "ns": 0, "above": {}}
    for line in folded:
        path, _, ns = line.rpartition(" ")
        frame = root
        root["ns"] += int(ns)
        for name in path.split(";"):
            frame = frame["above"].setdefault(name, {"name": name, "ns": 0, "above": {}})
            frame["ns"] += int(ns)
    frames, deepest = [], 0
    todo = [(root, 0.0, 0)]
    while todo:
        frame, left, depth = todo.pop()
        width = 100 * frame["ns"] / (root["ns"] or 1)
        if width < NARROWEST:
            continue
        deepest = max(deepest, depth)
        frames.append({"left": left, "width": width, "depth": depth,
                       "name": frame["name"] if width > NAMED else "",
                       "title": f"{frame['name']}: {frame['ns'] / 1000:.1f} us, {width:.1f} %"})
        for child in sorted(frame["above"].values(), key=lambda f: f["name"]):
            todo.append((child, left, depth + 1))
            left += 100 * child["ns"] / (root["ns"] or 1)
    return {"us": root["ns"] / 1000, "deepest": deepest, "frames": frames}
