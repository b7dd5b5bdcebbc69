// Pairs of rows with their numbers, a line each; a press on a line chooses its pair.

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector("#root")
  const held = root.getRootNode().activeElement?.dataset?.pair
  const scrolled = root.querySelector(".scroll")?.scrollLeft ?? 0
  const lines = data.lines.map(({ pair, short, meanings, colour, cells, chosen, quiet, parted }) => {
    const dot = colour ? [element("i", { style: { background: colour } })] : []
    const meant = pair.map((row, place) => meanings[place] && `${short[place]}: ${meanings[place]}`).filter(Boolean)
    const title = [pair.join(" – "), ...meant].join("\n")
    const name = element("button", { type: "button", title, ariaPressed: String(chosen) }, ...dot, short.join(" – "))
    name.dataset.pair = pair.join("\n")
    const line = element("tr", Object.entries({ chosen, quiet, parted }).flatMap(([name, is]) => (is ? name : [])).join(" "), element("th", { scope: "row" }, name, ...(chosen ? meant.map((text) => element("small", "", text)) : [])),
      ...cells.map((text, column) => element("td", data.columns[column].kind, text)))
    line.onclick = () => setTriggerValue("chosen", pair)
    return line
  })
  const heads = data.columns.map(({ name, help, kind }) => element("th", { className: kind, scope: "col", title: help }, name))
  const table = element("table", { ariaLabel: data.alt },
    element("thead", "", element("tr", "", element("th", { scope: "col" }, "Pair"), ...heads)), element("tbody", "", ...lines))
  const scroll = element("div", "scroll", table)
  root.replaceChildren(scroll)
  scroll.scrollLeft = scrolled
  if (held) [...root.querySelectorAll("button")].find((button) => button.dataset.pair === held)?.focus({ preventScroll: true })
}
