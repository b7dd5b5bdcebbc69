// Small charts over one x: lines, bands and ticks as SVG, which takes the theme's colours by itself.

const SVG = "http://www.w3.org/2000/svg"
const HEIGHT = 170
const EDGE = { left: 42, right: 8, top: 6, bottom: 20 }
const DASHES = { dot: "1.5 3", dash: "6 4" }
const GAP = 65535

const grids = new WeakMap()

function shape(name, attributes, text) {
  const node = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
  if (text !== undefined) node.textContent = text
  return node
}

function unpack([low, high, packed]) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0))
  const view = new DataView(bytes.buffer)
  return Float64Array.from({ length: bytes.length / 2 }, (_, place) => {
    const step = view.getUint16(2 * place, true)
    return step === GAP ? NaN : low + (step / (GAP - 1)) * (high - low)
  })
}

function read(line, look) {
  return { ...line, ...look, x: unpack(line.x), y: unpack(line.y), raw: line.raw?.map(unpack), band: line.band?.map(unpack) }
}

function ticks(low, high, log, most) {
  const rough = (high - low) / most
  const between = (start, step) => Array.from({ length: Math.floor((high - start) / step) + 1 }, (_, i) => start + i * step)
  if (log) {
    const factors = high - low < 1.5 ? [1, 2, 5] : [1]
    const powers = between(Math.floor(low), Math.max(1, Math.ceil(rough)))
    return powers.flatMap((power) => factors.map((factor) => power + Math.log10(factor))).filter((at) => at >= low && at <= high)
  }
  const base = 10 ** Math.floor(Math.log10(rough))
  const step = base * [1, 2, 5, 10].find((factor) => factor * base >= rough)
  return between(Math.ceil(low / step) * step, step).map((at) => (Math.abs(at) < step / 1e6 ? 0 : at))
}

function written(value) {
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(1).replace("-", "−")
  return value.toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−")
}

function path(xs, ys, x, y) {
  let d = ""
  let pen = "M"
  for (let place = 0; place < xs.length; place++) {
    const left = x(xs[place])
    const top = y(ys[place])
    if (Number.isFinite(left) && Number.isFinite(top)) {
      d += `${pen}${left.toFixed(1)},${top.toFixed(1)}`
      pen = "L"
    } else pen = "M"
  }
  return d
}

// The band as closed shapes, one per stretch without a gap.
function area({ x: xs, band: [low, high] }, x, y, floor) {
  let d = ""
  for (let start = 0; start < xs.length; start++) {
    if (Number.isNaN(low[start])) continue
    let end = start
    while (end + 1 < xs.length && !Number.isNaN(low[end + 1])) end++
    const bottom = (place) => (Number.isFinite(y(low[place])) ? y(low[place]) : floor)
    for (let place = start; place <= end; place++) d += `${place === start ? "M" : "L"}${x(xs[place])},${y(high[place])}`
    for (let place = end; place >= start; place--) d += `L${x(xs[place])},${bottom(place)}`
    d += "Z"
    start = end
  }
  return d
}

function scales(panel, width, data, zoom) {
  const flat = (value, log) => (log ? Math.log10(value) : value)
  let [left, right] = zoom ?? [data.log_x ? Infinity : 0, data.x_end]
  if (!zoom && data.log_x) {
    for (const line of panel.lines) for (const at of line.x) if (at > 0 && at < left) left = at
  }
  ;[left, right] = [flat(left, data.log_x), flat(right, data.log_x)]
  const [low, high] = panel.y ?? [0, 1]
  const wide = width - EDGE.left - EDGE.right
  const tall = HEIGHT - EDGE.top - EDGE.bottom
  return {
    left, right, low, high,
    x: (value) => EDGE.left + ((flat(value, data.log_x) - left) / (right - left || 1)) * wide,
    y: (value) => EDGE.top + (1 - (flat(value, data.log_y) - low) / (high - low || 1)) * tall,
  }
}

function draw(grid, panel) {
  const { data, zoom } = grid
  const { svg } = panel
  const width = svg.clientWidth || 260
  const scale = (panel.scale = scales(panel, width, data, zoom))
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`)
  const back = (value, log) => (log ? 10 ** value : value)
  const parts = []
  for (const at of ticks(scale.low, scale.high, data.log_y, 4)) {
    const top = scale.y(back(at, data.log_y))
    parts.push(shape("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: top, y2: top }))
    parts.push(shape("text", { x: EDGE.left - 6, y: top + 3.5, "text-anchor": "end" }, written(back(at, data.log_y))))
  }
  for (const at of ticks(scale.left, scale.right, data.log_x, 4)) {
    const left = scale.x(back(at, data.log_x))
    const anchor = left > width - 24 ? "end" : "middle"
    parts.push(shape("text", { x: left, y: HEIGHT - 5, "text-anchor": anchor }, written(back(at, data.log_x))))
  }
  const inside = shape("g", { "clip-path": `url(#${panel.clip})` })
  const frame = shape("clipPath", { id: panel.clip })
  const wide = Math.max(0, width - EDGE.left - EDGE.right)
  frame.append(shape("rect", { x: EDGE.left, y: 0, width: wide, height: HEIGHT - EDGE.bottom + 2 }))
  const add = (d, look) => inside.append(shape("path", { d, ...look }))
  for (const { colour, band, raw, ...line } of panel.lines) {
    if (band) add(area({ ...line, band }, scale.x, scale.y, HEIGHT), { fill: colour, opacity: 0.16 })
    const faint = { class: "curve", stroke: colour, opacity: 0.25, "stroke-width": 1 }
    if (raw) add(path(raw[0], raw[1], scale.x, scale.y), faint)
  }
  for (const { x, y, colour, opacity, width, dash, chosen } of panel.lines) {
    const look = { "stroke-width": width, "stroke-dasharray": DASHES[dash] ?? "none" }
    add(path(x, y, scale.x, scale.y), { class: "curve", stroke: colour, opacity, ...look })
    const [left, top] = chosen ? [scale.x(chosen[0]), scale.y(chosen[1])] : []
    const diamond = `M${left - 4.5},${top}l4.5,-4.5l4.5,4.5l-4.5,4.5Z`
    if (Number.isFinite(top)) add(diamond, { class: "chosen", fill: colour })
  }
  panel.cursor = shape("line", { class: "cursor", y1: EDGE.top, y2: HEIGHT - EDGE.bottom, visibility: "hidden" })
  svg.replaceChildren(frame, ...parts, inside, panel.cursor)
  point(grid, panel)
}

// The line nearest to the pointer, told in words.
function point(grid, panel) {
  const { pointer, scale } = panel
  let nearest = null
  for (const line of pointer ? panel.lines : []) {
    if (line.opacity < 1) continue
    for (let place = 0; place < line.x.length; place++) {
      const [left, top] = [scale.x(line.x[place]), scale.y(line.y[place])]
      const far = Math.hypot(left - pointer.x, 0.5 * (top - pointer.y))
      if (Number.isFinite(far) && (!nearest || far < nearest.far)) nearest = { far, left, line, place }
    }
  }
  panel.cursor.setAttribute("visibility", nearest ? "visible" : "hidden")
  panel.readout.textContent = ""
  if (!nearest) return
  for (const end of ["x1", "x2"]) panel.cursor.setAttribute(end, nearest.left)
  const { line, place } = nearest
  const value = grid.data.percent ? line.y[place].toFixed(2) : written(line.y[place])
  panel.readout.textContent = `${value} at ${grid.data.where} ${written(line.x[place])} · ${line.name}`
  panel.readout.title = panel.readout.textContent
}

let clips = 0

function made(grid, task) {
  const [section, header, button] = ["section", "header", "button"].map((tag) => document.createElement(tag))
  const [dot, name, readout] = ["dot", "name", "readout"].map((className) =>
    Object.assign(document.createElement("span"), { className }),
  )
  const icon = shape("svg", { class: "enlarge", viewBox: "0 0 12 12", "aria-hidden": "true" })
  const svg = shape("svg", { class: "plot", role: "img" })
  icon.append(shape("path", { d: "M7 1h4v4M11 1L7 5M5 11H1V7M1 11l4-4" }))
  button.append(dot, name, icon)
  header.append(button, readout)
  section.append(header, svg)
  const panel = { section, button, dot, name, readout, svg, clip: `clip-${clips++}`, pointer: null, lines: [] }
  button.onclick = () => grid.trigger("enlarged", task)
  const follow = (pointer) => {
    panel.pointer = pointer
    point(grid, panel)
  }
  svg.onpointermove = (event) => {
    const box = svg.getBoundingClientRect()
    follow({ x: event.clientX - box.left, y: event.clientY - box.top })
  }
  svg.onpointerleave = () => follow(null)
  return panel
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const root = parentElement.querySelector("#root")
  let grid = grids.get(parentElement)
  if (!grid) {
    grid = { panels: new Map(), zoom: null, axis: null }
    const all = () => grid.panels.forEach((panel) => draw(grid, panel))
    grid.follow = ({ detail }) => {
      if (detail.group !== grid.data.group) return
      grid.zoom = detail.range
      all()
    }
    window.addEventListener("mrnlab:zoom", grid.follow)
    grid.observer = new ResizeObserver(all)
    grid.observer.observe(root)
    grids.set(parentElement, grid)
  }
  const axis = `${data.where} ${data.log_x}`
  if (grid.axis !== axis) Object.assign(grid, { axis, zoom: data.window })
  grid.data = data
  grid.trigger = setTriggerValue
  const tasks = data.panels.map((given) => given.task)
  for (const [task, panel] of grid.panels) {
    if (tasks.includes(task)) continue
    panel.section.remove()
    grid.panels.delete(task)
  }
  data.panels.forEach((given, place) => {
    if (!grid.panels.has(given.task)) grid.panels.set(given.task, made(grid, given.task))
    const panel = grid.panels.get(given.task)
    panel.lines = given.lines.map((line) => read(line, data.looks[line.key]))
    panel.y = given.y
    panel.dot.style.background = given.colour || "var(--st-gray-color)"
    panel.name.textContent = given.title
    panel.button.title = `Show ${given.title} large`
    panel.svg.setAttribute("aria-label", `${given.title}, ${given.lines.length} lines over ${data.where}`)
    if (panel.section !== root.children[place]) root.insertBefore(panel.section, root.children[place] ?? null)
    draw(grid, panel)
  })

  return () => {
    window.removeEventListener("mrnlab:zoom", grid.follow)
    grid.observer.disconnect()
    grids.delete(parentElement)
  }
}
