// A number for every pair of tasks on a diverging scale. One cell is reached by Tab, the others by the arrow keys.

// Words stay readable (4.5 to 1) on a ground of at most this share of the theme's green or orange.
const STRONGEST = 55
// Names of at most so many letters stand level over cells on a narrow screen too.
const SHORT = 9
const ground = (share, least = 0) =>
  `color-mix(in srgb, var(${share < 0 ? "--st-orange-color" : "--st-green-color"}) ${Math.max(least, Math.min(1, Math.abs(share)) * STRONGEST)}%, var(--st-background-color))`

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector("#root")
  const held = root.getRootNode().activeElement?.dataset?.at
  const scrolled = root.querySelector(".scroll")?.scrollLeft ?? 0
  const buttons = new Map()

  const cell = (value, row, column) => {
    if (row === column) return element("td", { className: "same", title: data.rows[row].name })
    if (!value) return element("td", { className: "none", title: "Not known" }, "·")
    const at = `${row},${column}`
    const button = element("button", {
      type: "button", title: value.title, tabIndex: -1, style: { "--ground": ground(value.share), "--edge": ground(value.share < 0 ? -1 : 1) },
      className: `${value.grey ? "undecided" : ""} ${value.nearly ? "nearly" : ""} ${at === String(data.chosen) ? "chosen" : ""}`,
      onclick: () => setTriggerValue("cell", { row, column }),
    }, element("span", { textContent: value.text }), element("span", { className: "note", textContent: value.note }))
    button.setAttribute("aria-label", value.title)
    button.dataset.at = at
    buttons.set(at, button)
    return element("td", {}, button)
  }
  const across = (name, short = name) => element("th", { scope: "col", title: name, className: data.rows.length <= 5 ? `level ${data.short.every((name) => name.length <= SHORT) ? "short" : ""}` : "" }, element("span", { textContent: short }))
  const head = element("tr", {}, element("th", { className: "corner", textContent: data.corner }),
    ...data.rows.map(({ name }, column) => across(name, data.short[column])))
  const rows = data.rows.map(({ name, colour, score }, row) =>
    element("tr", {}, element("th", { scope: "row", title: name },
      element("div", { className: "head" }, element("i", { style: { background: colour } }),
        element("span", { className: "name", textContent: data.short[row] }), element("span", { className: "score", textContent: score }))),
      ...data.cells[row].map((value, column) => cell(value, row, column))))
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))
  table.setAttribute("aria-label", data.alt)
  const together = (...parts) => element("span", { className: "key" }, ...parts)
  const scale = together(element("span", { textContent: data.low }), element("span", { className: "ramp", style: { "--low": ground(-1), "--high": ground(1) } }), element("span", { textContent: data.high }))
  const legend = element("div", { className: "legend" }, ...(data.low || data.high ? [scale] : []),
    ...["grey", "nearly"].filter((mark) => data[mark]).map((mark) => together(element("span", { className: `sample ${mark}` }), element("span", { textContent: data[mark] }))))
  const scroll = element("div", { className: `scroll ${data.rows.length <= 5 ? "few" : ""}` }, table)
  root.replaceChildren(scroll, legend)
  scroll.scrollLeft = scrolled

  const reached = buttons.get(held) ?? buttons.get(String(data.chosen)) ?? buttons.values().next().value
  if (reached) reached.tabIndex = 0
  if (held) buttons.get(held)?.focus({ preventScroll: true })
  table.onkeydown = (event) => {
    const move = MOVES[event.key]
    const at = event.target.dataset.at?.split(",").map(Number)
    if (!move || !at) return
    event.preventDefault()
    // Over the diagonal and pairs that are not known.
    for (let [row, column] = at; row >= 0 && row < rows.length && column >= 0 && column < data.rows.length; ) {
      row += move[0]
      column += move[1]
      const next = buttons.get(`${row},${column}`)
      if (!next) continue
      event.target.tabIndex = -1
      next.tabIndex = 0
      next.focus()
      return
    }
  }
}
