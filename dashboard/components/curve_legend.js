// The legend as a table: configurations with their runs folded inside. Rows are kept and filled anew, so that focus,
// scroll and open folds survive an update.

const PATIENCE_MS = 5000
const MOST = 8

const legends = new WeakMap()

// By a legend's name on the page: the lines that the reader hid and the server has not yet confirmed. Until then the
// server may still send, even to a legend drawn anew, what it knew before.
const unconfirmed = new Map()

const checkbox = (onchange) => element("input", { type: "checkbox", onchange })
const button = (className, onclick) => element("button", { className, type: "button", onclick })

// The row of a configuration, or of one of its runs.
function made(legend, key, of) {
  const row = { key, of, cells: [], runs: [], open: false, label: element("span", ""), sign: element("td", "sign") }
  row.box = checkbox(() => tell(legend))
  row.fold = button("fold", () => {
    row.open = !row.open
    arrange(legend)
  })
  const name = element("td", "name", row.fold, row.label)
  row.tr = element("tr", of ? "run" : "", element("td", "check", row.box), row.sign, name)
  return row
}

function fill(legend, given, of) {
  if (!legend.rows.has(given.key)) legend.rows.set(given.key, made(legend, given.key, of))
  const row = legend.rows.get(given.key)
  row.label.textContent = given.name
  row.label.title = given.title || given.name
  row.name = of ? `${of.name}, ${given.name}` : given.name
  row.box.setAttribute("aria-label", `Show ${row.name}`)
  row.box.hidden = of && !legend.runsDrawn
  if (!of) row.sign.replaceWith((row.sign = sign(given.colour, given.dash)))
  while (row.cells.length > given.cells.length) for (const cell of row.cells.pop()) cell.remove()
  given.cells.forEach((text, column) => {
    if (!row.cells[column]) row.tr.append(...(row.cells[column] = column ? [element("td", "number"), element("td", "place")] : [element("td", "seeds")]))
    const [, value, spread = "", place = ""] = /^(.*?)( ± .*?)?( at .*)?$/.exec(text)
    const [cell, beside] = row.cells[column]
    cell.replaceChildren(value, element("span", "quiet", spread))
    beside?.replaceChildren(place)
  })
  row.runs = given.runs.map((run) => fill(legend, run, row))
  row.fold.hidden = row.runs.length < 2
  return row
}

// Puts the rows that are to be seen in their order: runs of open configurations, and at first not all configurations.
function arrange(legend) {
  const { body, top, more } = legend
  const left = top.length - MOST
  more.hidden = left <= 0
  more.textContent = legend.whole ? `Only ${MOST} configurations` : `${left} more configuration${left === 1 ? "" : "s"}`
  const seen = (legend.whole ? top : top.slice(0, MOST)).flatMap((row) => {
    row.fold.setAttribute("aria-expanded", row.open)
    row.fold.setAttribute("aria-label", `${row.runs.length} runs of ${row.name}`)
    return [row, ...(row.open ? row.runs : [])]
  })
  for (const row of legend.rows.values()) if (!seen.includes(row)) row.tr.remove()
  seen.forEach(({ tr }, place) => {
    if (tr !== body.children[place]) body.insertBefore(tr, body.children[place] ?? null)
  })
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
    row.tr.classList.toggle("hidden", !row.box.checked || hidden.includes(row.of?.key))
  }
  const count = hiddenKeys(legend).length
  legend.all.checked = count === 0
  legend.all.indeterminate = count > 0 && legend.top.some((row) => row.box.checked)
}

export default function (component) {
  const { data, key: name, parentElement, setTriggerValue } = component
  let legend = legends.get(parentElement)
  if (!legend) {
    legend = { name, rows: new Map(), head: element("thead", ""), body: element("tbody", ""), whole: false }
    legend.all = checkbox(() => {
      for (const row of legend.rows.values()) row.box.checked = legend.all.checked || Boolean(row.of)
      tell(legend)
    })
    legend.all.setAttribute("aria-label", "Show all lines")
    legend.more = button("more", () => {
      legend.whole = !legend.whole
      arrange(legend)
    })
    parentElement.querySelector("#root").append(element("table", { ariaLabel: "Lines of the chart" }, legend.head, legend.body), legend.more)
    legends.set(parentElement, legend)
  }
  Object.assign(legend, { trigger: setTriggerValue, runsDrawn: data.runsDrawn })
  if (legend.columns !== data.columns.join()) {
    legend.columns = data.columns.join()
    const [name, seeds, ...ends] = data.columns
    const titles = ends.flatMap((title) => [element("th", "number", title), element("th", "place")])
    legend.head.replaceChildren(element("tr", "", element("th", "check", legend.all), element("th", ""), element("th", "", name), element("th", "seeds", seeds ?? ""), ...titles))
  }
  const given = data.rows.flatMap((row) => [row, ...row.runs])
  for (const [key, row] of legend.rows) {
    if (given.some((one) => one.key === key)) continue
    row.tr.remove()
    legend.rows.delete(key)
  }
  legend.top = data.rows.map((row) => fill(legend, row, null))
  arrange(legend)
  const hidden = given.filter((row) => row.hidden).map((row) => row.key)
  const waiting = unconfirmed.get(name)
  if (waiting && (performance.now() > waiting.until || String(waiting.hidden.sort()) === String(hidden.sort()))) unconfirmed.delete(name)
  show(legend, unconfirmed.get(name)?.hidden ?? hidden)
  return () => legends.delete(parentElement)
}
