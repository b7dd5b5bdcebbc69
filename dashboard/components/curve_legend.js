// The legend as a table. Rows are kept and filled anew, so that focus and scroll survive an update.

const SVG = "http://www.w3.org/2000/svg"
const DASHES = { dot: "2 3.5", dash: "7 4" }

const legends = new WeakMap()

// What the reader and the server last said to each other, by a legend's name on the page. Streamlit may draw a
// legend anew, from what the server said before it heard of a click, while the former one still stands there.
const talks = new Map()

function talkOf(key) {
  if (!talks.has(key)) talks.set(key, { legends: 0, told: [], heard: null, hidden: [], marked: null })
  return talks.get(key)
}

function cell(kind, name, ...children) {
  const node = document.createElement(kind)
  if (name) node.className = name
  node.append(...children)
  return node
}

function sign() {
  const svg = document.createElementNS(SVG, "svg")
  svg.setAttribute("viewBox", "0 0 36 8")
  svg.setAttribute("width", "36")
  svg.setAttribute("height", "8")
  svg.setAttribute("aria-hidden", "true")
  const line = document.createElementNS(SVG, "line")
  for (const [key, value] of Object.entries({ x1: 0, x2: 36, y1: 4, y2: 4 })) line.setAttribute(key, value)
  svg.append(line)
  return { svg, line }
}

function made(legend, key) {
  const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true })
  const button = Object.assign(document.createElement("button"), { type: "button" })
  const { svg, line } = sign()
  const tr = cell("tr", "", cell("td", "check", box), cell("td", "sign", svg), cell("td", "name", button))
  const row = { tr, box, button, line, cells: [], key }
  box.onchange = () => tell(legend, legend.marked)
  button.onclick = () => tell(legend, legend.marked === key ? null : key)
  return row
}

function stateOf(hidden, marked) {
  return JSON.stringify([[...hidden].sort(), marked])
}

// Whether the server says something that the reader's last click has not overtaken.
function isNews(legend, state) {
  const { talk } = legend
  const { told, heard } = talk
  talk.heard = state
  const answered = told.lastIndexOf(state)
  if (answered < 0 && told.length && state === heard) return false // it has not heard of the click yet
  const news = answered < 0 || answered === told.length - 1
  talk.told = news ? [] : told.slice(answered + 1)
  return news
}

function tell(legend, marked) {
  const hidden = [...legend.rows.values()].filter((row) => !row.box.checked).map((row) => row.key)
  legend.talk.told.push(stateOf(hidden, marked))
  show(legend, hidden, marked)
  legend.trigger("changed", { hidden, marked })
}

function show(legend, hidden, marked) {
  legend.marked = marked
  Object.assign(legend.talk, { hidden, marked })
  for (const row of legend.rows.values()) {
    const away = hidden.includes(row.key)
    row.box.checked = !away
    row.tr.className = `${row.key === marked ? "marked" : ""} ${away ? "hidden" : ""}`.trim()
    row.button.setAttribute("aria-pressed", String(row.key === marked))
  }
  legend.all.checked = hidden.length === 0
  legend.all.indeterminate = hidden.length > 0 && hidden.length < legend.rows.size
}

function head(legend, columns) {
  const all = Object.assign(document.createElement("input"), { type: "checkbox" })
  all.setAttribute("aria-label", "Show all lines")
  all.onchange = () => {
    for (const row of legend.rows.values()) row.box.checked = all.checked
    tell(legend, legend.marked)
  }
  legend.all = all
  const row = cell("tr", "", cell("th", "check", all), cell("th", "", ""))
  for (const name of columns) row.append(cell("th", "", name))
  legend.head.replaceChildren(row)
  legend.columns = columns.join("\n")
}

export default function (component) {
  const { data, key: name, parentElement, setTriggerValue } = component
  let legend = legends.get(parentElement)
  if (!legend) {
    const talk = talkOf(name)
    talk.legends += 1
    legend = { rows: new Map(), head: cell("thead"), body: cell("tbody"), marked: null, talk }
    parentElement.querySelector("#root").append(cell("table", "", legend.head, legend.body))
    legends.set(parentElement, legend)
  }
  legend.trigger = setTriggerValue
  if (legend.columns !== data.columns.join("\n")) head(legend, data.columns)
  const keys = data.rows.map((row) => row.key)
  for (const [key, row] of legend.rows) {
    if (keys.includes(key)) continue
    row.tr.remove()
    legend.rows.delete(key)
  }
  data.rows.forEach((given, place) => {
    if (!legend.rows.has(given.key)) legend.rows.set(given.key, made(legend, given.key))
    const row = legend.rows.get(given.key)
    row.button.textContent = row.button.title = given.name
    row.box.setAttribute("aria-label", `Show ${given.name}`)
    row.line.setAttribute("stroke", given.colour)
    row.line.setAttribute("stroke-width", 2.5)
    row.line.setAttribute("stroke-dasharray", DASHES[given.dash] ?? "none")
    while (row.cells.length > given.cells.length) row.cells.pop().remove()
    given.cells.forEach((text, column) => {
      if (!row.cells[column]) row.tr.append((row.cells[column] = cell("td")))
      if (row.cells[column].textContent !== text) row.cells[column].textContent = text
    })
    const body = legend.body
    if (row.tr !== body.children[place]) body.insertBefore(row.tr, body.children[place] ?? null)
  })
  const hidden = data.rows.filter((row) => row.hidden).map((row) => row.key)
  const marked = data.rows.find((row) => row.marked)?.key ?? null
  if (isNews(legend, stateOf(hidden, marked))) show(legend, hidden, marked)
  else show(legend, legend.talk.hidden, legend.talk.marked)

  return () => {
    if (legends.delete(parentElement) && --legend.talk.legends === 0) talks.delete(name)
  }
}
