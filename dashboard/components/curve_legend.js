// The legend as a table. Rows are kept and filled anew, so that focus and scroll survive an update.

const SVG = "http://www.w3.org/2000/svg"
const DASHES = { dot: "2 3.5", dash: "7 4" }
const PATIENCE_MS = 5000

const legends = new WeakMap()

// By a legend's name on the page: the lines that the reader hid and the server has not yet confirmed. Until then the
// server may still send, even to a legend drawn anew, what it knew before.
const unconfirmed = new Map()

function element(tag, className, ...children) {
  const node = document.createElement(tag)
  node.className = className
  node.append(...children)
  return node
}

function checkbox(label, onchange) {
  const box = Object.assign(document.createElement("input"), { type: "checkbox", onchange })
  box.setAttribute("aria-label", label)
  return box
}

function made(legend, { key, name }) {
  const svg = document.createElementNS(SVG, "svg")
  for (const [attribute, value] of [["viewBox", "0 0 36 8"], ["width", 36], ["height", 8], ["aria-hidden", true]])
    svg.setAttribute(attribute, value)
  const line = svg.appendChild(document.createElementNS(SVG, "path"))
  line.setAttribute("d", "M0 4h36")
  const box = checkbox(`Show ${name}`, () => tell(legend))
  const label = element("td", "name", name)
  label.title = name
  const tr = element("tr", "", element("td", "check", box), element("td", "sign", svg), label)
  return { tr, box, line, cells: [], key }
}

const hiddenKeys = (legend) => [...legend.rows.values()].filter((row) => !row.box.checked).map((row) => row.key)

function tell(legend) {
  const hidden = hiddenKeys(legend)
  unconfirmed.set(legend.name, { hidden, until: performance.now() + PATIENCE_MS })
  show(legend, hidden)
  legend.trigger("hidden", hidden)
}

function show(legend, hidden) {
  for (const row of legend.rows.values()) {
    row.box.checked = !hidden.includes(row.key)
    row.tr.classList.toggle("hidden", !row.box.checked)
  }
  const count = hiddenKeys(legend).length
  legend.all.checked = count === 0
  legend.all.indeterminate = count > 0 && count < legend.rows.size
}

export default function (component) {
  const { data, key: name, parentElement, setTriggerValue } = component
  let legend = legends.get(parentElement)
  if (!legend) {
    legend = { name, rows: new Map(), head: element("thead", ""), body: element("tbody", "") }
    legend.all = checkbox("Show all lines", () => {
      for (const row of legend.rows.values()) row.box.checked = legend.all.checked
      tell(legend)
    })
    parentElement.querySelector("#root").append(element("table", "", legend.head, legend.body))
    legends.set(parentElement, legend)
  }
  legend.trigger = setTriggerValue
  if (legend.columns !== data.columns.join()) {
    legend.columns = data.columns.join()
    const titles = data.columns.map((title) => element("th", "", title))
    legend.head.replaceChildren(element("tr", "", element("th", "check", legend.all), element("th", ""), ...titles))
  }
  const keys = data.rows.map((row) => row.key)
  for (const [key, row] of legend.rows) {
    if (keys.includes(key)) continue
    row.tr.remove()
    legend.rows.delete(key)
  }
  data.rows.forEach((given, place) => {
    if (!legend.rows.has(given.key)) legend.rows.set(given.key, made(legend, given))
    const row = legend.rows.get(given.key)
    row.line.setAttribute("stroke", given.colour)
    row.line.setAttribute("stroke-width", 2.5)
    row.line.setAttribute("stroke-dasharray", DASHES[given.dash] ?? "none")
    while (row.cells.length > given.cells.length) row.cells.pop().remove()
    given.cells.forEach((text, column) => {
      if (!row.cells[column]) row.tr.append((row.cells[column] = element("td", "")))
      row.cells[column].textContent = text
    })
    const { body } = legend
    if (row.tr !== body.children[place]) body.insertBefore(row.tr, body.children[place] ?? null)
  })
  const hidden = data.rows.filter((row) => row.hidden).map((row) => row.key)
  const waiting = unconfirmed.get(name)
  if (waiting && (performance.now() > waiting.until || String(waiting.hidden.sort()) === String(hidden.sort()))) unconfirmed.delete(name)
  show(legend, unconfirmed.get(name)?.hidden ?? hidden)
  return () => legends.delete(parentElement)
}
