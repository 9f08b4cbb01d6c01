"use strict";

// Shows the plans in #data. Names come from an untrusted file, so they only become text
// nodes.

const data = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en-US");

/** Makes an element; `content` is text, an element or a list of them. */
function make(tag, className, content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const part of content === undefined ? [] : [content].flat()) element.append(part);
  return element;
}

function count(n, what) {
  return `${number.format(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** Returns "1.5 MiB"; "" below 1024. */
function shorten(bytes) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = -1;
  for (; bytes >= 1024 && unit + 1 < units.length; bytes /= 1024) ++unit;
  return unit < 0 ? "" : `${bytes.toPrecision(3).replace(/e\+.*/, "")} ${units[unit]}`;
}

function printBytes(bytes) {
  const short = shorten(bytes);
  return count(bytes, "byte") + (short ? ` (${short})` : "");
}

function printTime(microseconds) {
  return microseconds >= 1000 ? `${(microseconds / 1000).toPrecision(3)} ms` : `${microseconds.toPrecision(3)} µs`;
}

function getStyle(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Numbers texts in the order of their first use, for colours. */
function makeHues() {
  const known = new Map();
  return (text) => {
    if (!known.has(text)) known.set(text, (known.size * 137.508 + 205) % 360);
    return known.get(text);
  };
}

// The plan that is shown, and the selection in it.

let plan, waveIndex, hues, view;

/** Adds lookup tables to a plan. */
function prepare(shown) {
  plan = shown;
  waveIndex = new Map(plan.memory.waves.map((wave, index) => [wave, index]));
  hues = makeHues();
  view = {first: 0, last: Math.max(plan.memory.waves.length, 1)};
  if (plan.columns) return;
  plan.columns = plan.memory.waves.map(() => []); // dispatches by wave
  for (const dispatch of plan.dispatches) {
    dispatch.column = waveIndex.get(dispatch.wave);
    dispatch.row = plan.columns[dispatch.column].length;
    dispatch.makes = [];
    dispatch.uses = [];
    plan.columns[dispatch.column].push(dispatch);
  }
  let before = null;
  plan.memory.values.forEach((value, index) => {
    value.first = waveIndex.get(value.first_wave);
    value.last = waveIndex.get(value.last_wave) + 1;
    // If two values share a slot within one wave, each gets half of the wave.
    if (before && before.slot === value.slot && before.last > value.first) {
      value.first += 0.5;
      before.last = Math.max(value.first, before.first);
    }
    before = value;
    value.index = index;
    value.written_by.forEach((dispatch) => plan.dispatches[dispatch].makes.push(value));
    value.read_by.forEach((dispatch) => plan.dispatches[dispatch].uses.push(value));
  });
  const atPeak = new Map(plan.memory.peak.map((value) => [value.of_values, value]));
  plan.memory.values.forEach((value, index) => { value.peak = atPeak.get(index); });
  // Commands in recorded order.
  const syncs = [...plan.barriers.map((barrier) => ({...barrier, text: barrier.why, isBarrier: true})),
    ...plan.signals.map((signal) => ({...signal, text: signal.what === "signal"
      ? `signal ${signal.signal}: queue ${signal.queue} has ended all earlier commands`
      : `wait: queue ${signal.queue} continues after signal ${signal.signal}`}))]
    .sort((a, b) => a.before_dispatch - b.before_dispatch);
  plan.commands = [];
  let next = 0;
  for (let i = 0; i <= plan.dispatches.length; ++i) {
    for (; next < syncs.length && syncs[next].before_dispatch === i; ++next) plan.commands.push(syncs[next]);
    if (i < plan.dispatches.length) plan.commands.push(plan.dispatches[i]);
  }
}

function isDispatch(command) {
  return command.kernel !== undefined;
}

function describe(dispatch) {
  return dispatch.kernel + (dispatch.source ? ` (${dispatch.source})` : "");
}

/** Names some of the dispatches, and the number of others. */
function listDispatches(numbers) {
  const shown = numbers.slice(0, 6).map((i) => describe(plan.dispatches[i]));
  return shown.join(", ") + (numbers.length > shown.length ? ` and ${numbers.length - shown.length} more` : "");
}

// Canvases over waves. All of them share `view`, the waves that are shown.

class Strip {
  constructor(id, paint, pick, step) {
    this.canvas = get(id);
    this.paint = paint;
    this.pick = pick;
    this.step = step;
    this.left = 8;
    this.drag = null;
    this.canvas.addEventListener("pointermove", (event) => this.onMove(event));
    this.canvas.addEventListener("pointerdown", (event) => {
      this.drag = {x: event.offsetX, first: view.first, moved: false};
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (this.drag && !this.drag.moved) this.pick(this.toWave(event.offsetX), event.offsetY, true);
      this.drag = null;
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.drag = null;
      this.pick(-1, -1, false);
    });
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      if (event.shiftKey) pan((event.deltaX || event.deltaY) / this.getColumn());
      else zoom(event.deltaY < 0 ? 1.25 : 0.8, this.toWave(event.offsetX));
    }, {passive: false});
    this.canvas.addEventListener("keydown", (event) => {
      const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1};
      if (event.key in steps) this.step(steps[event.key]);
      else if (event.key === "+" || event.key === "=") zoom(1.5);
      else if (event.key === "-") zoom(1 / 1.5);
      else if (event.key === "0") zoom(0);
      else return;
      event.preventDefault();
    });
  }

  onMove(event) {
    if (this.drag && event.buttons) {
      const by = (this.drag.x - event.offsetX) / this.getColumn();
      if (Math.abs(event.offsetX - this.drag.x) > 4) this.drag.moved = true;
      if (this.drag.moved) pan(this.drag.first + by - view.first);
    } else {
      this.pick(this.toWave(event.offsetX), event.offsetY, false);
    }
  }

  getColumn() {
    return (this.width - 2 * this.left) / (view.last - view.first);
  }
  toX(wave) {
    return this.left + (wave - view.first) * this.getColumn();
  }
  toWave(x) {
    return view.first + (x - this.left) / this.getColumn();
  }

  draw() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "12px system-ui, sans-serif";
    this.paint(context, this);
  }
}

function zoom(factor, at = (view.first + view.last) / 2) {
  const all = Math.max(plan.memory.waves.length, 1);
  const width = factor ? Math.min(all, Math.max(2, (view.last - view.first) / factor)) : all;
  const share = (at - view.first) / (view.last - view.first);
  view.first = Math.max(0, Math.min(all - width, at - share * width));
  view.last = view.first + width;
  drawSoon();
}

function pan(waves) {
  const all = Math.max(plan.memory.waves.length, 1), width = view.last - view.first;
  view.first = Math.max(0, Math.min(all - width, view.first + waves));
  view.last = view.first + width;
  drawSoon();
}

/** Moves the view so that a wave is in it. */
function reveal(wave) {
  if (wave < view.first || wave >= view.last) pan(wave - (view.first + view.last) / 2);
}

let chosenValue = null, hoveredValue = null, chosenCommand = null, hoveredCommand = null, isDrawing = false;

function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    arena.draw();
    order.draw();
    for (const span of document.querySelectorAll(".tools span"))
      span.textContent = plan.memory.waves.length === 0 ? "no waves"
        : `waves ${plan.memory.waves[Math.floor(view.first)]} to ${plan.memory.waves[Math.min(plan.memory.waves.length, Math.ceil(view.last)) - 1]}`;
  });
}

// The arena.

const arenaTop = 20, arenaBottom = 20;

function paintArena(context, strip) {
  const memory = plan.memory, height = strip.height - arenaTop - arenaBottom;
  const toY = (bytes) => arenaTop + height * (1 - bytes / (memory.arena_bytes || 1));
  const light = getStyle("--box-light"), ink = getStyle("--ink"), quiet = getStyle("--quiet");
  if (memory.values.length === 0) {
    context.fillStyle = quiet;
    context.fillText("No value lives in the arena.", 14, strip.height / 2);
    return;
  }
  context.save();
  context.beginPath();
  context.rect(strip.left, 0, strip.width - 2 * strip.left, strip.height);
  context.clip();
  const peak = waveIndex.get(memory.peak_wave);
  for (const value of memory.values) {
    if (value.last <= view.first || value.first >= view.last) continue;
    const x = strip.toX(value.first), width = Math.max(strip.toX(value.last) - x, 1);
    const y = toY(value.offset + value.bytes), tall = Math.max(toY(value.offset) - y, 1);
    context.fillStyle = `hsl(${hues(value.source)} 55% ${light})`;
    context.fillRect(x, y, width, tall);
    if (width > 3 && tall > 3) {
      context.strokeStyle = getStyleOnce("--card");
      context.lineWidth = 0.7;
      context.strokeRect(x, y, width, tall);
    }
    if (width > 70 && tall > 14) {
      context.save();
      context.beginPath();
      context.rect(x, y, width - 4, tall);
      context.clip();
      context.fillStyle = ink;
      context.fillText(value.value, Math.max(x, strip.left) + 4, y + Math.min(tall / 2 + 4, 16));
      context.restore();
    }
  }
  context.fillStyle = getStyle("--band");
  context.fillRect(strip.toX(peak), arenaTop, Math.max(strip.getColumn(), 2), height);
  context.strokeStyle = ink;
  context.lineWidth = 1.2;
  context.beginPath();
  const from = Math.floor(view.first), to = Math.min(memory.waves.length, Math.ceil(view.last));
  for (let wave = from; wave < to; ++wave) {
    const y = toY(memory.live_bytes[wave]);
    context.lineTo(strip.toX(wave), y);
    context.lineTo(strip.toX(wave + 1), y);
  }
  context.stroke();
  for (const [value, colour] of [[hoveredValue, ink], [chosenValue, getStyle("--accent")]]) {
    if (!value) continue;
    const x = strip.toX(value.first), y = toY(value.offset + value.bytes);
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    context.strokeRect(x, y, Math.max(strip.toX(value.last) - x, 2), Math.max(toY(value.offset) - y, 2));
  }
  context.restore();
  context.fillStyle = quiet;
  context.fillText(`${printBytes(memory.arena_bytes)} of arena`, strip.left, 13);
  const label = `peak: wave ${memory.peak_wave}`;
  const wide = context.measureText(label).width;
  const x = strip.toX(peak + 0.5) - wide / 2;
  context.fillText(label, Math.max(strip.left, Math.min(strip.width - strip.left - wide, x)), strip.height - 6);
}

let cardColour = "";
function getStyleOnce(name) {
  return cardColour || (cardColour = getStyle(name));
}

function pickValue(wave, y, isClick) {
  const memory = plan.memory, height = arena.height - arenaTop - arenaBottom;
  const bytes = (1 - (y - arenaTop) / height) * memory.arena_bytes;
  const found = memory.values.find((value) => value.first <= wave && wave < value.last
    && value.offset <= bytes && bytes < value.offset + value.bytes) || null;
  if (isClick) chosenValue = found === chosenValue ? null : found;
  else if (found === hoveredValue) return;
  hoveredValue = found;
  tellValue(hoveredValue || chosenValue);
  drawSoon();
}

function stepValue(by) {
  const values = plan.memory.values;
  if (!values.length) return;
  const at = chosenValue ? (chosenValue.index + by + values.length) % values.length : 0;
  chosenValue = values[at];
  hoveredValue = null;
  reveal(chosenValue.first);
  tellValue(chosenValue);
  drawSoon();
}

function tellValue(value) {
  const detail = get("arena-detail");
  detail.replaceChildren();
  if (!value) {
    detail.append(make("span", "quiet", "Point at a value, or select one, to see its writers and readers."));
    return;
  }
  detail.append(make("b", "", value.value), ` ${value.source ? `from ${value.source}` : ""}: ${printBytes(value.bytes)} at `
    + `${number.format(value.offset)}, waves ${value.first_wave} to ${value.last_wave}. `
    + `Written by ${listDispatches(value.written_by) || "nothing"}; `
    + (value.read_by.length ? `read by ${listDispatches(value.read_by)}.` : "read by nothing."));
  if (value.peak) detail.append(` Live at the peak. ${tellSavings(value.peak)}`);
}

function tellSavings(value) {
  const repeat = value.repeat_saves === null ? "It is used at the peak, or has no later use, so repeating it saves nothing."
    : `Repeating it saves at most ${printBytes(value.repeat_saves)}.`;
  const move = value.move_saves === null ? "Moving one dispatch cannot remove it from the peak."
    : `Moving its writer or last reader saves at most ${printBytes(value.move_saves)}.`;
  return `${repeat} ${move}`;
}

// The peak.

function showPeak() {
  const memory = plan.memory, groups = new Map();
  for (const value of memory.peak) {
    if (!groups.has(value.source)) groups.set(value.source, []);
    groups.get(value.source).push(value);
  }
  const sum = (values) => values.reduce((total, value) => total + value.bytes, 0);
  const sorted = [...groups].map(([source, values]) => ({source, values, bytes: sum(values)}))
    .sort((a, b) => b.bytes - a.bytes);
  get("peak-intro").textContent = memory.peak.length === 0 ? "No value lives in the arena."
    : `In wave ${memory.peak_wave}, ${printBytes(memory.most_live_bytes)} are live, of ${count(memory.peak.length, "value")} from `
      + `${count(groups.size, "source line")}. The arena has ${printBytes(memory.arena_bytes)}.`;
  const list = get("peak-groups");
  list.replaceChildren();
  showMore(list, sorted, 12, (group, index) => {
    const bar = make("span", "bar");
    bar.style.width = `${100 * group.bytes / sorted[0].bytes}%`;
    return makeDetails([make("span", "place", group.source || "an unknown place"),
      make("span", "count quiet", count(group.values.length, "value")),
      make("span", "number", [number.format(group.bytes), make("small", "quiet", " bytes")]),
      make("span", "share", bar)], index === 0, () => makePeakTable(group.values));
  });
}

function makePeakTable(values) {
  const body = make("tbody");
  for (const value of values) {
    const link = make("button", "", value.value);
    link.addEventListener("click", () => {
      chosenValue = plan.memory.values[value.of_values];
      reveal(chosenValue.first);
      tellValue(chosenValue);
      drawSoon();
      get("arena").scrollIntoView();
    });
    const cell = (saving) => make("td", "number", saving === null ? "–" : number.format(saving));
    body.append(make("tr", "", [make("td", "", link), make("td", "number", number.format(value.bytes)),
      cell(value.repeat_saves), cell(value.move_saves)]));
  }
  const head = make("tr", "", [make("th", "", "value"), make("th", "number", "bytes"),
    make("th", "number", "repeat saves"), make("th", "number", "move saves")]);
  return make("div", "scroll", make("table", "", [make("thead", "", head), body]));
}

/** Makes a row that can be opened; its contents are made at the first opening. */
function makeDetails(cells, isOpen, fill) {
  const details = make("details", "", make("summary", "", cells));
  const open = () => {
    if (details.open && details.children.length === 1) details.append(fill());
  };
  details.addEventListener("toggle", open);
  details.open = isOpen;
  open();
  return details;
}

/** Shows some of a list, and a button for the rest. */
function showMore(parent, items, step, show) {
  let shown = 0;
  const more = make("button");
  const add = () => {
    more.remove();
    for (const end = Math.min(items.length, shown + step); shown < end; ++shown) parent.append(show(items[shown], shown));
    if (shown === items.length) return;
    more.textContent = `Show ${Math.min(step * 5, items.length - shown)} of ${items.length - shown} more`;
    parent.append(more);
  };
  more.addEventListener("click", () => {
    step *= 5;
    add();
    step /= 5;
  });
  add();
}

// The order.

const boxGap = 2, orderTop = 10;

function getBox(strip, dispatch) {
  const column = strip.getColumn(), width = Math.max(Math.min(column - 2, 60), 1.5);
  return {x: strip.toX(dispatch.column) + (column - width) / 2, y: orderTop + dispatch.row * (strip.boxHeight + boxGap),
    width, height: strip.boxHeight};
}

function paintOrder(context, strip) {
  if (plan.dispatches.length === 0) {
    context.fillStyle = getStyle("--quiet");
    context.fillText("This entry has no dispatches.", 14, strip.height / 2);
    return;
  }
  const light = getStyle("--box-full"), accent = getStyle("--accent"), warn = getStyle("--warn");
  context.save();
  context.beginPath();
  context.rect(strip.left, 0, strip.width - 2 * strip.left, strip.height);
  context.clip();
  const getBarrierX = (barrier) => {
    const behind = plan.dispatches[Math.min(barrier.before_dispatch, plan.dispatches.length - 1)];
    return strip.toX(behind.column + (barrier.before_dispatch < plan.dispatches.length ? 0 : 1));
  };
  context.strokeStyle = warn;
  context.globalAlpha = Math.max(0.15, Math.min(0.7, strip.getColumn() / 8));
  context.lineWidth = 1;
  context.beginPath();
  for (const barrier of plan.barriers) {
    const x = getBarrierX(barrier);
    if (x < 0 || x > strip.width) continue;
    context.moveTo(x, 2);
    context.lineTo(x, strip.height - 2);
  }
  context.stroke();
  context.globalAlpha = 1;
  const first = Math.max(0, Math.floor(view.first)), last = Math.min(plan.columns.length, Math.ceil(view.last));
  for (let wave = first; wave < last; ++wave)
    for (const dispatch of plan.columns[wave]) {
      const box = getBox(strip, dispatch);
      context.fillStyle = `hsl(${hues(dispatch.source)} 50% ${light})`;
      context.fillRect(box.x, box.y, box.width, box.height);
    }
  const command = hoveredCommand || chosenCommand;
  const link = (a, b, colour) => {
    const from = getBox(strip, a), to = getBox(strip, b);
    const x0 = from.x + from.width, y0 = from.y + from.height / 2, x1 = to.x, y1 = to.y + to.height / 2;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
    context.stroke();
  };
  const frame = (dispatch) => {
    const box = getBox(strip, dispatch);
    context.strokeStyle = accent;
    context.lineWidth = 2.5;
    context.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
  };
  if (command && isDispatch(command)) {
    for (const value of command.uses)
      for (const writer of value.written_by) if (writer < command.dispatch) link(plan.dispatches[writer], command, accent);
    for (const value of command.makes)
      for (const reader of value.read_by) if (reader > command.dispatch) link(command, plan.dispatches[reader], accent);
    frame(command);
  } else if (command && command.isBarrier) {
    const x = getBarrierX(command);
    context.fillStyle = warn;
    context.fillRect(x - 1.5, 0, 3, strip.height);
    link(plan.dispatches[command.from], plan.dispatches[command.to], warn);
    frame(plan.dispatches[command.from]);
    frame(plan.dispatches[command.to]);
  }
  context.restore();
}

/** Sets the height of the boxes, and of the canvas, for the largest wave. */
function sizeOrder() {
  const most = Math.max(1, ...plan.columns.map((column) => column.length));
  order.boxHeight = Math.max(3, Math.min(18, Math.floor(300 / most) - boxGap));
  order.canvas.style.height = `${Math.min(420, Math.max(90, 2 * orderTop + most * (order.boxHeight + boxGap)))}px`;
}

function pickDispatch(wave, y, isClick) {
  const column = plan.columns[Math.floor(wave)];
  const found = (column && column[Math.floor((y - orderTop) / (order.boxHeight + boxGap))]) || null;
  if (isClick) choose(found === chosenCommand ? null : found, true);
  else if (found !== hoveredCommand) {
    hoveredCommand = found;
    tellCommand(hoveredCommand || chosenCommand);
    drawSoon();
  }
}

function stepDispatch(by) {
  if (!plan.dispatches.length) return;
  const at = chosenCommand && isDispatch(chosenCommand) ? chosenCommand.dispatch + by : 0;
  choose(plan.dispatches[(at + plan.dispatches.length) % plan.dispatches.length], true);
}

function choose(command, scrolls) {
  chosenCommand = command;
  hoveredCommand = null;
  if (command) reveal(isDispatch(command) ? command.column : plan.dispatches[command.from ?? Math.min(command.before_dispatch, plan.dispatches.length - 1)].column);
  tellCommand(command);
  if (scrolls && command) list.reveal(command);
  list.draw();
  drawSoon();
}

function tellCommand(command) {
  const detail = get("order-detail");
  detail.replaceChildren();
  if (!command) {
    detail.append(make("span", "quiet", "Point at a dispatch, or select one here or in the list."));
  } else if (!isDispatch(command)) {
    detail.append(command.text);
    if (command.isBarrier) detail.append(`. It orders ${count(command.hazards, "hazard")} in all.`);
  } else {
    detail.append(make("b", "", `${command.dispatch}: ${describe(command)}`), `, wave ${command.wave}, queue ${command.queue}, `
      + `grid ${command.grid.join(" x ")}. ${tellOperands(command)}; ${printBytes(command.bytes)} in all.`);
    if (plan.microseconds) detail.append(` It took ${printTime(plan.microseconds[command.dispatch])}.`);
    detail.append(tellFusion(command.dispatch));
  }
}

/** Lists the ops of a dispatch's kernel, and why it is not fused with its neighbours. */
function tellFusion(dispatch) {
  const notes = plan.notes, formed = notes ? notes.dispatches[dispatch] : -1;
  if (formed < 0) return "";
  const ul = make("ul");
  for (const [what, source] of notes.kernels[formed]) ul.append(make("li", "", source ? `${what} (${source})` : what));
  const of = (number_) => {
    const first = notes.dispatches.indexOf(number_);
    return first < 0 ? "a kernel without dispatches" : `${first}: ${describe(plan.dispatches[first])}`;
  };
  for (const [producer, reader, why] of notes.apart) {
    if (reader === formed) ul.append(make("li", "quiet", `Not fused with ${of(producer)}, which it reads from: ${why}.`));
    else if (producer === formed) ul.append(make("li", "quiet", `Not fused with its reader ${of(reader)}: ${why}.`));
  }
  return make("div", "fusion", ["One kernel computes:", ul]);
}

function tellOperands(dispatch) {
  return `Reads ${dispatch.reads.join(", ") || "nothing"}; writes ${dispatch.writes.join(", ") || "nothing"}`;
}

// The list of commands: only visible rows are elements.

class CommandList {
  constructor() {
    this.box = get("commands");
    this.rows = get("rows");
    this.box.addEventListener("scroll", () => this.draw());
    this.box.addEventListener("keydown", (event) => {
      const steps = {ArrowUp: -1, ArrowDown: 1};
      if (!(event.key in steps) || !this.commands.length) return;
      event.preventDefault();
      const at = this.commands.indexOf(chosenCommand) + steps[event.key];
      choose(this.commands[Math.max(0, Math.min(this.commands.length - 1, at))], true);
    });
    get("find").addEventListener("input", () => this.find());
  }

  find() {
    const text = get("find").value.trim().toLowerCase();
    const has = (command) => (isDispatch(command)
      ? `${command.kernel} ${command.source} ${command.reads.join(" ")} ${command.writes.join(" ")}` : command.text).toLowerCase().includes(text);
    this.commands = text ? plan.commands.filter(has) : plan.commands;
    get("found").textContent = text ? `${number.format(this.commands.length)} of ${count(plan.commands.length, "command")}`
      : count(plan.commands.length, "command");
    this.measure();
  }

  measure() {
    this.rowHeight = window.matchMedia("(max-width: 700px)").matches ? 108 : 52;
    this.rows.style.height = `${this.commands.length * this.rowHeight}px`;
    this.draw();
  }

  reveal(command) {
    const at = this.commands.indexOf(command);
    if (at < 0) return;
    const top = at * this.rowHeight;
    if (top < this.box.scrollTop || top + this.rowHeight > this.box.scrollTop + this.box.clientHeight)
      this.box.scrollTop = top - this.box.clientHeight / 2;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight) - 3);
    const last = Math.min(this.commands.length, first + Math.ceil(this.box.clientHeight / this.rowHeight) + 6);
    const rows = [];
    for (let i = first; i < last; ++i) rows.push(this.makeRow(this.commands[i], i));
    this.rows.replaceChildren(...rows);
  }

  makeRow(command, index) {
    const row = make("div", "row");
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", command === chosenCommand);
    row.style.top = `${index * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    if (isDispatch(command)) {
      const time = plan.microseconds ? ` · ${printTime(plan.microseconds[command.dispatch])}` : "";
      row.append(make("div", "", `${command.dispatch}: ${describe(command)}`),
        make("div", "quiet", `wave ${command.wave}${time} · ${tellOperands(command)}`));
    } else {
      row.classList.add("sync");
      row.append(make("div", "", command.text));
    }
    if (command === chosenCommand) row.classList.add("chosen");
    row.addEventListener("click", () => choose(command === chosenCommand ? null : command, false));
    return row;
  }
}

// Tables and sentences.

function showSummary() {
  const summary = plan.summary, tiles = get("tiles");
  tiles.replaceChildren();
  const add = (name, id, value, below) => {
    const dd = make("dd", "", [value, ...(below ? [make("small", "", below)] : [])]);
    dd.id = `tile-${id}`;
    tiles.append(make("div", "", [make("dt", "", name), dd]));
  };
  const addBytes = (name, id, bytes, below) => add(name, id, `${number.format(bytes)} bytes`, below || shorten(bytes));
  add("Dispatches", "dispatches", number.format(summary.dispatches), `in ${count(summary.waves, "wave")}, of ${count(summary.kernels, "kernel")}`);
  add("Barriers", "barriers", number.format(summary.barriers),
    summary.queues > 1 ? `${summary.queues} queues, ${count(summary.signals, "signal")}, ${count(summary.waits, "wait")}` : "1 queue");
  addBytes("Arena", "arena", summary.arena_bytes,
    `${shorten(summary.arena_bytes)}${summary.pinned_bytes ? `, ${(100 * summary.arena_bytes / summary.pinned_bytes).toFixed(1)}% of all pinned` : ""}`);
  addBytes("Without sharing bytes", "pinned", summary.pinned_bytes);
  addBytes("Most live bytes", "live", summary.most_live_bytes);
  for (const [kind, bytes] of Object.entries(summary.argument_bytes)) addBytes(`Arguments: ${kind}`, `argument-${kind}`, bytes);
  addBytes("Results", "results", summary.result_bytes);
  addBytes("Constants", "constants", summary.constant_bytes);
  add("Donated arguments", "donated", `${summary.donations_accepted} of ${summary.donated}`, "reused by a result");
  if (summary.memory_limit !== null) addBytes("Limit of the arena", "limit", summary.memory_limit);
  if (plan.microseconds)
    add("Dispatches took", "time", printTime(plan.microseconds.reduce((a, b) => a + b, 0)), "one after the other");
}

function showDonations() {
  const box = get("donations");
  box.replaceChildren();
  if (!plan.donation.length) {
    box.append(make("p", "quiet", "No argument is donated."));
    return;
  }
  const refused = plan.donation.filter((donation) => donation.result === null);
  const accepted = plan.donation.filter((donation) => donation.result !== null);
  const listOf = (donations, className) => {
    const ul = make("ul");
    showMore(ul, donations, 8, (donation) => make("li", className, `${donation.why}.`));
    return ul;
  };
  if (refused.length) box.append(make("p", "", `${count(refused.length, "argument")} kept:`), listOf(refused, "refused"));
  if (accepted.length) box.append(make("p", "", `${count(accepted.length, "argument")} used:`), listOf(accepted, ""));
}

function showKernels() {
  const box = get("kernel-list");
  box.replaceChildren();
  const times = plan.kernels.map((kernel) => plan.microseconds
    ? kernel.dispatches.reduce((sum, dispatch) => sum + plan.microseconds[dispatch], 0) : kernel.dispatches.length);
  const most = Math.max(...times, 0);
  const sorted = plan.kernels.map((kernel, index) => ({kernel, time: times[index]}));
  if (plan.microseconds) sorted.sort((a, b) => b.time - a.time);
  showMore(box, sorted, 15, ({kernel, time}) => {
    const bar = make("span", "bar");
    bar.style.width = `${most ? 100 * time / most : 0}%`;
    return makeDetails([make("span", "place", kernel.kernel), make("span", "count quiet", `runs ${kernel.dispatches.length === 1 ? "once" : `${number.format(kernel.dispatches.length)} times`}`),
      make("span", "number", plan.microseconds ? printTime(time) : `${number.format(kernel.code_bytes)} B code`), make("span", "share", bar)],
    false, () => makeKernel(kernel));
  });
}

function makeKernel(kernel) {
  const inner = make("div", "inner");
  inner.append(make("p", "quiet", `Workgroups of ${kernel.workgroup.join(" x ")} invocations, ${printBytes(kernel.code_bytes)} of code. It runs for:`));
  if (kernel.dispatches.length) inner.prepend(tellFusion(kernel.dispatches[0]));
  const ul = make("ul");
  showMore(ul, kernel.dispatches, 10, (number_) => {
    const dispatch = plan.dispatches[number_];
    const link = make("button", "", `${dispatch.dispatch}: ${dispatch.source || "an unknown place"}`);
    link.addEventListener("click", () => {
      choose(dispatch, true);
      get("order").scrollIntoView();
    });
    return make("li", "", [link, plan.microseconds ? ` ${printTime(plan.microseconds[number_])}` : ""]);
  });
  inner.append(ul);
  return inner;
}

function showChanges() {
  const isShown = data.compared_with !== "";
  get("changes").hidden = get("changes-link").hidden = !isShown;
  if (!isShown) return;
  get("changes-intro").textContent = `From ${data.artifact} to ${data.compared_with}:`;
  const changes = plan.changes || [`${data.compared_with} has no plan for this entry and target`];
  get("change-list").replaceChildren(...(changes.length ? changes : ["nothing changed"]).map((sentence) => make("li", "", sentence)));
}

function show(index) {
  prepare(data.plans[index]);
  chosenValue = hoveredValue = chosenCommand = hoveredCommand = null;
  showSummary();
  showPeak();
  showDonations();
  showKernels();
  showChanges();
  tellValue(null);
  tellCommand(null);
  sizeOrder();
  list.find();
  drawSoon();
}

const arena = new Strip("arena-canvas", paintArena, pickValue, stepValue);
const order = new Strip("order-canvas", paintOrder, pickDispatch, stepDispatch);
const list = new CommandList();
for (const tools of document.querySelectorAll("[data-zoom]")) {
  for (const [label, name, factor] of [["+", "Zoom in", 2], ["−", "Zoom out", 0.5], ["All", "Show all waves", 0]]) {
    const button = make("button", "", label);
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => zoom(factor));
    tools.append(button);
  }
  for (const [label, name, by] of [["←", "Earlier waves", -0.5], ["→", "Later waves", 0.5]]) {
    const button = make("button", "", label);
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => pan(by * (view.last - view.first)));
    tools.append(button);
  }
  tools.append(make("span"));
}
get("title").textContent = data.artifact;
document.title = `${data.artifact} - weir explain`;
get("producer").textContent = `Made by ${data.producer}`;
data.plans.forEach((each, index) => {
  const option = make("option", "", `${each.summary.entry}, ${each.summary.target}`);
  option.value = index;
  get("plan").append(option);
});
get("plan").addEventListener("change", () => show(Number(get("plan").value)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  cardColour = "";
  drawSoon();
});
new ResizeObserver(() => {
  list.measure();
  drawSoon();
}).observe(document.body);
show(0);
document.documentElement.dataset.ready = "yes";
