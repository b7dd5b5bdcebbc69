// What every component with a Plotly figure begins with: the theme's colours.
// Colours given as "var(--st-…)" are resolved here, so a figure follows the light and the dark theme.

// Charts take turns, each once the browser has painted what was drawn before it: a matrix, or another chart. A tab that is
// hidden paints nothing.
function turn() {
  const painted = () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => done(port1.close())
    const pass = () => port2.postMessage(0)
    document.hidden ? pass() : requestAnimationFrame(pass)
  })
  return (window.mrnlabTurns = (window.mrnlabTurns ?? Promise.resolve()).then(painted))
}

// A colour of each theme, which Plotly does not read.
const PAIR = /light-dark\((#\w+|rgba\([^)]*\)),(#\w+|rgba\([^)]*\))\)/g

function isDark(styles) {
  const page = styles.getPropertyValue("--st-background-color").trim()
  return parseInt(page.slice(1, 3), 16) < 128
}

function resolveColours(value, styles) {
  if (typeof value === "string") {
    const match = /^var\((--st-[a-z0-9-]+)\)$/.exec(value)
    if (match) return styles.getPropertyValue(match[1]).trim()
    return value.includes("light-dark(") ? value.replace(PAIR, isDark(styles) ? "$2" : "$1") : value
  }
  if (Array.isArray(value)) return value.map((item) => resolveColours(item, styles))
  if (value && typeof value === "object") {
    if ("bdata" in value) return value
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolveColours(v, styles)]))
  }
  return value
}

function dress(layout, styles) {
  const text = styles.getPropertyValue("--st-text-color").trim()
  const grid = styles.getPropertyValue("--st-border-color").trim()
  const page = styles.getPropertyValue("--st-background-color").trim()
  layout.paper_bgcolor = "rgba(0,0,0,0)"
  layout.plot_bgcolor = layout.plot_bgcolor ?? "rgba(0,0,0,0)"
  layout.font = { color: text, family: styles.getPropertyValue("--st-font"), size: 12, ...layout.font }
  layout.hoverlabel = { bgcolor: page, bordercolor: grid, font: { color: text, size: 12 }, ...layout.hoverlabel }
  layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: grid, activecolor: text, ...layout.modebar }
  return layout
}


// A Plotly chart that lives on while its data changes: Plotly.react on the same node, with the ranges that
// the reader has zoomed to. Streamlit's own chart loses them because it mounts anew for each figure.

const charts = new WeakMap()

// The colours of a picture for a paper, whatever the theme on screen.
const PAPER = {
  "--st-text-color": "#1B2229",
  "--st-gray-color": "#4A545D",
  "--st-border-color": "#DCE1E6",
  "--st-background-color": "#FFFFFF",
  "--st-font": "Arial, Helvetica, sans-serif",
}
const AXES = ["xaxis", "yaxis"]
const ZOOM_QUIET_MS = 300
const NARROW_PX = 560
const LETTER_PX = 6.4 // of an axis's title
const TICK_PX = 12 // between two names of an axis

// A title on as many lines as its axis needs.
function wrapped(title, room) {
  const lines = [""]
  for (const word of title.split(" "))
    if (lines.at(-1) && (lines.at(-1).length + word.length) * LETTER_PX > room) lines.push(word)
    else lines.push(`${lines.pop()} ${word}`.trim())
  return lines.join("<br>")
}

function fit(layout, { node, data }) {
  const width = node.offsetWidth
  if (!width) return
  if (width < NARROW_PX) {
    const ends = layout.annotations?.length
    layout.annotations = layout.annotations?.filter(({ name }) => name !== "end")
    if (ends !== layout.annotations?.length) {
      layout.margin = { ...layout.margin, r: 8, t: 32 }
      Object.assign(layout, { showlegend: true, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" } })
    }
    // The numbers of a difference stand under its mark instead of in columns beside the chart.
    const below = layout.annotations?.filter(({ name }) => name === "below") ?? []
    if (below.length) {
      layout.annotations = layout.annotations.filter(({ name }) => name !== "numbers")
      for (const number of below) number.visible = true
      layout.margin = { ...layout.margin, r: 12 }
      layout.height += 24 * below.length // for these lines, and for a legend on several
      node.style.height = `${layout.height}px`
    }
  }
  const { l = 80, r = 80, t = 100, b = 80 } = layout.margin ?? {}
  // Names of rows take half of the width at most; the margin grows with them, and leaves the less to the axis below.
  const most = Math.floor(width / 2 / LETTER_PX)
  const short = (line) => (line.replace(/<\/?b>/g, "").length > most ? `${line.slice(0, most - 1 + (line.startsWith("<b>") ? 3 : 0))}…` : line)
  const names = (layout.yaxis?.ticktext ?? []).map((name) => name.split("<br>").map(short))
  if (names.length) layout.yaxis.ticktext = names.map((lines) => lines.join("<br>"))
  const across = width - Math.max(l, LETTER_PX * Math.max(0, ...names.flat().map((line) => line.length))) - r
  for (const axis of Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name))) {
    const { title, ticktext, tickvals, domain = [0, 1] } = layout[axis]
    const room = (axis[0] === "x" ? across : data.height - t - b) * (domain[1] - domain[0])
    if (title?.text) title.text = wrapped(title.text, room)
    // Where names would overlap, some are left out.
    const every = Math.ceil(((ticktext?.length ?? 0) * TICK_PX) / room)
    const kept = (_, place) => place % every === 0
    if (every > 1) Object.assign(layout[axis], { ticktext: ticktext.filter(kept), tickvals: tickvals.filter(kept) })
  }
}

function dressed(figure, styles, chart) {
  const layout = dress(figure.layout ?? {}, styles)
  Object.assign(layout, { uirevision: chart.data.revision, autosize: true, height: chart.data.height })
  fit(layout, chart)
  for (const axis of AXES) {
    chart.ranges[axis] = layout[axis]?.range && [...layout[axis].range] // Plotly writes into its own
    if (chart.zoom[axis]) Object.assign(layout[axis], { range: chart.zoom[axis], autorange: false })
  }
  return layout
}

function draw(Plotly, chart, styles) {
  // The reader is drawing a zoom box: redrawing now would take it away.
  if (chart.node._dragging) return new Promise((done) => setTimeout(done, 150)).then(() => draw(Plotly, chart, styles))
  const { data, node } = chart
  const figure = resolveColours(JSON.parse(data.figure), styles)
  const remove = ["select2d", "lasso2d", data.zoom ? "resetScale2d" : "autoScale2d"]
  const config = {
    displaylogo: false,
    // Plotly's own toolbar would offer to upload the chart.
    showSendToCloud: false,
    plotlyServerURL: "",
    responsive: false,
    displayModeBar: data.still ? false : "hover",
    scrollZoom: false,
    doubleClick: data.zoom ? "autosize" : "reset+autosize",
    modeBarButtonsToRemove: data.zoom ? [...remove, "toImage"] : remove,
    toImageButtonOptions: { filename: data.filename, scale: 2 },
  }
  return Plotly.react(node, figure.data, dressed(figure, styles, chart), config).then(() => {
    if (!chart.observer) watch(Plotly, chart)
    // What is under the pointer stays told.
    showTip(chart)
    if (chart.pointer) {
      const { clientX, clientY } = chart.pointer
      const event = new MouseEvent("mousemove", { clientX, clientY, bubbles: true })
      node.querySelector(".nsewdrag")?.dispatchEvent(event)
    }
  })
}

function watch(Plotly, chart) {
  const { node } = chart
  node.on("plotly_click", (event) => {
    const point = event.points[0]
    chart.trigger("clicked", { x: point.x, y: point.y, curve: point.curveNumber })
  })
  node.on("plotly_relayout", (event) => zoomed(Plotly, chart, event))
  const point = (event) => {
    chart.pointer = event
    showTip(chart)
  }
  node.addEventListener("mousemove", (event) => event.isTrusted && point(event))
  node.addEventListener("mouseleave", () => point(null))
  chart.observer = new ResizeObserver(() => {
    // An observer begins with a call; drawn again for that, a chart took a third longer.
    if (node.offsetWidth === 0 || Math.abs(node.offsetWidth - node._fullLayout.width) < 1) return
    Plotly.relayout(node, { height: node.layout.height, width: node.offsetWidth })
  })
  chart.observer.observe(node)
}

// Keeps what the reader zoomed to, and goes back to the ranges of the figure when asked to.
function zoomed(Plotly, chart, event) {
  const before = String(chart.zoom.xaxis)
  const back = {}
  for (const axis of AXES) {
    if (event[`${axis}.autorange`]) {
      delete chart.zoom[axis]
      if (chart.ranges[axis]) back[`${axis}.range`] = [...chart.ranges[axis]]
    } else if (`${axis}.range` in event || `${axis}.range[0]` in event) {
      const range = chart.node.layout[axis].range
      const whole = chart.ranges[axis]
      if (whole && String([...range]) === String([...whole])) delete chart.zoom[axis]
      else chart.zoom[axis] = [...range]
    }
  }
  if (Object.keys(back).length) Plotly.relayout(chart.node, back)
  if (chart.data.zoom && before !== String(chart.zoom.xaxis)) tellZoom(chart)
}

// The other charts of the group follow at once; the server, which keeps it in the address, once the reader has come
// to rest.
function tellZoom(chart) {
  chart.followsServer = false // what the reader does here counts from now on
  const range = chart.zoom.xaxis ?? null
  window.dispatchEvent(new CustomEvent("mrnlab:zoom", { detail: { chart, group: chart.data.zoom, range } }))
  clearTimeout(chart.telling)
  chart.telling = setTimeout(() => chart.trigger("zoomed", { range }), ZOOM_QUIET_MS)
}

function follow(chart, { chart: source, group, range }) {
  if (source === chart || group !== chart.data.zoom || !window.Plotly || !chart.observer) return
  chart.followsServer = false
  const shown = range ?? chart.ranges.xaxis
  if (range) chart.zoom.xaxis = [...range]
  else delete chart.zoom.xaxis
  window.Plotly.relayout(chart.node, shown ? { "xaxis.range": [...shown] } : { "xaxis.autorange": true })
}

// The tooltip of a figure whose layout.meta has one: the value of every line at the pointer's x, from the top line down,
// the one nearest to the pointer in bold. `meta` of a trace has its name and, of a mean, [x, seeds from there on];
// its customdata is the spread.
const MOST_ROWS = 15
const SAME_PLACE_PX = 12

// The line's point nearest to a place in the x axis's pixels, with its own pixels.
function pointAt(trace, px, xaxis, yaxis) {
  let place = 0
  for (let i = 1; i < trace.x.length; i++)
    if (Math.abs(xaxis.d2p(trace.x[i]) - px) < Math.abs(xaxis.d2p(trace.x[place]) - px)) place = i
  const [x, y] = [trace.x[place], trace.y[place]]
  return { trace, place, x, y, px: xaxis.d2p(x), py: yaxis.d2p(y) }
}

function atPointer({ node, pointer }) {
  const { meta, xaxis, yaxis } = node._fullLayout ?? {}
  if (!meta?.tooltip || !pointer || node._dragging) return []
  const box = node.getBoundingClientRect()
  const px = pointer.clientX - box.left - xaxis._offset
  const py = pointer.clientY - box.top - yaxis._offset
  if (px < 0 || px > xaxis._length || py < 0 || py > yaxis._length) return []
  const lines = node._fullData.filter((trace) => trace.meta?.name && trace.x?.length)
  const at = (place) => lines.map((trace) => pointAt(trace, place, xaxis, yaxis)).filter((point) => Number.isFinite(point.py))
  const closest = (points, of) => points.reduce((a, b) => (of(b) < of(a) ? b : a), points[0])
  const anchor = closest(at(px), (point) => Math.abs(point.px - px))
  if (!anchor) return []
  const points = at(anchor.px).filter((point) => Math.abs(point.px - anchor.px) <= SAME_PLACE_PX)
  const nearest = closest(points, (point) => Math.abs(point.py - py))
  return points.sort((a, b) => a.py - b.py).map((point) => ({ ...point, nearest: point === nearest }))
}

function showTip(chart) {
  const points = atPointer(chart)
  for (const part of ["cross", "tip"]) chart[part].hidden = !points.length
  if (!points.length) return
  const { meta, xaxis, yaxis } = chart.node._fullLayout
  const { x: title, spread, decimals } = meta.tooltip
  const largest = Math.max(...points.map(({ y }) => Math.abs(y)))
  const digits = decimals ?? Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(largest || 1))))
  const text = (value) => value.toFixed(digits).replace("-", "−")
  const place = points.findIndex(({ nearest }) => nearest)
  const first = Math.max(0, Math.min(place - (MOST_ROWS >> 1), points.length - MOST_ROWS))
  const counts = points.map(({ trace, x }) => trace.meta.seeds?.findLast(([from]) => from <= x)?.[1] ?? 1)
  const seeds = (count) => `${count} ${count === 1 ? "seed" : "seeds"}`
  const alike = counts.every((count) => count === counts[0])
  const rows = points.slice(first, first + MOST_ROWS).map(({ trace, place, y, nearest }, row) => {
    const sd = trace.customdata?.[place]
    return element("tr", nearest ? "nearest" : "", sign(trace.line.color, trace.line.dash), element("td", "", trace.meta.name), element("td", "", text(y)),
      element("td", "quiet", Number.isFinite(sd) ? `± ${text(sd)}` : ""), element("td", "quiet", alike ? "" : seeds(counts[first + row])))
  })
  const more = (count, where) => count > 0 ? [element("tr", "more", element("td", ""), element("td", "", `${count} more ${where}`))] : []
  const at = points.find(({ nearest }) => nearest).x
  const head = `${title} ${at.toLocaleString("en", { maximumSignificantDigits: at < 100 ? 3 : 9 })}${spread ? `, mean ${spread}${alike ? ` over ${seeds(counts[0])}` : ""}` : ""}`
  chart.tip.replaceChildren(element("table", "", element("caption", "", head), element("tbody", "",
    ...more(first, "above"), ...rows, ...more(points.length - first - rows.length, "below"))))
  const box = chart.node.getBoundingClientRect()
  const left = box.left + xaxis._offset + points[0].px
  const { offsetWidth: width, offsetHeight: height } = chart.tip
  const beside = left + 14 + width <= window.innerWidth ? left + 14 : Math.max(4, left - 14 - width)
  const top = Math.max(4, Math.min(chart.pointer.clientY - height / 2, window.innerHeight - height - 4))
  Object.assign(chart.tip.style, { left: `${beside}px`, top: `${top}px` })
  Object.assign(chart.cross.style, { left: `${left}px`, top: `${box.top + yaxis._offset}px`, height: `${yaxis._length}px` })
}

// A picture of the chart as it stands, on white, with a legend: for a paper.
function save(Plotly, chart) {
  const { data, node } = chart
  const styles = { getPropertyValue: (name) => PAPER[name] ?? "" }
  const figure = resolveColours(JSON.parse(data.figure), styles)
  const named = figure.data.filter((trace) => trace.showlegend !== false).length
  const layout = dress(figure.layout, styles)
  if (layout.meta?.picture) layout.yaxis.title.text = layout.meta.picture // no title stands over it
  for (const axis of AXES) Object.assign(layout[axis], { range: [...node._fullLayout[axis].range], autorange: false })
  const legend = { orientation: "h", y: -0.17, yanchor: "top", x: 0, xanchor: "left", font: { size: 12 } }
  const height = 420 + (named > 1 ? 22 * Math.ceil(named / 3) : 0)
  Object.assign(layout, {
    paper_bgcolor: PAPER["--st-background-color"], plot_bgcolor: PAPER["--st-background-color"],
    showlegend: named > 1, legend, width: 840, height,
  })
  const { format, name } = data.save
  const scale = format === "png" ? 3 : 1
  return Plotly.downloadImage({ data: figure.data, layout }, { format, width: 840, height, scale, filename: name })
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  let chart = charts.get(parentElement)
  if (!chart) {
    const node = element("div", { role: "figure" }) // no picture: it has buttons
    const [cross, tip] = ["chart-cross", "chart-tip"].map((className) => element("div", { className, hidden: true, ariaHidden: "true" }))
    parentElement.append(node, cross, tip)
    chart = { node, cross, tip, observer: null, drawn: "", zoom: {}, ranges: {}, revision: null, followsServer: true, saved: null }
    chart.follow = ({ detail }) => follow(chart, detail)
    window.addEventListener("mrnlab:zoom", chart.follow)
    charts.set(parentElement, chart)
  }
  const told = data.window
  if (chart.revision !== data.revision) {
    chart.revision = data.revision
    chart.zoom = told ? { xaxis: told } : {}
    chart.followsServer = true
  } else if (data.zoom && chart.followsServer) {
    // A chart that was mounted anew may first hear of the zoom after its first data.
    if (told) chart.zoom.xaxis = told
    else delete chart.zoom.xaxis
  }
  chart.trigger = setTriggerValue
  chart.data = data
  chart.node.setAttribute("aria-label", data.alt)
  chart.node.style.height = `${data.height}px`

  const styles = getComputedStyle(parentElement)
  const signature = [
    data.figure,
    data.revision,
    chart.followsServer ? String(told) : "",
    styles.getPropertyValue("--st-text-color"),
    styles.getPropertyValue("--st-background-color"),
  ].join("\n")
  const anew = signature !== chart.drawn
  const wanted = data.save && data.save.id !== chart.saved
  chart.drawn = signature
  if (wanted) chart.saved = data.save.id

  if (anew || wanted) {
    const turned = window.Plotly ? Promise.resolve() : turn()
    turned
      .then(loadPlotly)
      .then(async (Plotly) => {
        await turn()
        // A newer figure has come meanwhile, and draws itself.
        if (anew && chart.drawn === signature) await draw(Plotly, chart, styles)
        if (wanted) await save(Plotly, chart)
      })
      .catch((error) => {
        chart.node.textContent = error.message
      })
  }

  return () => {
    clearTimeout(chart.telling)
    chart.observer?.disconnect()
    window.removeEventListener("mrnlab:zoom", chart.follow)
    if (window.Plotly) window.Plotly.purge(chart.node)
    for (const part of ["node", "cross", "tip"]) chart[part].remove()
    charts.delete(parentElement)
  }
}
