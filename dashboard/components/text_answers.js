// Answers on a whole text: a group of rows for each task, a column for each configuration, and on demand its seeds.
// Labels with their probabilities as bars, numbers on their scale. Built from text nodes only, so that no text, label or run name is ever read as HTML.

const opened = new WeakMap() // root → the configurations whose seeds are shown

const bdi = (text) => element("bdi", { textContent: text })
const width = (share) => `${100 * Math.min(1, Math.max(0, share))}%`

// What a column answers, in large type, and what is amiss with it.
function verdict(said) {
  if (!said) return element("td", { className: "none", title: "Not trained on this task" }, "–")
  const answer = element("span", { className: said.differs ? "answer differs" : "answer" }, bdi(said.text))
  const why = said.why ? [element("span", { className: "why", textContent: said.why })] : []
  const seeds = said.seeds ? [element("span", { className: "seeds", textContent: said.seeds })] : []
  return element("td", { className: "verdict" }, answer, ...seeds, ...why)
}

function bar(said, label) {
  if (!said) return element("td")
  const share = said.shares[label] ?? 0
  return element("td", {}, element("div", { className: said.text === label ? "bar chosen" : "bar" },
    element("span", { className: "track" }, element("i", { style: { width: width(share) } })),
    element("span", { className: "share", textContent: percent(share) })))
}

function scale(said, task) {
  if (!said) return element("td")
  const gold = task.gold_place === null ? [] : [element("b", { title: `gold ${task.gold}`, style: { left: width(task.gold_place) } })]
  return element("td", {}, element("div", { className: "scale" },
    element("span", { className: "end", textContent: task.ends[0] }),
    element("span", { className: "line" }, ...gold, element("i", { title: said.text, style: { left: width(said.place) } })),
    element("span", { className: "end", textContent: task.ends[1] })))
}

function group(task) {
  const name = element("div", { className: "name", title: task.task }, element("i"), bdi(task.short), element("span", { className: "of", textContent: task.of }))
  const gold = task.gold ? [element("div", { className: "gold" }, "gold ", bdi(task.gold))] : []
  const rows = [element("tr", { className: "task" }, element("th", { scope: "rowgroup" }, name, ...gold), ...task.said.map(verdict))]
  const row = (head, cell) => rows.push(element("tr", {}, element("th", { scope: "row" }, head), ...task.said.map(cell)))
  for (const label of task.labels)
    row(element("span", { className: label === task.gold ? "label right" : "label", title: label }, bdi(label)), (said) => bar(said, label))
  if (task.more) rows.push(element("tr", {}, element("th", { className: "more", textContent: `${task.more} more labels` })))
  if (task.ends.length) row("", (said) => scale(said, task))
  return element("tbody", { style: { "--task": task.colour } }, ...rows)
}

// The head of a column; that of a configuration with seeds shows and hides them.
function heading(column, next, open, redraw) {
  const head = element("th", { scope: "col", title: column.who, className: column.of ? "seed" : "" })
  if (column.of || !next?.of) head.append(bdi(column.who))
  else {
    const button = element("button", { type: "button" }, bdi(column.who))
    button.setAttribute("aria-expanded", open.has(column.who))
    button.onclick = () => {
      if (!open.delete(column.who)) open.add(column.who)
      redraw(column.who)
    }
    head.append(button)
  }
  return head
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector("#root")
  if (!opened.has(root)) opened.set(root, new Set())
  const open = opened.get(root)
  const texts = data.texts.map((text, place) => element("blockquote", { dir: "auto" },
    ...(data.texts.length > 1 ? [element("span", { className: "number", textContent: place + 1 })] : []), element("span", { textContent: text })))
  const about = data.about ? [element("div", { className: "about", textContent: data.about })] : []
  const draw = () => {
    const isShown = (_, at) => !data.columns[at].of || open.has(data.columns[at].of)
    const columns = data.columns.filter(isShown)
    const redraw = (who) => {
      draw()
      ;[...root.querySelectorAll("thead button")].find((button) => button.textContent === who).focus()
    }
    const head = columns.some((column) => column.who)
      ? [element("thead", {}, element("tr", {}, element("td"), ...data.columns.map((column, at) => heading(column, data.columns[at + 1], open, redraw)).filter(isShown)))]
      : []
    const tasks = data.tasks.map((task) => group({ ...task, said: task.said.filter(isShown) }))
    const table = element("table", { style: { "--runs": columns.length } }, ...head, ...tasks)
    table.setAttribute("aria-label", "Answers on the whole text")
    root.replaceChildren(...texts, ...(tasks.length ? [element("div", { className: "scroll" }, table)] : []), ...about)
  }
  draw()
}
